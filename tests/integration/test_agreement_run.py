"""The agreement questions in a run: asked of every backend, stored, compared, and told apart."""

import json
from pathlib import Path

import pytest
from test_run import SMALL, bench, define, run_folder, summary


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty directory with a calm scripted server and two quick ones, of which one loses answers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "backends").mkdir()
    define("calm")
    define("quick", "--max-running", "64")
    define("lossy", "--max-running", "64", "--fault", "reset:every=5")
    for name in ("quick", "lossy"):
        path = Path("backends", f"{name}.toml")
        path.write_text(path.read_text().replace('"400"', '"5"').replace('"10"', '"1"'))
    return tmp_path


def test_answers_are_asked_twice_stored_and_compared(here):
    run = ("run", "--scenario", "fixed-length", "--backends", "quick,lossy", "--agreement", "--repeats", "1")
    done = bench(*run, *SMALL, code=4)  # lost answers make the cell of `lossy` INVALID
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
    assert "between backends" in (run_folder() / "table.md").read_text()

    # From the folder alone, with the questions that were put.
    first = summary()
    (run_folder() / "summary.json").unlink()
    bench("report", str(run_folder()))
    assert summary()["agreement"] == first["agreement"]
    kept = json.loads((run_folder() / "agreement" / "backends" / "quick.json").read_text())
    assert kept["unloaded"]["answers"]["capital-france"]["outcome"] == "ok"


def test_simulated_servers_are_not_asked_unless_told_to(here):
    bench("run", "--scenario", "fixed-length", "--backends", "calm", *SMALL)
    assert summary()["agreement"] is None
    assert not (run_folder() / "agreement").exists()
