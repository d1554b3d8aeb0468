"""How each tool replays a trace: the flags of its own documentation, and why others do not."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tests.bench.peers import Peer, peer_named
from tests.factories.replays import HUB_NAME

_AIPERF = (
    "profile -m truth --url {url} --endpoint-type chat --streaming --tokenizer HUB_NAME --input-file FILE"
    " --custom-dataset-type FORM_trace --fixed-schedule --use-server-token-count --ui-type none"
    " --output-artifact-dir {out}"
)
_GUIDELLM = (
    "run --backend kind=openai_http,target={url},model=truth,request_format=/v1/chat/completions"
    " --data kind=FORM,source.kind=json_file,source.path=FILE --tokenizer kind=hf_auto,model={tokenizer}"
    " --profile kind=replay --output kind=json,path={out}/r.json --disable-console"
)
_VLLM = (
    "bench serve --backend openai --base-url {url} --model truth --tokenizer {tokenizer} --num-prompts {n}"
    " --dataset-name timed_trace --dataset-path FILE --timed-trace-chunk-hash-size 512"
    " --timed-trace-sec-multiplier 0.001 --percentile-metrics ttft,tpot,itl,e2el"
    " --save-result --result-dir {out} --result-filename r.json"
)
COMMANDS: Mapping[tuple[str, str], str] = {
    ("vllm", "mooncake"): _VLLM,
    ("aiperf", "mooncake"): _AIPERF,
    ("aiperf", "weka"): _AIPERF.replace("FILE", "FOLDER").replace(
        "--fixed-schedule", "--no-fixed-schedule --concurrency SESSIONS --num-conversations SESSIONS"
    ),
    ("guidellm", "mooncake"): _GUIDELLM.replace("kind=replay", "kind=replay,time_scale=0.001"),
    ("guidellm", "weka"): _GUIDELLM.replace(
        "=FILE", "=FILE,hash_id_block_size=TOKENS,duration_column=api_time"
    ),
    ("inference-perf", "weka"): "--config_file {out}/config.yml",
}
AT_ONCE = {("aiperf", "weka"), ("inference-perf", "weka")}  # which begin sessions at no recorded times
_CONFIG = """\
load: {type: trace_session_replay, stages: [{concurrent_sessions: 0}]}
api: {type: chat, streaming: true}
server: {type: vllm, model_name: truth, base_url: "[url]", ignore_eos: true}
tokenizer: {pretrained_model_name_or_path: "[tokenizer]"}
data:
  type: weka_trace_replay
  weka_trace_replay: {trace_directory: FOLDER, use_static_model: true, static_model_name: truth}
storage: {local_storage: {path: "[out]"}}
"""
DOES_NOT: Mapping[tuple[str, str], str] = {
    ("inference-perf", "mooncake"): "its only timed trace is the CSV of Azure, which shares no prefixes",
    ("sglang", "mooncake"): "its client keeps times on SGLang's own route `/generate` alone",
    ("vllm", "weka"): "it has no sessions",
    ("sglang", "weka"): "it has no recorded sessions",
}


def replaying(tool: str, form: str, file: Path, hub: Path, out: Path) -> Peer:
    """The tool with the file, or with a folder in `out` of a file for each line, where it takes no lines.

    The settings of `tests.bench.peers` for one worker are left out: each tool is as it is by default. `hub`
    has the tokenizer by a name: the processes of aiperf that make prompts take no folder.
    """
    folder = out / "sessions"
    folder.mkdir()
    lines = file.read_text().splitlines()
    if form == "weka":
        for number, line in enumerate(lines):
            (folder / f"{number:06}.json").write_text(line)
    words = COMMANDS[tool, form].replace("FORM", form).replace("FILE", str(file))
    words = words.replace("FOLDER", str(folder)).replace("SESSIONS", str(len(lines)))
    words = words.replace("HUB_NAME", HUB_NAME).replace("TOKENS", str(json.loads(lines[0]).get("block_size")))
    config = _CONFIG.replace("FOLDER", json.dumps(str(folder)))
    environment = {"HF_HUB_CACHE": str(hub), "HF_HUB_OFFLINE": "1"}
    return replace(peer_named(tool), arguments=words, config=config, environment=environment)
