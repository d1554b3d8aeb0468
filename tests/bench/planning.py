"""CPU seconds and memory to plan a cell: prompts made, counted, hashed, put on disk, rendered as bodies.

`python -m tests.bench.planning [--count N]`. Each line is a process of its own; exits 1 where ten times the
requests take more than twice the memory, or a request of the larger plan more than twice the time.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.apis import BLANK
from harness.engines.speak.dialect import Chat, render_body
from harness.run.measure.job import written
from harness.spec.backend_refs import load_backend
from harness.spec.scenario import Request, load_scenario
from harness.workload.prompts.generate import generate
from harness.workload.prompts.text import TextMaker
from tests.factories.agents import Shape, write_weka

SCENARIOS = (
    "fixed-length",
    "short-classification",
    "shared-prefix",
    "rag",
    "agent-tree",
    "structured-output",
    "agent-sessions",
)
MOST_GROWTH = 2.0


def words(texts: list[str]) -> list[int]:
    """A tokenizer that costs little, so that planning itself is measured."""
    return [text.count(" ") + text.count(".") + 1 for text in texts]


def plan(name: str, count: int) -> dict[str, float]:
    """In this process; `text_mb` is what the prompts hold, `grown_mb` what memory they took at most."""
    backend, request, texts = load_backend("openai"), Request(), TextMaker(words)
    given = {}
    if name == "agent-sessions":  # a hundred calls each, prompts of 15,000 tokens on average
        shape = Shape(count // 100, 100, opening=500, growth=300, agents=0, block=64)
        given = {"prompts.file": str(write_weka(Path(tempfile.mkdtemp(), "trace.jsonl"), shape))}
    prompts = load_scenario(name, given).prompts
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    made = generate(prompts, count, 0, texts)
    planned = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bodies")
        bodies = (
            render_body(
                backend,
                "m",
                Chat(
                    [{"role": r, "content": BLANK * bool(one.call) + c} for r, c in one.messages],
                    one.max_tokens,
                ),
                request,
            )
            for one in made.requests
        )
        assert len(written(path, made, bodies)) == count
        size = path.stat().st_size
    rendered = time.process_time()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {
        "plan_s": planned - started,
        "render_s": rendered - planned,
        "text_mb": size / 2**20,
        "grown_mb": grown / 2**10,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--scenario", choices=SCENARIOS)
    parser.add_argument("--here", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        print(json.dumps(plan(arguments.scenario, arguments.here)))
        return 0
    print(
        f"{'scenario':<22}{'requests':>10}{'plan s':>9}{'render s':>10}{'bodies MiB':>12}{'memory MiB':>12}"
    )
    failed = False
    for name in [arguments.scenario] if arguments.scenario else SCENARIOS:
        found = []
        for count in (arguments.count // 10, arguments.count):
            command = [sys.executable, "-m", __spec__.name, "--scenario", name, "--here", str(count)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            one = json.loads(done.stdout)
            found.append(one)
            print(
                f"{name:<22}{count:>10,}{one['plan_s']:>9.1f}{one['render_s']:>10.1f}"
                f"{one['text_mb']:>12.0f}{one['grown_mb']:>12.0f}"
            )
        small, large = found
        slower = large["plan_s"] / 10 / small["plan_s"]
        # Columns of numbers do grow: some 300 bytes a request, against kilobytes of text.
        more = large["grown_mb"] / max(small["grown_mb"], arguments.count * 300 / 2**20)
        print(
            f"{'':<22}ten times the requests: {slower:.1f} times the time each, {more:.1f} times the memory"
        )
        failed |= slower > MOST_GROWTH or more > MOST_GROWTH
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
