"""`bench tune` on the scripted server, whose speed is a value of its definition: to the file, and its use."""

import json
import re
import signal
from pathlib import Path

import pytest

from harness.spec.tuned import Provenance, Tuned, as_toml, load_tuned
from harness.store import RunFolder
from tests.integration.scripted import begin, bench, bench_here, define, reach, striking
from tests.schemas import fault

WORK = (
    *("--scenario", "fixed-length", "--set", "load.requests=8", "--set", "load.warmup_requests=2"),
    *("--set", "prompts.output_tokens=4", "--set", "verdict.cool_down_s=0"),
    *("--set", "load.min_seconds=0", "--set", "load.min_answers=4"),
)
ORIGIN = Provenance(
    date_utc="2026-11-22T02:00:00+00:00",
    scenario="fixed-length",
    scenario_key="",
    workload_sha256="",
    load="c2",
    metric="ttft_ms.p50",
    model="",
    launch="process",
    host="",
    host_key="",
    engine_version="",
    budget_s=60,
    spent_s=50,
    trials=2,
    failed_trials=0,
    verdict="faster",
    runs=(),
)
TUNE = ("--load", "2", "--metric", "ttft_ms.p50", "--repeats", "3", *WORK)


def tunable(name, candidates, value=400, fault=None):
    """Backend `name`: its time to first token is a value that may be tuned."""
    file = define(name, *striking([fault] if fault else []))
    text = file.read_text().replace('"400"', '"{ttft_ms}"')
    text = text.replace("max_sequences = 8 }", f"max_sequences = 8, ttft_ms = {value} }}")
    file.write_text(text.replace("[process]", f"[engine.tunable]\nttft_ms = {candidates}\n[process]"))


@pytest.fixture
def config(here, monkeypatch):
    monkeypatch.setenv("BENCH_CONFIG", str(here / "config"))
    return here / "config"


def trials():
    (file,) = Path("results").glob("tune-*/trials.json")
    return json.loads(file.read_text())["trials"]


@pytest.mark.long
def test_what_is_faster_is_stored_and_can_be_used(config):
    tunable("dial", "[400, 200, -5]")
    done = bench("tune", "dial", "--budget", "90s", *TUNE, limit_s=240)
    assert "tuned dial is faster: ttft_ms=200" in done.stdout
    tuned = load_tuned(config / "variants" / "dial.toml")
    assert tuned.values == {"ttft_ms": 200}
    origin = tuned.provenance
    assert (origin.scenario, origin.load, origin.budget_s) == ("fixed-length", "c2", 90.0)
    assert re.match(r"faster: \d+\.\d% lower \(", origin.verdict)  # of tuned against default
    assert origin.failed_trials == sum(trial["value"] is None for trial in trials())
    assert origin.trials == len(trials()) == len(origin.runs) - 1
    # -5 is refused by the server at its start: a failed trial, not the end.
    refused = [trial["why"] for trial in trials() if trial["values"] == {"ttft_ms": -5}]
    assert len(refused) == 1
    assert "ended while loading" in refused[0]
    assert origin.engine_version
    assert all(Path(run, "summary.json").is_file() for run in origin.runs)

    listed = bench("list", "backends", "--json").stdout
    assert "dial@tuned" in listed
    assert "ttft_ms=200: tuned for fixed-length at c2" in listed

    bench("run", "--backends", "dial,dial@tuned", "--concurrency", "2", *WORK, "--repeats", "3", "--no-probe")
    run = next(RunFolder(path) for path in Path("results").iterdir() if not path.name.startswith("tune-"))
    summary, manifest = run.read_json("summary.json"), run.read_manifest()
    assert {cell["label"]: cell["division"] for cell in summary["cells"]} == {
        "dial": "default",
        "dial@tuned": "tuned",
    }
    assert manifest.backends["dial@tuned"].tuned["values"] == {"ttft_ms": 200}
    assert "tuned-elsewhere" not in [warning["code"] for warning in summary["warnings"]]
    assert summary["ranking"]["ttft_ms.p50"] == "dial@tuned >> dial"
    assert "divisions: dial@tuned tuned" in (run.path / "table.txt").read_text()
    assert all(fault(run.read_json(f"cells/{name}/cell.json"), "cell") is None for name in run.cells())


