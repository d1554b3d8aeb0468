"""Flags of other tools that people type by habit, and what says the same here.

All of them, with those that look like ours, stand in docs/coming-from.md.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from harness.cli.flags.parsers import ADDRESSED
from harness.errors import page_address

_SERVER = "--backends NAME=URL"
_REQUESTS = "--requests N"
_SECONDS = "--duration S"
_CONCURRENCY = "--concurrency N,…"
_FILE = "--scenario prompt-file --set prompts.file=FILE"

FOREIGN: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("--base-url", "--url", "--target", "--api-base"), _SERVER),
        **dict.fromkeys(("--num-prompts", "--request-count", "--max-requests"), _REQUESTS),
        **dict.fromkeys(("--benchmark-duration", "--max-seconds"), _SECONDS),
        **dict.fromkeys(("--max-concurrency", "--num-concurrency", "--parallel"), _CONCURRENCY),
        **dict.fromkeys(("--dataset-path", "--input-file"), _FILE),
        **dict.fromkeys(("--num-warmups", "--warmup-requests"), "--set load.warmup_requests=N"),
        **dict.fromkeys(("--result-dir", "--artifact-dir"), "--out DIR"),
        "--endpoint": "--api API",
        "--temperature": "--set request.temperature=T",
        "--request-rate": "--rate R, and --set load.max_in_flight=N for its --max-concurrency",
        "--random-input-len": "--input-tokens N of --scenario fixed-length",
        "--random-output-len": "--output-tokens N of --scenario fixed-length",
        "--synthetic-input-tokens-mean": "--input-tokens N of --scenario fixed-length",
        "--output-tokens-mean": "--output-tokens N of --scenario fixed-length",
        "--dataset-name": "--scenario NAME, of `bench list scenarios`",
        "--goodput": "--set slo.ttft_ms.p95=500",
        "--extra-body": "--set request.fields.NAME=VALUE",
    }
)


# What they ask for is so here without a flag.
NEEDLESS = (
    "--tokenizer",
    "--ignore-eos",
    "--streaming",
    "--save-result",
    "--save-detailed",
    "--percentile-metrics",
    "--metric-percentiles",
)


# Flags that people carry over from another command of bench, or from the name of a metric, by command.
OURS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "tune": {
            "--backends": "the argument BACKEND",
            "--concurrency": "--load N",
            "--rate": "--load R",
            "--variant": "BACKEND@VARIANT of the definition, or --engine-set KEY=VALUE for each value",
        },
        "truth": dict.fromkeys(("--itl-ms", "--tpot-ms", "--tpot", "--itl"), "--gap-ms MS"),
    }
)


def translated(flags: Iterable[str], command: str) -> str:
    """Hint for flags of other tools, or of other commands, that were typed after `command`; "" for none."""
    run = {**FOREIGN, **dict.fromkeys(NEEDLESS, "not needed")}
    same = OURS.get(command) or run
    found = ", ".join(f"{flag} is {same[flag]}" for flag in dict.fromkeys(flags) if flag in same)
    if not found:
        return ""
    if command in OURS:
        return f"here {found}"
    lead = "`bench URL` takes an address, and prints a `bench run`: there" if command == ADDRESSED else "here"
    return f"{lead} {found}; flags of other tools: {page_address('coming-from')}"
