"""An engine that another start finds changed: which cells it served is kept, and the reader is warned."""

import threading
from contextlib import contextmanager
from subprocess import PIPE, Popen

import pytest

from harness.store import RunFolder
from tests.integration.scripted import (
    MEASURED,
    SMALL,
    begin,
    bench,
    bench_here,
    command,
    define,
    run_folder,
    summary,
)

FEW = (*SMALL, "--requests", "8", "--no-agreement")
# Another version with half the cache from the second start on.
CHANGING = """
import sys
from pathlib import Path

import harness.mockserver.routes
from harness.cli.main import main

starts = Path(__file__).with_suffix(".starts")
again = starts.exists()
starts.touch()
harness.mockserver.routes.__version__ = "1.1" if again else "1.0"
sys.exit(main(["truth", *sys.argv[1:], "--cache-tokens", "100000" if again else "200000"]))
"""


@pytest.fixture
def changing(here):
    file = define("changing", ttft_ms=300)
    script = here / "changing.py"
    script.write_text(CHANGING)
    program = '["{harness_python}", "-m", "harness", "truth"]'
    text = file.read_text().replace(program, f'["{{harness_python}}", "-P", "{script}"]')
    file.write_text(
        text.replace("[engine]", '[[server.info]]\npath = "/version"\nkeys = ["kv_tokens"]\n[engine]')
    )


@pytest.mark.usefixtures("changing")
def test_repeats_of_two_versions_are_no_repeats_of_one_engine():
    done = bench("run", "--scenario", "fixed-length", "--backends", "changing", "--repeats", "2", *FEW)
    result = summary()
    (warning,) = [found for found in result["warnings"] if found["code"] == "engine-changed"]
    version = "engine version 1.0+simulated (r0), 1.1+simulated (r1)"
    assert warning["text"].endswith(f"{version}; kv_tokens 200000 (r0), 100000 (r1)")
    assert warning["backend"] == "changing"
    assert "engine-changed: changing changed during the run" in done.stdout
    folder = RunFolder(run_folder())
    found = [folder.read_facts(cell).engine.info for cell in folder.cells()]
    assert found == [{"kv_tokens": 200000}, {"kv_tokens": 100000}]
    shown = [cell["conditions"]["unclassified"]["info kv_tokens"] for cell in result["cells"]]
    assert shown == ["200000", "100000"]
    bench_here("verify", str(run_folder()))


@pytest.mark.parametrize(("after", "own", "several"), [("", 8, False), (":after=4", 16, True)])
def test_a_server_that_changes_its_model_within_a_cell_or_an_answer_is_in_doubt(here, after, own, several):
    define("switching", "--fault", f"other-model:every=2{after}")
    run = ("run", "--scenario", "fixed-length", "--backends", "switching", "--repeats", "1")
    done = bench(*run, *SMALL, code=MEASURED)
    (cell,) = summary()["cells"]
    facts = RunFolder(run_folder()).read_facts(cell["cell"])
    assert {model.answered: model.requests for model in facts.answered_models} == {
        "simulated": own, "other-simulated": 8
    }  # fmt: skip
    (reason,) = [found for found in cell["validity"]["reasons"] if found["code"] == "model-changed"]
    assert reason["verdict"] == "SUSPECT"
    assert reason["measured"].startswith("2 models: ")
    assert reason["measured"].endswith("; some answers name several") == several
    assert cell["conditions"]["answered_model"] == {}
    assert "model-changed" in done.stdout


@contextmanager
def listening(*arguments):
    """A scripted server that can be killed, and its URL."""
    with Popen(command("truth", *arguments), stdout=PIPE, text=True) as server:
        try:
            yield server, server.stdout.readline().split()[-1]
        finally:
            server.kill()


def test_a_running_server_that_is_down_while_a_repeat_begins_is_waited_for(here):
    """That repeat was lost."""
    timing = ("--dialect", "vllm", "--ttft-ms", "200", "--gap-ms", "5")
    with listening(*timing) as (first, url), listening(*timing) as (_second, other):
        backends = f"a=vllm={url},b=vllm={other}"
        what = ("--scenario", "fixed-length", "--backends", backends, "--repeats", "2", *SMALL)
        # Repeats are a b b a: `a` is away while `b` is measured twice.
        done = begin("run", *what, "--no-agreement", "--set", "load.min_seconds=0.1")
        limit = threading.Timer(90, done.kill)
        limit.start()
        shown = ""
        for line in done.stderr:
            shown += line
            if "b: attaching" in line:
                first.kill()
            if "a: waiting for http" in line:
                break
        with listening(*timing, "--port", url.rpartition(":")[2]):
            shown += "".join(done.communicate())
        limit.cancel()
    assert done.returncode in MEASURED, shown
    (warning,) = [found for found in summary()["warnings"] if found["code"] == "another-start"]
    assert warning["text"].startswith("a did not serve before repeat 2, and did after ")
    assert RunFolder(run_folder()).cells() == [
        "000-a-c8-r0",
        "001-b-c8-r0",
        "002-b-c8-r1",
        "003-a-c8-r1",
    ]
