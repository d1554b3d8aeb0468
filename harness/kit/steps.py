"""The first half hour on a GPU in three steps, each within its minutes. The standard library only.

What one action leaves and how it ended stands in `step.txt` next to the runs; a failure does not end a step.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.host import kit_env
from harness.host.helper_process import ended_within, without_credentials
from harness.host.system_files import text_of
from harness.kit import compile as compiling
from harness.kit.parts import unpack

_SPARE_S = 25  # for packing, of the step's minutes
LEAST_S = 10  # an action that has less is left out
_GRACE_S = 20  # from the interruption to the kill, to store what it has
_GPU = Path("/dev/nvidiactl")
_PRICE = "3.80"  # per GPU hour, an example: it makes the figures of cost


@dataclass
class Step:
    kit: Path
    work: Path
    results: Path
    python: Path
    deadline: float
    asked_model: str | None
    failed: int = 0

    @property
    def gpu(self) -> bool:
        return _GPU.exists()

    def left_s(self) -> float:
        return self.deadline - _SPARE_S - time.monotonic()

    def say(self, line: str) -> None:
        print(line, flush=True)
        with (self.results / "step.txt").open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def do(self, name: str, command: Sequence[str], limit_s: float = 1e9, cwd: Path | None = None) -> int:
        """Runs a command. Its output goes to NAME.log. It is interrupted at its limit, and at the step's."""
        limit_s = min(limit_s, self.left_s())
        if limit_s < LEAST_S:
            self.say(f"{name}: left out, the step's minutes are over")
            self.failed += 1
            return 124
        began = time.monotonic()
        with (self.results / f"{name}.log").open("wb") as log:
            log.write(f"$ {' '.join(command)}\n".encode())
            log.flush()
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=cwd or self.results,
                    env=without_credentials(os.environ),
                )
            except OSError as error:
                self.say(f"{name}: {error}")
                self.failed += 1
                return 127
            code = _awaited(process, limit_s)
        tail = text_of(self.results / f"{name}.log").splitlines()[-1:]
        self.say(
            f"{name}: exit {code} after {time.monotonic() - began:.0f} s{''.join(f': {row}' for row in tail)}"
        )
        self.failed += code != 0
        return code

    def bench(self, name: str, *arguments: str, limit_s: float = 1e9) -> int:
        return self.do(name, [str(self.python), "-P", "-m", "harness", *arguments], limit_s)

    def run(self, name: str, backends: str, model: str, *arguments: str, limit_s: float = 1e9) -> int:
        """`bench run` on the GPU, or as a rehearsal without one: a tiny model, and little work."""
        where = (
            ["--device", "cuda", "--price-per-gpu-hour", _PRICE]
            if self.gpu
            else ["--device", "cpu", *_LITTLE]
        )
        model = self.asked_model or (model if self.gpu else "random-llama-tiny")
        fixed = ["--launch", "process", "--repeats", "1", "--no-agreement", "--model", model]
        return self.bench(name, "run", "--backends", backends, *arguments, *fixed, *where, limit_s=limit_s)

    @property
    def llamacpp(self) -> str:
        return "llamacpp" if self.gpu else "llamacpp@built"

    def await_llamacpp(self, seconds: float) -> bool:
        self.say(f"llama.cpp: {compiling.start(self.kit, self.work)}")
        state = compiling.wait(self.work, min(seconds, self.left_s()))
        self.say(f"llama.cpp: {state}: {compiling.progress(self.work)}")
        if (log := self.work / "llama.cpp" / "log.txt").is_file():
            shutil.copy(log, self.results / "llama.cpp-build.log")
        return state == "built"


_LITTLE = ("--concurrency", "1,2", "--requests", "8", "--output-tokens", "8", "--set", "load.min_answers=8")
# At the 520 tokens/s of llama.cpp with 8B weights on an H200, 66 answers that warm up 32 slots take 16 s.
_BATCH = ("--scenario", "batch-1-8-32", "--output-tokens", "128", "--set", "load.warmup_requests=4")
# transformers answers one request at a time: more at once only wait.
_CHATS = (
    *("--scenario", "shared-prefix", "--concurrency", "1", "--requests", "32", "--output-tokens", "64"),
    *("--set", "load.min_answers=32", "--set", "load.warmup_requests=4", "--set", "load.think_time_s=0.2"),
)


def look(step: Step) -> int:
    """Records what is there, then does what needs no llama.cpp, which is compiled meanwhile."""
    step.say("GPU: yes" if step.gpu else "GPU: none, so this is a rehearsal on the CPU")
    step.say(f"llama.cpp: {compiling.start(step.kit, step.work)}")
    if step.gpu:
        step.do("nvidia-smi", ["nvidia-smi"], 60)
        step.do("nvidia-smi-q", ["nvidia-smi", "-q"], 60)
        step.do("nvcc", ["nvcc", "--version"], 60)
    step.do("packages", [kit_env.box_python(), "-m", "pip", "list"], 60)
    step.bench("version", "--version", limit_s=60)
    tests = step.kit / "tests.tar.gz"
    if step.gpu and tests.is_file():
        with tests.open("rb") as archive:
            unpack(archive, step.work / "tests")
        command = [str(step.python), "-m", "pytest", "-m", "gpu", "-p", "no:cacheprovider", "-rA"]
        step.do("pytest-gpu", [*command, "tests/integration/test_sampling_gpus.py"], 90, step.work / "tests")
    step.bench("doctor", "doctor", "--quick", limit_s=90)
    if _has_transformers(step):
        one_user = (*_BATCH, "--concurrency", "1", "--duration", "20")
        step.run("transformers", "transformers", "random-llama-1b", *one_user, limit_s=240)
    step.await_llamacpp(step.left_s())
    return _end(step)


def small(step: Step) -> int:
    _measure(step, "random-llama-1b")
    if step.gpu and _has_transformers(step):
        batch = (*_BATCH, "--duration", "30")
        step.run("continuous", "transformers@continuous-batching", "random-llama-1b", *batch)
    return _end(step)


def large(step: Step) -> int:
    _measure(step, "random-llama-8b")
    return _end(step)


def _measure(step: Step, model: str) -> None:
    """llama.cpp at its fullest, then both engines on the same work."""
    engines = ["transformers"] if _has_transformers(step) else []
    if step.await_llamacpp(step.left_s() - 120):
        engines.insert(0, step.llamacpp)
    else:
        step.failed += 1
    if not engines:
        return
    step.run("batch", engines[0], model, *_BATCH, "--duration", "45", limit_s=step.left_s() * 0.55)
    step.run("shared-prefix", ",".join(engines), model, *_CHATS)


def _has_transformers(step: Step) -> bool:
    return kit_env.requirements(step.kit, "transformers").is_file()


def _end(step: Step) -> int:
    step.say(f"actions that failed: {step.failed}" if step.failed else "every action ended well")
    return 1 if step.failed else 0


def _awaited(process: "subprocess.Popen[bytes]", limit_s: float) -> int:
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    except KeyboardInterrupt:  # which the terminal sent to it as well
        ended_within(process, _GRACE_S)
        raise
    return ended_within(process, _GRACE_S)


STEPS: dict[str, Callable[[Step], int]] = {"look": look, "small": small, "large": large}
