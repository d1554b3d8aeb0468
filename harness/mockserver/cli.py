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
from harness.mockserver.numerals import real_number, whole_number
from harness.mockserver.options import Options
from harness.mockserver.script import VOCABULARIES, Distribution

T = TypeVar("T")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "bench truth [options]"
    forms = "DIST is MS, uniform:LOW:HIGH, exponential:MEAN or lognormal:MEDIAN:SIGMA"
    group = parser.add_argument_group("timing", forms)
    distribution: Any = {"type": _type(Distribution.parse), "metavar": "DIST"}
    first, between = "time to first token (default: 100)", "time between tokens; 0: all at once (default: 50)"
    group.add_argument("--ttft-ms", **distribution, default="100", help=first)
    group.add_argument("--gap-ms", **distribution, default="50", help=between)
    _count(group, "--tokens", "tokens per answer if the request sets no limit (default: 128)")
    _count(group, "--stop-after-tokens", "end of text after N tokens, unless ignore_eos is set")
    _count(group, "--seed", "seed of times and faults (default: 0)", least=0)
    _switch(group, "--precise", "busy-wait before each write: uses a whole core, avoids late wake-ups")

    group = parser.add_argument_group("engine")
    known = f"imitate an API (default: truth, plain OpenAI): {', '.join(DIALECTS)}"
    group.add_argument("--dialect", choices=tuple(DIALECTS), default="truth", metavar="NAME", help=known)
    loading = "seconds of model loading; refuses or answers 503, as the engine does"
    _amount(group, "--loading-s", "S", loading)
    _count(group, "--max-running", "requests served at once; others wait (default: no limit)")
    _switch(group, "--finishes-abandoned", "generate on for clients that have left")
    _switch(group, "--interrupts", "end running streams when a new request comes")
    group.add_argument(
        "--no-kept-turns",
        dest="keeps_turns",
        action="store_false",
        help="refuse previous_response_id, as vLLM and SGLang do by default",
    )
    _count(group, "--cut-prompt-tokens", "silently read only the last N tokens of a longer prompt")
    prefill = "µs added to TTFT per uncached prompt token (default: 0)"
    _amount(group, "--prefill-us-per-token", "US", prefill)
    group.add_argument(
        "--answers",
        type=_type(read_answers),
        metavar="FILE",
        help="JSON object: the answer to each question that is known; other requests get made up words",
    )
    group.add_argument(
        "--wrong",
        type=_type(WrongShare.parse),
        metavar="SHARE[:above=N]",
        help="answer this share of them wrongly, 0 to 1; above: only with more than N requests running",
    )
    transfer = "ms added to TTFT, in which a prompt's KV cache comes from another engine (default: 0)"
    _amount(group, "--transfer-ms", "MS", transfer)
    _switch(group, "--no-prefix-cache", "disable the prefix cache")
    _count(group, "--cache-tokens", "capacity of the prefix cache, LRU (default: 262144)")
    _count(group, "--host-cache-tokens", "capacity of a second cache in host memory (default: none)")
    from_host = "µs added to TTFT per prompt token that comes from host memory (default: 0)"
    _amount(group, "--host-us-per-token", "US", from_host)
    _count(group, "--cache-block-tokens", "block size of the prefix cache (default: 16)")
    _count(group, "--image-tokens", "prompt tokens that stand for an image (default: 64)", least=0)
    _amount(group, "--image-ms", "MS", "ms added to TTFT per image (default: 0)")
    again = "images that are not encoded again when they come again, LRU (default: 0)"
    _count(group, "--image-cache", again, least=0)
    audio = "ms added to a transcript for each second of its recording (default: 0)"
    _amount(group, "--audio-ms-per-s", "MS", audio)
    _count(group, "--adapters", "answer for adapter-1 to adapter-N (default: 0)", least=0)
    _count(group, "--adapter-slots", "adapters in memory at once, LRU (default: 1)")
    swap = "ms added to TTFT where an adapter is not in memory (default: 0)"
    _amount(group, "--adapter-swap-ms", "MS", swap)
    adapter = "µs added to TTFT per uncached prompt token with an adapter (default: 0)"
    _amount(group, "--adapter-us-per-token", "US", adapter)
    _count(group, "--chars-per-token", "characters per token of the tokenizer (default: 4)")
    group.add_argument("--model-name", metavar="NAME", help="served model name (default: simulated)")

    group = parser.add_argument_group("streaming habits")
    role = "role-only chunk: none, at once, or with the first token (default: first)"
    group.add_argument("--role", choices=get_args(Role), help=role)
    _count(group, "--empty-delta-every", "send an empty delta before every Nth event", least=0)
    _count(group, "--reasoning-tokens", "make the first N tokens of a chat reasoning", least=0)
    _habit(group, "--counts-reasoning", "count reasoning tokens in the usage of a chat")
    reasoning = "field of reasoning tokens (default: reasoning_content)"
    group.add_argument("--reasoning-field", metavar="NAME", help=reasoning)
    _count(group, "--first-event-tokens", "tokens of the first event (default: 1)")
    _count(group, "--tokens-per-event", "tokens per event after the first (default: 1)")
    _count(group, "--events-per-write", "events per write after the first (default: 1)")
    _amount(group, "--keepalive-ms", "MS", "send an SSE comment after MS of silence")
    _habit(group, "--crlf", "end SSE lines with \\r\\n")
    _habit(group, "--no-done", "omit data: [DONE]")
    usage = "when to send usage (default: asked, if the request asks for it)"
    group.add_argument("--usage", choices=get_args(Usage), help=usage)
    framing = "framing of streams (default: chunked)"
    group.add_argument("--framing", choices=get_args(Framing), help=framing)
    _habit(group, "--gzip", "compress for clients that accept it")
    _habit(group, "--hang-up", "close the connection after each stream without saying so")
    _habit(group, "--late-headers", "send the response head with the first event")
    _habit(group, "--early-hints", "send a 103 response first")
    words = "unicode adds multi-byte and escaped tokens (default: ascii)"
    group.add_argument("--vocabulary", choices=tuple(VOCABULARIES), help=words)

    parser.add_argument_group("faults", f"KIND is one of {', '.join(KINDS)}").add_argument(
        "--fault",
        dest="faults",
        action="append",
        type=_type(Fault.parse),
        metavar="KIND[:every=N|:p=SHARE|:at=K[:times=N]][:after=TOKENS][:for=SECONDS]",
        help="inject a fault (repeatable; the first that matches a request wins; default: every request)",
    )

    group = parser.add_argument_group("process")
    group.add_argument("--host", metavar="ADDRESS", help="address to listen on (default: 127.0.0.1)")
    _count(group, "--port", "port to listen on (default: 0, a free one)", least=0, most=65_535)
    pem = "PEM file with private key and certificate; serves https"
    group.add_argument("--tls-pem", metavar="FILE", help=pem)
    kept = "keep only the last N requests and their turns for /truth, for long loads (default: all)"
    _count(group, "--keep-requests", kept)
    _switch(group, "--until-stdin-closes", "exit when stdin closes")


