"""`bench run` from a directory, on real engines."""

import subprocess
import sys

from harness.host.cpus import BF16, cpu_flags
from harness.model import as_json
from harness.store import RunFolder
from harness.summary import summarise_folder

# Compiled, it starts minutes later and answers the same: test_vllm.py starts it so, once.
VLLM = "vllm@eager"
# In the bf16 that such a CPU emulates, each prompt takes five times as long.
NUMBERS = ("--engine-set", "dtype=bfloat16" if BF16 & cpu_flags() else "dtype=float32")


def bench_run(here, scenario, backends, *arguments, limit_s=900, inside=()):
    """Its folder, and what it printed. On a busy machine cells may be INVALID. `inside`: what runs it."""
    asked = ["--scenario", scenario, "--backends", ",".join(backends), *arguments]
    if any(backend.startswith(("vllm", "sglang")) for backend in backends):
        asked += NUMBERS
    done = subprocess.run(
        [*inside, sys.executable, "-m", "harness", "run", *asked],
        cwd=here,
        capture_output=True,
        text=True,
        timeout=limit_s,
    )
    assert done.returncode in (0, 4), done.stderr
    (folder,) = (here / "results").iterdir()
    return RunFolder(folder), done.stdout


def cells_of(here, scenario, backends, *flags, inside=()):
    """One small run: its folder, and its cells by label."""
    once = ("--repeats", "1", "--profile", "cpu", "--no-agreement")
    folder, _ = bench_run(here, scenario, backends, *once, *flags, inside=inside)
    return folder, {cell["label"]: cell for cell in folder.read_json("summary.json")["cells"]}


def assert_computed_again(folder, *names):
    """What a run recorded lets its figures be computed again."""
    again, before = as_json(summarise_folder(folder)), folder.read_json("summary.json")
    for name in names:
        assert [cell[name] for cell in again["cells"]] == [cell[name] for cell in before["cells"]]
