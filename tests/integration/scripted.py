"""The scripted server as a backend of a run, and bench as a person calls it."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from harness.cli.main import main
from harness.store import RunFolder
from tests.integration import forks
from tests.schemas import fault
from tests.waiting import until

_DEFINITION = """
[backend]
name = "NAME"
title = "scripted server"
licence = "Apache-2.0"
homepage = ""
weights = "none"
simulated = true
[server]
ready_path = "/health"
startup_timeout_s = 20
version = { path = "/version", key = "version" }
tokenize = { path = "/tokenize", text_field = "prompt", lists = true, extra = { add_special_tokens = false } }
[engine]
args = ["--host", "{host}", "--port", "{port}", "--ttft-ms", "TTFT", "--gap-ms", "GAP" ARGS]
values = { max_sequences = 8 }
[process]
program = ["{harness_python}", "-m", "harness", "truth"]
[dialect]
exact_output = { ignore_eos = true }
[prefix_cache]
enabled = true
reset = { path = "/reset_prefix_cache" }
[metrics]
path = "/metrics"
[metrics.counters]
prompt_tokens = "vllm:prompt_tokens_total"
cached_prompt_tokens = "vllm:prefix_cache_hits_total"
output_tokens = "vllm:generation_tokens_total"
"""
# Faults strike by number, and the probe's requests would count. A scripted server has nothing to cool down.
REPORTED = (
    *("--no-probe", "--set", "load.warmup_requests=2", "--set", "verdict.cool_down_s=0"),
    *("--requests", "16", "--concurrency", "8", "--output-tokens", "8"),
)
SMALL = (*REPORTED, "--no-report")
MEASURED = (0, 4)  # exit codes, where it is not tested how late this machine's client may be
HERE = Path()


def striking(faults):
    """The arguments of `bench truth` for these faults."""
    return [word for fault in faults for word in ("--fault", fault)]


def define(name, *arguments, ttft_ms=400, gap_ms=10):
    """Backend `name` with more arguments of `bench truth`; its file.

    By default so slow that this machine's own delays stay far below the validity limits (5% of the TTFT).
    """
    extra = "".join(f', "{argument}"' for argument in arguments)
    file, text = Path("backends", f"{name}.toml"), _DEFINITION
    for mark, value in (("NAME", name), (" ARGS", extra), ("TTFT", str(ttft_ms)), ("GAP", str(gap_ms))):
        text = text.replace(mark, value)
    file.write_text(text)
    return file


def command(*arguments):
    return [sys.executable, "-m", "harness", *arguments]


def begin(*arguments, **environment):
    """A `bench` that goes on meanwhile."""
    return subprocess.Popen(
        command(*arguments),
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def reach(process, when, what="what is waited for", every_s=0.05):
    """It must not end before."""

    def reached():
        if when():
            return True
        assert process.poll() is None, f"it ended before {what}: {process.communicate()}"
        return False

    until(reached, what, every_s=every_s)


def bench(*arguments, code=0, limit_s=120, cwd=None, pictures=False, **environment):
    """`code`: the exit code that it must have, or several."""
    environment = {**os.environ, "COLUMNS": "100", **environment}
    return _checked(forks.run(arguments, environment, cwd, limit_s, pictures=pictures), code)


def bench_here(*arguments, code=0):
    """As `bench`, in this process: for commands that start nothing."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), patch.dict(os.environ, COLUMNS="100"):
        found = main(arguments)
    return _checked(subprocess.CompletedProcess(arguments, found, out.getvalue(), err.getvalue()), code)


def _checked(done, code):
    allowed = (code,) if isinstance(code, int) else code
    assert done.returncode in allowed, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


def bench_in(here, *arguments, code=0):
    """In the folder `here`, which has its cache."""
    return bench(*arguments, code=code, limit_s=300, cwd=here, BENCH_CACHE=str(here / "cache"))


def run_folder(here=HERE):
    (folder,) = (here / "results").iterdir()
    return folder


def summary(here=HERE):
    """Of a run whose documents are all as their schemas say."""
    run = RunFolder(run_folder(here))
    run.read_manifest()
    for cell in run.cells():
        assert fault(run.read_json(f"cells/{cell}/cell.json"), "cell") is None
    document = run.read_json("summary.json")
    assert fault(document, "summary") is None
    return document


def only_cell(here=HERE):
    (cell,) = summary(here)["cells"]
    return cell
