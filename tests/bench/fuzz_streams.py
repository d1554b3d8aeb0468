"""Mutated answers through the whole reading path, against the plain reference parser.

    python -m tests.bench.fuzz_streams [--count 1000000] [--seconds 600] [--seed 0] [--processes 2]

Every stream starts as a good answer of some engine's habit, is damaged (bytes flipped, cut, doubled, swapped,
line ends changed), framed, cut into reads anywhere and read. Checked: nothing raises; text, event count and
event ends equal the reference's on the same body; a stream that was not damaged below SSE is never lost.
Exits 1 and prints the seed of the first stream that differs.
"""

import gzip
import multiprocessing
import random
import sys
import time
import traceback
from collections.abc import Callable

from harness.load.http1 import Answer, DecodeError
from harness.load.sse import parse_events
from harness.records.layout import Outcome
from tests.bench.command import options
from tests.factories.answers import CHUNKED, DONE, FINISH, USAGE, chunked, delta, event, head, play
from tests.factories.sse_reference import read_stream

_WORDS = ["", " the", "\n", '"', "\\", "é", "😀", "token", "}", "data: "]


def good_stream(rng: random.Random) -> bytes:
    end = rng.choice([b"\n", b"\n", b"\n", b"\r\n"])
    ascii_only = rng.random() < 0.5
    payloads = [delta("", role="assistant")] if rng.random() < 0.7 else []
    for _ in range(rng.randrange(1, 12)):
        word = rng.choice(_WORDS) if rng.random() < 0.4 else f" w{rng.randrange(99)}"
        payloads.append(
            delta(word, ascii_only=ascii_only) if rng.random() < 0.9 else delta(None, reasoning=word)
        )
    payloads += [FINISH, USAGE, DONE][: rng.randrange(4)]
    blocks = [event(payload, end) for payload in payloads]
    for block in (b": keepalive", b"foo: bar", b"id: 7" + end + b"retry: 10", b"foo"):
        if rng.random() < 0.1:
            blocks.insert(rng.randrange(len(blocks)), block + end * rng.randrange(1, 3))
    if rng.random() < 0.1:
        called = [
            {"index": 0, "id": "c", "function": {"name": "look_up", "arguments": rng.choice(["", "{}"])}}
        ]
        blocks[rng.randrange(len(blocks)) :] = [event(delta(None, tool_calls=called), end)] * 2 + blocks[-1:]
    return rng.choice([b"", b"", b"\xef\xbb\xbf"]) + b"".join(blocks)


def damage(rng: random.Random, data: bytes) -> bytes:
    mutable = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(mutable) + 1)
        size = rng.randrange(1, 20)
        match rng.randrange(6):
            case 0 if at < len(mutable):
                mutable[at] ^= 1 << rng.randrange(8)
            case 1:
                del mutable[at : at + size]
            case 2:
                mutable[at:at] = mutable[at : at + size]
            case 3:
                mutable[at:at] = rng.choice(
                    [b"\n", b"\r", b"\n\n", b"\r\n", b'"', b"\\", b"\0", b"\xff", b"data:"]
                )
            case 4:
                del mutable[at:]
            case _:
                mutable[at:at] = rng.randbytes(size)
    return bytes(mutable) or b"\n"


def frame(rng: random.Random, body: bytes) -> bytes:
    lines = []
    if rng.random() < 0.1:
        body, lines = gzip.compress(body, 1), ["content-encoding: gzip"]
    if rng.random() < 0.8:
        return head(*lines, CHUNKED) + chunked(pieces(rng, body))
    return head(*lines, f"content-length: {len(body)}") + body


def pieces(rng: random.Random, data: bytes) -> list[bytes]:
    cuts = sorted({rng.randrange(1, len(data)) for _ in range(rng.randrange(8))}) if len(data) > 1 else []
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True) if a < b]


def check(rng: random.Random) -> None:
    """One stream; raises AssertionError where it is not read like the reference does."""
    body = good_stream(rng)
    level = rng.randrange(3)  # nothing damaged; the events; the bytes on the wire
    if level == 1:
        body = damage(rng, body)
    wire = frame(rng, body)
    reads = pieces(rng, damage(rng, wire) if level == 2 else wire)
    settled = play(reads)
    if level < 2:
        reference = read_stream(body, ended=True)
        assert settled.text == reference.text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert len(settled.events) == reference.events
        assert settled.events["wire_bytes"].cumsum().tolist() == reference.ends
        ended = reference.done or reference.finished
        bad = reference.malformed or reference.errors or not reference.text_events or not ended
        assert (settled.outcome is Outcome.OK) == (not bad), settled.outcome
        return
    answer = Answer()
    for read in reads:
        answer.take(read, 0)
    answer.close()
    try:
        received, _ = answer.body()
    except DecodeError:
        return
    for ended in (True, False):
        parsed, reference = parse_events(received, ended=ended), read_stream(received, ended=ended)
        assert "".join(parsed.texts) == reference.text
        assert len(parsed.kinds) == reference.events


def work(
    first: int, step: int, count: int, deadline: float, tell: Callable[[tuple[int, int | None]], None]
) -> None:
    done = 0
    for number in range(first, count, step):
        try:
            check(random.Random(number))
        except Exception:  # whatever it is, it is the finding
            traceback.print_exc()
            tell((done, number))
            return
        done += 1
        if done % 1000 == 0 and time.monotonic() > deadline:
            break
    tell((done, None))


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0, help="number of the first stream")
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    started = time.monotonic()
    queue: multiprocessing.SimpleQueue[tuple[int, int | None]] = multiprocessing.SimpleQueue()
    last, deadline = args.seed + args.count, started + args.seconds
    children = [
        multiprocessing.Process(target=work, args=(args.seed + i, args.processes, last, deadline, queue.put))
        for i in range(args.processes)
    ]
    for child in children:
        child.start()
    results = [queue.get() for _ in children]
    for child in children:
        child.join()
    failed = [number for _, number in results if number is not None]
    done = sum(count for count, _ in results)
    print(
        f"{done} streams in {time.monotonic() - started:.0f} s, first difference: {min(failed, default=None)}"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