def test_a_file_tuned_elsewhere_is_told(config):
    tunable("dial", "[400, 200]")
    Path("mine.toml").write_text(as_toml(Tuned("dial", {"ttft_ms": 200}, ORIGIN)))
    quick = ("--no-probe", "--no-report", "--repeats", "1")
    done = bench("run", "--backends", "dial@mine.toml", "--concurrency", "4", *WORK, *quick, "-v")
    assert "tuned-elsewhere: dial@tuned was tuned" in " ".join(done.stdout.split())
    assert not config.exists()


def test_the_default_stands_where_nothing_is_faster(config):
    tunable("dial", "[200, 400]", value=200)
    done = bench("tune", "dial", "--budget", "60s", *TUNE, limit_s=240)
    assert "the default stands: no candidate was 2% better" in done.stdout
    assert not config.exists()
    # A candidate that is slower is tried once.
    assert len([trial for trial in trials() if trial["values"] == {"ttft_ms": 400}]) == 1


def test_a_metric_of_one_kind_of_request_can_be_tuned_for(config):
    """Here no request is of that kind, so the trial of the default ends it."""
    tunable("dial", "[400, 200]")
    kind = ("--scenario", "context-depth", "--metric", "by_kind.1k.ttft_ms.p50")
    done = bench("tune", "dial", "--budget", "1s", *kind, "--set", "load.requests=4", code=3)
    assert "the default has no TTFT p50 of 1k" in done.stderr
    assert "--budget" not in done.stderr  # more time would not help


def test_no_trial_is_too_short_for_the_metric(config):
    tunable("dial", "[400, 200]")
    done = bench("tune", "dial", "--budget", "1s", *TUNE)
    (trial,) = trials()
    assert trial["value"] >= 400, done.stderr
    whole = ("--set", "load.requests=4")  # two for each slot: no trial is longer
    done = bench("tune", "dial", "--budget", "1s", *TUNE, *whole, code=2)
    assert "load.requests: TTFT p50 needs 5 requests, and the scenario has 4" in done.stderr
    (trial,) = trials()  # of the search before: nothing was begun


def test_a_default_that_does_not_start_is_the_end(config):
    tunable("dial", "[200, 400]", value=-5)
    done = bench("tune", "dial", "--budget", "60s", *TUNE, code=3)
    assert "ended while loading" in done.stderr


def test_a_default_that_dies_under_load_is_not_measured_for_longer(config):
    """More requests would not help, and may take the time limit of each."""
    tunable("dial", "[400, 200]", fault="die:at=5")
    done = bench("tune", "dial", "--budget", "60s", *TUNE, code=3)
    (trial,) = trials()
    assert trial["why"].startswith("INVALID: engine-died, ")
    assert "backend dial: the default cannot be measured: engine-died, exit code 1" in done.stderr
    assert re.search(r"hint: see \S+/logs/dial-r0\.log; its run is \S+", done.stderr), done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("calm", "--budget", "10m"), "declares no [engine.tunable]"),
        (("dial", "--budget", "soon"), "'soon' is not a duration"),
        (("dial", "--budget", "0s"), "must be above 0"),
        (("dial", "--budget", "1m", "--metric", "speed"), "unknown metric 'speed'"),
        (("dial", "--budget", "1m", "--metric", "ttft_ms.p77"), "hint: did you mean 'ttft_ms.p99'?"),
        (("dial", "--budget", "1m", "--repeats", "2"), "must be at least 3"),
        (("dial", "--budget", "1m", "--load", "1.5"), "not a load"),
        (("dial,calm", "--budget", "1m"), "one backend at a time"),
        (("dial=http://127.0.0.1:9", "--budget", "1m"), "bench does not start this server"),
        (("dial", "--budget", "1m", "--to", "x.json"), "must end in .toml"),
        (("dial", "--budget", "1m", "--out", "x.toml"), "is the folder of the trials"),
        (("dial", "--budget", "1m", "--engine-set", "ttft_ms=9"), "declares no [engine.tunable]"),
    ],
)
def test_mistakes_cost_nothing(config, arguments, says):
    tunable("dial", "[400, 200]")
    define("calm")
    assert says in bench_here("tune", *arguments, *WORK, code=2).stderr
    assert not Path("results").exists()


@pytest.mark.long
def test_ctrl_c_keeps_what_was_tried(config):
    tunable("dial", "[400, 800, 200]")
    process = begin("tune", "dial", "--budget", "5m", *TUNE)
    reach(process, lambda: list(Path("results").glob("tune-*/trials.json")))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert len(trials()) >= 1
    assert not config.exists()
