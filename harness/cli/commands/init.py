"""`bench init`: a file to start from, in the place where `bench` finds it by name."""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

from harness.cli.display.result import Result
from harness.cli.flags import options
from harness.cli.typed import Flags
from harness.errors import SpecError, page_address, writing
from harness.host import paths

EPILOG = """A scenario goes to ./workloads/NAME.toml, a backend to ./backends/NAME.toml: bench run in this
directory finds them by name. Nothing is overwritten."""

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]*")

_SCENARIO = """# What is sent, and how fast. Unknown keys are errors. All keys: {workloads}
# Check it: bench validate {path}
# Run it:   bench run --scenario {name} --backends openai=http://127.0.0.1:8000

[scenario]
name = "{name}"
purpose = "One sentence: what this workload asks of a server."

[prompts]
generator = "fixed-length" # also: mix, shared-prefix, few-shot, rag, structured, trace, …
input_tokens = 256         # of each prompt; no two share a prefix
output_tokens = 64         # of each answer
output_spread = 0.1        # answers up to 10% shorter or longer, so that they do not all end together

[load]
concurrency = [1, 8] # closed loop: requests kept in flight, a load point each
# rate = [2, 8]      # instead: an open loop, requests per second whatever the server does
requests = 100       # measured at each load point
warmup_requests = 8  # sent first; in no latency figure
# duration_s = 60    # stop sending after so long, even if requests are left
min_seconds = 10     # a cell with less is SUSPECT: too short
min_answers = 100

[request]
temperature = 0.0
exact_output = true # generate exactly output_tokens, where the engine can
timeout_s = 300
# fields = {{ top_k = 20 }} # others, sent with every request as they stand

[cache]
state = "cold" # prefix cache at the start of a cell: cold, warm, primed, or any to leave it alone

# Limits: goodput counts the requests that meet them, --find-capacity looks for the highest load that does.
# [slo]
# ttft_ms.p95 = 500
# tpot_ms.p90 = 50
"""

_BACKEND = """# A server that speaks the OpenAI chat API, to attach to. Unknown keys are errors.
# How bench starts an engine itself, and all other keys: {engines}
# Check it: bench validate {path}
# Ask it:   bench probe {name}=http://127.0.0.1:8000   (whether it does what this file says)
# Run it:   bench run --scenario fixed-length --backends {name}=http://127.0.0.1:8000

[backend]
name = "{name}"
title = "{name}" # as people write it
licence = "unknown"
homepage = ""
weights = "none" # it brings its own model

[server]
ready_path = "/v1/models" # answers 200 once the model is loaded
startup_timeout_s = 60

# Where it tells its version: a path, and a dotted key of the JSON answer.
# [server.version]
# path = "/version"
# key = "version"

# Counts tokens, so that prompts have exact lengths: the text in `text_field`, a list of ids at `tokens_key`.
# [server.tokenize]
# path = "/tokenize"
# text_field = "prompt"
# tokens_key = "tokens"

# How requests are said to it. Every field is sent as it stands here.
[dialect]
# exact_output = {{ ignore_eos = true }} # makes an answer as long as was asked for
# extra = {{ top_k = -1 }}               # sent with every request
stream_usage = true # it understands stream_options.include_usage

# What it does; `bench probe` compares. A key left out is not known.
[dialect.habits]
# usage = "last"        # the usage block comes in a chunk of its own; or finish, each, never
# cached_tokens = true  # and has the cached prompt tokens
# done = true           # streams end with data: [DONE]

# Its other APIs (completions, responses, messages), with what differs from [dialect] there.
# [dialect.apis.responses]
# seed = {{}}

# [prefix_cache]
# enabled = true
# reset = {{ path = "/reset_prefix_cache" }} # POST; without one, bench restarts the servers that it starts
#                                            # for a cold cache, and sends running ones prompts that are new

# Its counters in Prometheus' format, by the names that bench knows them under.
# [metrics]
# path = "/metrics"
# [metrics.counters]
# prompt_tokens = "engine:prompt_tokens_total"
# output_tokens = "engine:generation_tokens_total"
# [metrics.gauges]
# running = "engine:requests_running"
# waiting = "engine:requests_waiting"
"""

_KINDS: dict[str, tuple[paths.Kind, str]] = {
    "scenario": ("workloads", _SCENARIO),
    "backend": ("backends", _BACKEND),
}


@dataclass(frozen=True)
class Options(Flags):
    kind: str
    name: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=tuple(_KINDS), help="kind of file to write")
    parser.add_argument("name", metavar="NAME", help="name of the new file: letters, digits, - and _")
    options.add_json(parser)


def main(given: Options) -> Result:
    folder, template = _KINDS[given.kind]
    name = given.name
    if not _NAME.fullmatch(name):
        raise SpecError(f"{name!r} is not made of letters, digits, - and _ alone", where="NAME")
    path = Path(folder) / f"{name}.toml"
    pages = {"workloads": page_address("workloads"), "engines": page_address("adding-an-engine")}
    if known := paths.definition(folder, name):
        raise SpecError(f"there is a {given.kind} '{name}' already", where=str(known),
                        hint="choose another name; nothing was written")  # fmt: skip
    created = False
    with writing(str(path)):
        try:
            path.parent.mkdir(exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                created = True
                file.write(template.format(name=name, path=path, **pages))
        except FileExistsError:
            raise SpecError("exists already", where=str(path), hint="nothing was written") from None
        except OSError:
            if created:  # half a file would be found by its name
                path.unlink(missing_ok=True)
            raise
    return Result(f"{path}: written; `bench validate {path}` checks it", lambda: {"file": str(path)})
