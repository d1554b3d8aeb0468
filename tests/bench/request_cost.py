"""CPU time to take and settle one answer, as a load worker does, against reading its JSON in a plain loop.

    python -m tests.bench.request_cost [--answers 400] [--repeat 15]

The plain loop is json.loads of each event. Both times are of the same run: a slower machine does not change
their ratio. Prints a markdown table. Exits 1 where a ratio is above its limit, which is about a sixth more
than Python 3.11 needed when it was set.
"""

import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from harness.apis import CHAT, EMBEDDINGS, Api
from harness.load.exchange import Exchange
from harness.load.finalize import Finalizer
from harness.load.http1 import Answer
from harness.load.job import Promised
from harness.load.spill import Spill
from harness.load.stamps import StampClock, pack_realtime
from harness.load.tally import Tally
from harness.untrusted import Secrets
from tests.bench.command import options
from tests.factories.answers import CHUNKED, DONE, FINISH, USAGE, chunked, delta, event, head


def _chat(tokens: int) -> tuple[Api, list[bytes], list[bytes]]:
    """The API, the JSON of each event, and what the socket would bring."""
    texts = [delta(f" w{number}") for number in range(tokens)]
    documents = [delta("", role="assistant"), *texts, FINISH, USAGE]
    return CHAT, documents, [head(CHUNKED), chunked([event(part) for part in (*documents, DONE)])]


def _vector(numbers: int) -> tuple[Api, list[bytes], list[bytes]]:
    vector = [{"object": "embedding", "index": 0, "embedding": [number / 7 for number in range(numbers)]}]
    usage = {"prompt_tokens": 3, "total_tokens": 3}
    whole = json.dumps({"object": "list", "model": "m", "data": vector, "usage": usage}).encode()
    return (
        EMBEDDINGS,
        [whole],
        [head(f"content-length: {len(whole)}", content_type="application/json") + whole],
    )


ANSWERS = {
    "chat, 1 token": (_chat(1), 21.0),
    "chat, 128 tokens": (_chat(128), 1.1),
    "a vector of 384 numbers": (_vector(384), 1.85),
}


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--answers", type=int, default=400, metavar="N")
    parser.add_argument("--repeat", type=int, default=15, metavar="N")
    arguments = parser.parse_args()
    gc.disable()  # as in the window
    bounded = True
    print("| answer | settled, µs | plain loop, µs | ratio | at most |\n|---|--:|--:|--:|--:|")
    for name, ((api, documents, reads), most) in ANSWERS.items():
        settled, plain = [], []
        for _ in range(arguments.repeat):
            settled.append(_settled_us(api, reads, arguments.answers))
            plain.append(
                _per_answer_us(lambda _, parts=documents: [*map(json.loads, parts)], arguments.answers)
            )
        ratio = min(settled) / min(plain)
        print(f"| {name} | {min(settled):.1f} | {min(plain):.1f} | {ratio:.2f} | {most} |", flush=True)
        bounded = bounded and ratio <= most
    return 0 if bounded else 1


def _settled_us(api: Api, reads: list[bytes], count: int) -> float:
    clock, t0 = StampClock(), time.monotonic_ns()
    clock.sample()
    phases = np.ones(count, np.uint8)
    finalizer = Finalizer(
        t0, clock.to_monotonic_many, Secrets(), phases, 0, closed_loop=True, promised=Promised(), api=api
    )
    with tempfile.TemporaryDirectory() as folder:
        spill = Spill(Path(folder))
        tally = Tally(finalizer, spill)

        def settle(seq: int) -> None:
            answer = Answer()
            for read in reads:
                now = time.monotonic_ns()
                answer.take(read, pack_realtime(), [now, now, now])
            answer.close()
            tally.finalize(Exchange(seq, t0, seq, t0, 0, time.monotonic_ns(), answer, attempts=1))

        spent = _per_answer_us(settle, count)
        spill.close()
        assert tally.done == count
    return spent


def _per_answer_us(read: Callable[[int], object], count: int) -> float:
    began = time.process_time_ns()
    for number in range(count):
        read(number)
    return (time.process_time_ns() - began) / count / 1e3


if __name__ == "__main__":
    sys.exit(main())
