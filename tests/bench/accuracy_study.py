"""How small a loss of accuracy is seen, how often one is claimed that is none, and how long that takes.

    python -m tests.bench.accuracy_study [--number 2000] [--seed 0] [--discord 0.15]
    python -m tests.bench.accuracy_study --wire 10

Two engines answer the same questions: --discord of them are right in one of the two alone, and `loss` is what
the second has fewer right of. Both are asked until the test decides, at the looks of harness/stats/paired.py.
--wire: so many runs of the whole of bench, each against two scripted servers, of which one answers a share
wrongly only with more than four requests in flight. Prints Markdown tables.
"""

import json
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from harness.agreement import load_questions, made_questions, messages_of
from harness.mockserver import running
from harness.stats.paired import LEVEL, change
from tests.bench.command import bench, options

QUESTIONS = (58, 358, 658, 1058)
LOSSES = (0.0, 0.03, 0.05, 0.08)
WIRE_QUESTIONS, WIRE_WRONG = 600, (0.0, 0.05, 0.08)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--number", type=int, default=2000, help="experiments per row")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--discord", type=float, default=0.15)
    parser.add_argument("--wire", type=int, default=0, metavar="RUNS")
    arguments = parser.parse_args()
    if arguments.wire:
        _on_the_wire(arguments.wire)
        return
    random = np.random.default_rng(arguments.seed)
    print("| questions | loss, points | loses | gains | as accurate | asked | interval holds it |")
    print("|---:" * 7 + "|")
    for questions in QUESTIONS:
        for loss in LOSSES:
            _row(questions, loss, arguments.discord, arguments.number, random)


def _row(questions: int, loss: float, discord: float, number: int, random: np.random.Generator) -> None:
    """`loss` is of the share of lost answers less that of gained ones; half of the rest is right in both."""
    lost, gained = (discord + loss) / 2, (discord - loss) / 2
    both = (1 - discord) / 2
    verdicts: Counter[str] = Counter()
    asked = holds = 0
    for _ in range(number):
        pairs = random.choice(4, questions, p=[lost, gained, both, 1 - lost - gained - both])
        first = "".join("1010"[pair] for pair in pairs)
        second = "".join("0110"[pair] for pair in pairs)
        found = change(first, second, LEVEL)
        assert found is not None
        verdicts[found.verdict] += 1
        asked += found.compared
        holds += found.low <= -loss <= found.high
    shares = " | ".join(f"{verdicts[name] / number:.1%}" for name in ("loses", "gains", "same"))
    print(
        f"| {questions} | {100 * loss:g} | {shares} | {asked / number:.0f} | {holds / number:.1%} |",
        flush=True,
    )


def _on_the_wire(runs: int) -> None:
    print("| wrong with more than 4 in flight | one at a time: loses | under load: loses | same |")
    print("|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        answers = Path(folder, "answers.json")
        known = {messages_of(one)[-1][1]: one.answer or one.accept[0] for one in _questions()}
        answers.write_text(json.dumps(known))
        for share in WIRE_WRONG:
            found = [_run(Path(folder), answers, share, seed) for seed in range(runs)]
            counts = [sum(verdicts[place] == "loses" for verdicts in found) for place in (False, True)]
            same = sum(verdicts[True] == "same" for verdicts in found)
            print(f"| {share:.0%} | {counts[0]} of {runs} | {counts[1]} of {runs} | {same} |", flush=True)


def _questions():
    return (*made_questions(WIRE_QUESTIONS), *(one for one in load_questions() if one.answer or one.accept))


def _run(folder: Path, answers: Path, wrong: float, seed: int) -> dict[bool, str]:
    """The verdict on the second server, one at a time and under load."""
    quick = {"ttft_ms": 3, "gap_ms": 0, "answers": answers, "seed": seed}
    out = folder / f"{wrong}-{seed}"
    with ExitStack() as servers:
        sound = servers.enter_context(running(**quick))
        breaks = servers.enter_context(running(**quick, wrong=f"{wrong}:above=4"))
        what = ("--scenario", "fixed-length", "--backends", f"truth={sound.url},openai={breaks.url}")
        load = ("--concurrency", "8", "--requests", "16", "--output-tokens", "8", "--repeats", "1")
        asked = ("--accuracy", WIRE_QUESTIONS, "--no-probe", "--no-report", "--out", out)
        bench("run", *what, *load, *asked, limit_s=600)
    (summary,) = out.glob("*/summary.json")
    accuracy = json.loads(summary.read_text())["agreement"]["accuracy"]
    return {one["under_load"]: one["verdict"] for one in accuracy if one["a"] != one["b"]}


if __name__ == "__main__":
    main()
