"""`bench truth`: the flags, and the server until a signal."""

import argparse
import signal
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar, get_args

from harness.errors import ExitCode
from harness.truth.dialects import DIALECTS
from harness.truth.faults import KINDS, Fault
from harness.truth.habits import Framing, Habits, Role, Usage
from harness.truth.options import Options
from harness.truth.script import VOCABULARIES, Distribution

T = TypeVar("T")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    distribution = _type(Distribution.parse)
    add = parser.add_argument_group(
        "timing", "a distribution is MS, uniform:LOW:HIGH, exponential:MEAN or lognormal:MEDIAN:SIGMA"
    ).add_argument
    add("--ttft-ms", type=distribution, default="100", metavar="DIST", help="received to first token (100)")
    add("--gap-ms", type=distribution, default="50", metavar="DIST", help="between tokens (50); 0: at once")
    add("--tokens", type=_integer(1), metavar="N", help="when the request names no limit (128)")
    add("--stop-after-tokens", type=_integer(1), metavar="N", help="end there, unless ignore_eos is set")
    add("--seed", type=_integer(0), metavar="N", help="of times and of fault probabilities (0)")
    add("--precise", action="store_true", help="spin before each write: spends a core, hides late wake-ups")

    add = parser.add_argument_group("engine").add_argument
    add(
        "--dialect",
        choices=tuple(DIALECTS),
        default="truth",
        help="answer as this engine does (truth: plain)",
    )
    add(
        "--loading-s",
        type=_number,
        metavar="S",
        help="load so long first: refuse, or 503, as the engine does",
    )
    add("--max-running", type=_integer(1), metavar="N", help="more requests wait their turn (no limit)")
    add("--prefill-us-per-token", type=_number, metavar="US", help="TTFT grows so per uncached token (0)")
    add("--no-prefix-cache", action="store_true")
    add("--cache-tokens", type=_integer(1), metavar="N", help="the prefix cache holds so many (262144), LRU")
    add("--cache-block-tokens", type=_integer(1), metavar="N", help="cached in blocks of so many (16)")
    add("--chars-per-token", type=_integer(1), metavar="N", help="the tokenizer: so many characters each (4)")
    add("--model-name", metavar="NAME", help="(simulated)")

    add = parser.add_argument_group("streaming habits").add_argument
    given: Any = {"action": "store_true", "default": None}  # None leaves the habit to the dialect
    add("--role", choices=get_args(Role), help="role-only chunk: at once or with the first token (first)")
    add("--empty-delta-every", type=_integer(0), metavar="N", help="one ahead of every N events")
    add("--reasoning-tokens", type=_integer(0), metavar="N", help="the first N of a chat are reasoning")
    add("--reasoning-field", metavar="NAME", help="(reasoning_content)")
    add("--tokens-per-event", type=_integer(1), metavar="N", help="after the first event (1)")
    add("--events-per-write", type=_integer(1), metavar="N", help="after the first write (1)")
    add("--keepalive-ms", type=_number, metavar="MS", help="SSE comment after so long a silence")
    add("--crlf", **given, help="SSE lines end in \\r\\n")
    add("--no-done", **given, help="no data: [DONE]")
    add("--usage", choices=get_args(Usage), help="as asked, in a last chunk, in each chunk, or never (asked)")
    add("--framing", choices=get_args(Framing), help="of streams (chunked)")
    add("--gzip", **given, help="for clients that accept it")
    add("--late-headers", **given, help="the response head leaves with the first event")
    add("--early-hints", **given, help="a 103 ahead of the response head")
    add("--vocabulary", choices=tuple(VOCABULARIES), help="unicode: multi-byte and escaped too (ascii)")

    add = parser.add_argument_group("faults", f"KIND is one of {', '.join(KINDS)}").add_argument
    add(
        "--fault",
        dest="faults",
        action="append",
        type=_type(Fault.parse),
        metavar="KIND[:every=N|:p=SHARE|:at=K[:times=N]][:after=TOKENS][:for=SECONDS]",
        help="repeatable; the first that strikes a request counts; without every, p or at it strikes all",
    )

    add = parser.add_argument_group("process").add_argument
    add("--host", metavar="ADDRESS", help="(127.0.0.1)")
    add("--port", type=_integer(0), metavar="N", help="0 takes a free one (0)")
    add("--tls-pem", metavar="FILE", help="private key and certificate: https")
    add("--until-stdin-closes", action="store_true", help="exit then, so as not to outlive the parent")


def main(args: argparse.Namespace) -> int:
    """Prints the URL once it is bound; serves until SIGINT or SIGTERM, or a `die` fault (exit code 1)."""
    from harness.truth.connection import DiedError
    from harness.truth.server import Server  # numpy, sockets: not for `bench --help`

    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        server = Server(_options(args))
        print(server.url, flush=True)
        server.run()
    except KeyboardInterrupt:
        return ExitCode.OK
    except DiedError:
        print(DIALECTS[args.dialect].out_of_memory, "(simulated: a `die` fault struck)", file=sys.stderr)
        return ExitCode.LIMIT_FAILED
    return ExitCode.OK


def _options(args: argparse.Namespace) -> Options:
    """A flag that was not given leaves the default to the dialect or the dataclass."""
    given = {name: value for name, value in vars(args).items() if value is not None}
    given["faults"] = tuple(given.get("faults", ()))
    dialect = given["dialect"] = DIALECTS[args.dialect]
    given.setdefault("cache_block_tokens", dialect.cache_block_tokens)

    def of(cls: type[Any]) -> dict[str, Any]:
        return {field.name: given[field.name] for field in fields(cls) if field.name in given}

    return Options(habits=replace(dialect.habits, **of(Habits)), **of(Options))


def _type(parse: Callable[[str], T]) -> Callable[[str], T]:
    """argparse shows the message of its own error only."""

    def converted(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return converted


def _integer(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text)
        if value < least:
            raise ValueError(f"{value} is below {least}")
        return value

    return _type(parse)


@_type
def _number(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(f"{text} is not a finite number of at least 0")
    return value
