"""`bench truth`: the flags, and the server until a signal."""

import argparse
import signal
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar, get_args

from harness.errors import ExitCode, SpecError
from harness.mockserver.declared import declared_dialect
from harness.mockserver.dialects import DIALECTS
from harness.mockserver.faults import KINDS, Fault
from harness.mockserver.habits import Framing, Habits, Role, Usage
from harness.mockserver.known_answers import WrongShare, read_answers
from harness.mockserver.options import Options
from harness.mockserver.script import VOCABULARIES, Distribution

T = TypeVar("T")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "bench truth [options]"
    distribution = _type(Distribution.parse)
    add = parser.add_argument_group(
        "timing", "DIST is MS, uniform:LOW:HIGH, exponential:MEAN or lognormal:MEDIAN:SIGMA"
    ).add_argument
    add(
        "--ttft-ms",
        type=distribution,
        default="100",
        metavar="DIST",
        help="time to first token (default: 100)",
    )
    add(
        "--gap-ms",
        type=distribution,
        default="50",
        metavar="DIST",
        help="time between tokens; 0: all at once (default: 50)",
    )
    add(
        "--tokens",
        type=_integer(1),
        metavar="N",
        help="tokens per answer if the request sets no limit (default: 128)",
    )
    add(
        "--stop-after-tokens",
        type=_integer(1),
        metavar="N",
        help="end of text after N tokens, unless ignore_eos is set",
    )
    add("--seed", type=_integer(0), metavar="N", help="seed of times and faults (default: 0)")
    add(
        "--precise",
        action="store_true",
        help="busy-wait before each write: uses a whole core, avoids late wake-ups",
    )

    add = parser.add_argument_group("engine").add_argument
    add(
        "--dialect",
        choices=tuple(DIALECTS),
        default="truth",
        metavar="NAME",
        help=f"imitate an API (default: truth, plain OpenAI): {', '.join(DIALECTS)}",
    )
    add(
        "--loading-s",
        type=_number,
        metavar="S",
        help="seconds of model loading; refuses or answers 503, as the engine does",
    )
    add(
        "--max-running",
        type=_integer(1),
        metavar="N",
        help="requests served at once; others wait (default: no limit)",
    )
    add("--interrupts", action="store_true", help="end running streams when a new request comes")
    add(
        "--no-kept-turns",
        dest="keeps_turns",
        action="store_false",
        help="refuse previous_response_id, as vLLM and SGLang do by default",
    )
    add(
        "--cut-prompt-tokens",
        type=_integer(1),
        metavar="N",
        help="read only the last N tokens of a longer prompt, and say nothing",
    )
    add(
        "--prefill-us-per-token",
        type=_number,
        metavar="US",
        help="µs added to TTFT per uncached prompt token (default: 0)",
    )
    add(
        "--answers",
        type=_type(read_answers),
        metavar="FILE",
        help="JSON object: the answer to each question that is known; other requests get made up words",
    )
    add(
        "--wrong",
        type=_type(WrongShare.parse),
        metavar="SHARE[:above=N]",
        help="answer this share of them wrongly, 0 to 1; above: only with more than N requests running",
    )
    add(
        "--transfer-ms",
        type=_number,
        metavar="MS",
        help="ms added to TTFT, in which a prompt's KV cache comes from another engine (default: 0)",
    )
    add("--no-prefix-cache", action="store_true", help="disable the prefix cache")
    add(
        "--cache-tokens",
        type=_integer(1),
        metavar="N",
        help="capacity of the prefix cache, LRU (default: 262144)",
    )
    add(
        "--host-cache-tokens",
        type=_integer(1),
        metavar="N",
        help="capacity of a second cache in host memory (default: none)",
    )
    add(
        "--host-us-per-token",
        type=_number,
        metavar="US",
        help="µs added to TTFT per prompt token that comes from host memory (default: 0)",
    )
    add(
        "--cache-block-tokens",
        type=_integer(1),
        metavar="N",
        help="block size of the prefix cache (default: 16)",
    )
    add(
        "--image-tokens",
        type=_integer(1),
        metavar="N",
        help="prompt tokens that stand for an image (default: 64)",
    )
    add("--image-ms", type=_number, metavar="MS", help="ms added to TTFT per image (default: 0)")
    add(
        "--image-cache",
        type=_integer(0),
        metavar="N",
        help="images that are not encoded again when they come again, LRU (default: 0)",
    )
    add(
        "--audio-ms-per-s",
        type=_number,
        metavar="MS",
        help="ms added to a transcript for each second of its recording (default: 0)",
    )
    add("--adapters", type=_integer(0), metavar="N", help="answer for adapter-1 to adapter-N (default: 0)")
    add(
        "--adapter-slots",
        type=_integer(1),
        metavar="N",
        help="adapters in memory at once, LRU (default: 1)",
    )
    add(
        "--adapter-swap-ms",
        type=_number,
        metavar="MS",
        help="ms added to TTFT where an adapter is not in memory (default: 0)",
    )
    add(
        "--adapter-us-per-token",
        type=_number,
        metavar="US",
        help="µs added to TTFT per uncached prompt token with an adapter (default: 0)",
    )
    add(
        "--chars-per-token",
        type=_integer(1),
        metavar="N",
        help="characters per token of the tokenizer (default: 4)",
    )
    add("--model-name", metavar="NAME", help="served model name (default: simulated)")

    add = parser.add_argument_group("streaming habits").add_argument
    given: Any = {"action": "store_true", "default": None}  # None leaves the habit to the dialect
    add(
        "--role",
        choices=get_args(Role),
        help="role-only chunk: none, at once, or with the first token (default: first)",
    )
    add(
        "--empty-delta-every",
        type=_integer(0),
        metavar="N",
        help="send an empty delta before every Nth event",
    )
    add(
        "--reasoning-tokens",
        type=_integer(0),
        metavar="N",
        help="make the first N tokens of a chat reasoning",
    )
    add("--counts-reasoning", **given, help="count reasoning tokens in the usage of a chat")
    add("--reasoning-field", metavar="NAME", help="field of reasoning tokens (default: reasoning_content)")
    add(
        "--tokens-per-event",
        type=_integer(1),
        metavar="N",
        help="tokens per event after the first (default: 1)",
    )
    add(
        "--events-per-write",
        type=_integer(1),
        metavar="N",
        help="events per write after the first (default: 1)",
    )
    add("--keepalive-ms", type=_number, metavar="MS", help="send an SSE comment after MS of silence")
    add("--crlf", **given, help="end SSE lines with \\r\\n")
    add("--no-done", **given, help="omit data: [DONE]")
    add(
        "--usage",
        choices=get_args(Usage),
        help="when to send usage (default: asked, if the request asks for it)",
    )
    add("--framing", choices=get_args(Framing), help="framing of streams (default: chunked)")
    add("--gzip", **given, help="compress for clients that accept it")
    add("--hang-up", **given, help="close the connection after each stream without saying so")
    add("--late-headers", **given, help="send the response head with the first event")
    add("--early-hints", **given, help="send a 103 response first")
    add(
        "--vocabulary",
        choices=tuple(VOCABULARIES),
        help="unicode adds multi-byte and escaped tokens (default: ascii)",
    )

    add = parser.add_argument_group("faults", f"KIND is one of {', '.join(KINDS)}").add_argument
    add(
        "--fault",
        dest="faults",
        action="append",
        type=_type(Fault.parse),
        metavar="KIND[:every=N|:p=SHARE|:at=K[:times=N]][:after=TOKENS][:for=SECONDS]",
        help="inject a fault (repeatable; the first that matches a request wins; default: every request)",
    )

    add = parser.add_argument_group("process").add_argument
    add("--host", metavar="ADDRESS", help="address to listen on (default: 127.0.0.1)")
    add("--port", type=_integer(0, 65_535), metavar="N", help="port to listen on (default: 0, a free one)")
    add("--tls-pem", metavar="FILE", help="PEM file with private key and certificate; serves https")
    add(
        "--keep-requests",
        type=_integer(1),
        metavar="N",
        help="tell /truth of the last N requests only, and keep only their turns, for long loads "
        "(default: all)",
    )
    add("--until-stdin-closes", action="store_true", help="exit when stdin closes")


def main(args: argparse.Namespace) -> int:
    """Prints the URL once it is bound; serves until SIGINT or SIGTERM, or a `die` fault (exit code 1)."""
    from harness.mockserver.connection import DiedError
    from harness.mockserver.server import Server  # numpy, sockets: not for `bench --help`

    if args.wrong and not args.answers:
        raise SpecError("needs --answers", where="--wrong", hint="other answers are neither right nor wrong")
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        server = Server(_options(args))
        with server.loop.ended_by_signals():
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
    dialect = given["dialect"] = declared_dialect(args.dialect)
    given.setdefault("cache_block_tokens", dialect.cache_block_tokens)

    def of(cls: type[Any]) -> dict[str, Any]:  # argparse checked them
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


def _integer(least: int, most: int = sys.maxsize) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text)
        if value < least:
            raise ValueError(f"{value} is below {least}")
        if value > most:
            raise ValueError(f"{value} is above {most}")
        return value

    return _type(parse)


@_type
def _number(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(f"{text} is not a finite number of at least 0")
    return value
