"""mistral.rs: it computes and batches on threads of its own; each stream is read on a thread here."""

import json
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING

import transformers
from mistralrs import ChatCompletionChunkResponse, ChatCompletionRequest, ModelDType, Runner, Which

if TYPE_CHECKING:
    from harness.engines.shims.library_server import Asked, Job, Settings

_TYPES = {"bfloat16": ModelDType.BF16, "float16": ModelDType.F16, "float32": ModelDType.F32}
_KEPT_SEQUENCES = 16  # in the prefix cache; the Runner's own default


class Library:
    def __init__(self, settings: "Settings") -> None:
        self.version = version("mistralrs")
        self.effective: dict[str, str] = {}
        weights = Which.Plain(
            model_id=str(_readable(Path(settings.model), Path(settings.scratch))),
            dtype=_TYPES[settings.dtype],
        )
        self._runner = Runner(
            weights,
            max_seqs=settings.max_sequences,
            prefix_cache_n=_KEPT_SEQUENCES if settings.prefix_cache else 0,
        )
        self._lock = Lock()  # two threads in one Runner: "Already borrowed"
        # The Runner renders a template only on its way to an answer.
        self._template = transformers.AutoTokenizer.from_pretrained(settings.model)

    def encode(self, text: str) -> list[int]:
        with self._lock:
            return list(self._runner.tokenize_text(text, add_special_tokens=False, enable_thinking=None))

    def prompt(self, messages: Sequence[dict[str, str]]) -> list[int]:
        text = self._template.apply_chat_template(list(messages), add_generation_prompt=True, tokenize=False)
        return self.encode(text)

    def decode(self, tokens: Sequence[int]) -> str:
        with self._lock:
            return str(self._runner.detokenize_text(list(tokens), skip_special_tokens=False))

    def serve(self, waiting: "SimpleQueue[Job]") -> None:
        while True:
            job = waiting.get()
            request = _request(self.decode(job.prompt), job.asked)
            with self._lock:
                steps = self._runner.send_chat_completion_request(request)
            Thread(target=_relay, args=(job, steps), daemon=True).start()


def _request(prompt: str, asked: "Asked") -> ChatCompletionRequest:
    return ChatCompletionRequest(
        model="default",
        messages=prompt,  # a text is taken as rendered by the template
        max_tokens=asked.max_tokens,
        ignore_eos=asked.ignore_eos,
        temperature=asked.temperature,
        top_p=asked.top_p,
        top_k=asked.top_k or None,
        stream=True,
    )


def _relay(job: "Job", steps: "Iterator[ChatCompletionChunkResponse]") -> None:
    reason = "error"
    try:
        for step in steps:
            if step.usage:
                job.produced = step.usage.completion_tokens
            for choice in step.choices:
                job.say(choice.delta.content or "")
                reason = choice.finish_reason or reason
            if job.gone:
                break
    except (RuntimeError, ValueError) as error:
        print(f"a request failed: {error}", flush=True)
        reason = "error"
    job.end(reason)


def _readable(model: Path, scratch: Path) -> Path:
    """The folder, or one that links to it: its config has `rope_theta` where mistral.rs looks for it.

    transformers 5 writes it inside `rope_parameters`: "missing field `rope_theta`".
    """
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    theta = (config.get("rope_parameters") or {}).get("rope_theta")
    if theta is None or "rope_theta" in config:
        return model
    folder = scratch / "model"
    folder.mkdir()
    for file in model.iterdir():
        (folder / file.name).symlink_to(file)
    (folder / "config.json").unlink()
    (folder / "config.json").write_text(json.dumps(config | {"rope_theta": theta}), encoding="utf-8")
    return folder
