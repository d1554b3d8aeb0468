"""The agreement questions in a run: asked of every backend, stored, compared, and told apart."""

import json
import signal
import threading
from pathlib import Path

import pytest

from harness.agreement import compare, interleaved, load_questions
from harness.engines.session import open_engine
from harness.engines.start.launch_choice import resolve_launch
from harness.engines.start.request import EngineRequest
from harness.mockserver import running
from harness.run.measure.agreement_answers import Asking, ask_all
from harness.spec.backend_refs import parse_backend_list
from harness.spec.models import choose_model
from tests.integration.scripted import SMALL, begin, bench, bench_here, define, run_folder, summary


@pytest.fixture
def here(here):
    """An empty directory with a calm scripted server and two quick ones, of which one loses answers."""
    define("calm")
    quick = {"ttft_ms": 5, "gap_ms": 1}
    define("quick", "--max-running", "64", **quick)
    define("lossy", "--max-running", "64", "--fault", "reset:every=5", **quick)
    return here


@pytest.mark.long
@pytest.mark.usefixtures("without_plots")
def test_answers_are_asked_twice_stored_and_compared(here):
    run = ("run", "--scenario", "fixed-length", "--backends", "quick,lossy", "--agreement", "--repeats", "1")
    asked = (*run, *SMALL, "--requests", "8", "-v")
    done = bench(*asked, code=4)  # lost answers make the cell of `lossy` INVALID
    found = summary()["agreement"]
    assert found["questions"] == 58
    assert list(found["backends"]) == ["quick", "lossy"]
    quick, lossy = found["backends"].values()
    assert quick["unloaded"]["asked"] == quick["under_load"]["same"] == 58
    assert quick["saturated"]["concurrency"] == 58
    assert lossy["unloaded"]["faults"]["failed"] > 5
    (pair,) = found["pairs"]
    assert pair["prompt_tokens_equal"] == pair["prompt_tokens_compared"]
    assert pair["same_text"] < 58
    assert "between backends" in done.stdout

    # From the folder alone, with the questions that were put.
    first = summary()
    (run_folder() / "summary.json").unlink()
    bench_here("report", str(run_folder()))
    assert summary()["agreement"] == first["agreement"]
    assert "between backends" in (run_folder() / "table.md").read_text()
    kept = json.loads((run_folder() / "agreement" / "backends" / "quick.json").read_text())
    assert kept["unloaded"]["answers"]["capital-france"]["outcome"] == "ok"


@pytest.mark.long
def test_an_engine_that_dies_of_a_question_is_named_and_has_no_answers(here):
    """The cell has 40 requests, and is measured up to three times where this machine's client was late.

    So the 150th is one of its 116 questions in any case.
    """
    define("dying", "--fault", "die:at=150", ttft_ms=5, gap_ms=1)
    asked = ("run", "--scenario", "fixed-length", "--backends", "dying", "--agreement", *SMALL)
    bench(*asked, "--no-probe", code=(0, 4))
    (warning,) = [one for one in summary()["warnings"] if one["code"] == "agreement-missing"]
    assert "dying: the engine died: exit code 1" in warning["text"]
    assert summary()["agreement"] is None
    assert not (run_folder() / "agreement").exists()


@pytest.mark.long
@pytest.mark.time
def test_a_slow_engine_is_asked_for_so_long_only(here):
    with running(ttft_ms=300, gap_ms=1, max_running=64) as server:
        (ref,) = parse_backend_list(f"truth={server.url}")
        name, model = choose_model(None)
        launch = resolve_launch(ref, "auto")
        with open_engine(EngineRequest(ref, launch, name, model, log_path=here / "log"), print) as engine:
            some = (ref.definition, engine, interleaved(load_questions()))
            asked = ask_all(*some, print, threading.Event(), Asking(limit_s=2))
    unloaded, saturated = asked.unloaded.answers, asked.saturated.answers
    assert 4 <= len(unloaded) <= 7
    assert saturated.keys() == unloaded.keys()
    found = compare(load_questions(), {"slow": asked}).backends["slow"]
    assert found.unloaded.asked == sum(found.under_load.values()) == len(unloaded)


@pytest.mark.long
def test_simulated_servers_are_not_asked_unless_told_to(here):
    bench("run", "--scenario", "fixed-length", "--backends", "calm", *SMALL)
    assert summary()["agreement"] is None
    assert not (run_folder() / "agreement").exists()


@pytest.mark.long
def test_an_interrupted_run_asks_what_is_missing(here):
    path = Path("backends", "calm.toml")
    path.write_text(path.read_text().replace('"400"', '"100"'))
    asked = ("run", "--scenario", "fixed-length", "--backends", "calm", "--agreement", *SMALL)
    with begin(*asked) as process:
        told = iter(process.stderr)
        assert any("agreement questions" in line for line in told)
        process.send_signal(signal.SIGINT)
        rest = "".join(told)
    assert process.returncode == 130, rest
    assert summary()["state"] == "interrupted"
    assert summary()["agreement"] is None
    measured = summary()["cells"]
    bench("resume", str(run_folder()))
    assert summary()["state"] == "complete"
    assert summary()["agreement"]["backends"]["calm"]["saturated"]["asked"] == 58
    assert summary()["cells"] == measured, "no cell is measured again"