Group = argparse._ArgumentGroup


def _count(group: Group, flag: str, words: str, *, least: int = 1, most: int = sys.maxsize) -> None:
    group.add_argument(flag, type=_integer(least, most), metavar="N", help=words)


def _amount(group: Group, flag: str, unit: str, words: str) -> None:
    group.add_argument(flag, type=_number, metavar=unit, help=words)


def _switch(group: Group, flag: str, words: str, default: bool | None = False) -> None:
    group.add_argument(flag, action="store_true", default=default, help=words)


def _habit(group: Group, flag: str, words: str) -> None:
    """Leaves the habit to the dialect where it is not given."""
    _switch(group, flag, words, None)


def serve(options: Options) -> ExitCode:
    """Prints the URL once it is bound; serves until SIGINT or SIGTERM, or a `die` fault (exit code 1)."""
    from harness.mockserver.connection import DiedError
    from harness.mockserver.server import Server  # numpy, sockets: not for `bench --help`

    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        server = Server(options)
        with server.loop.ended_by_signals():
            print(server.url, flush=True)
            server.run()
    except KeyboardInterrupt:
        return ExitCode.OK
    except DiedError:
        print(options.dialect.out_of_memory, "(simulated: a `die` fault struck)", file=sys.stderr)
        return ExitCode.LIMIT_FAILED
    return ExitCode.OK


def options_of(args: argparse.Namespace) -> Options:
    """A flag that was not given leaves the default to the dialect or the dataclass. Raises SpecError."""
    if args.wrong and not args.answers:
        raise SpecError("needs --answers", where="--wrong", hint="other answers are neither right nor wrong")
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


def _integer(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = whole_number(text)
        if value < least:
            raise ValueError(f"{value} is below {least}")
        if value > most:
            raise ValueError(f"{value} is above {most}")
        return value

    return _type(parse)


@_type
def _number(text: str) -> float:
    value = real_number(text)
    if not 0 <= value < float("inf"):
        raise ValueError(f"{text} is not a finite number of at least 0")
    return value
