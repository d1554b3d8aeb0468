"""`bench run` as a person calls it, on the scripted server: what is printed, stored and returned."""

import json
import re
import shutil
import signal
import socket
import time
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest

from harness.mockserver import running
from harness.store import RunFolder
from tests.integration.conftest import inside
from tests.integration.scripted import (
    MEASURED,
    REPORTED,
    SMALL,
    begin,
    bench,
    bench_here,
    bench_in,
    define,
    only_cell,
    reach,
    run_folder,
    striking,
    summary,
)
from tests.long import others_long
from tests.schemas import fault

ONCE = ("--repeats", "1", "--set", "verdict.cool_down_s=0")
FEW = (*SMALL, "--requests", "8")
TTFT_MS = 300  # 5% of it is more than this machine's own delays


@pytest.fixture
def here(here):
    """With the backend `calm`; more come from define()."""
    define("calm", ttft_ms=TTFT_MS)
    return here


def made(here, backend, *arguments, more=(), code=0, ttft_ms=TTFT_MS):
    """A run of one backend in the folder `here`; what it printed."""
    with inside(here):
        define(backend, *arguments, ttft_ms=ttft_ms)
        return bench_in(
            here, "run", "--scenario", "fixed-length", "--backends", backend, *more, code=code
        ).stdout


@pytest.fixture(scope="module")
def calm_run(tmp_path_factory):
    """A run of `calm` that is only read: (where it was made, its JSON document)."""
    here = tmp_path_factory.mktemp("calm")
    return here, made(here, "calm", more=("--json", *REPORTED))


def test_two_backends_are_measured_on_the_same_bytes(here):
    define("other", ttft_ms=TTFT_MS)
    small = (*REPORTED, "--requests", "8", "--concurrency", "4", "--set", "load.think_time_s=0")
    done = bench("run", "--scenario", "shared-prefix", "--backends", "calm,other", *small, "--repeats", "2")
    assert "SIMULATED" in done.stdout
    result = summary()
    assert result["state"] == "complete"
    assert result["simulated"]
    assert [cell["label"] for cell in result["cells"]] == ["calm", "other", "other", "calm"]
    assert "INVALID" not in {cell["validity"]["verdict"] for cell in result["cells"]}
    by_repeat = [{c["workload_sha256"] for c in result["cells"] if c["repeat"] == r} for r in (0, 1)]
    assert [len(hashes) for hashes in by_repeat] == [1, 1]
    assert by_repeat[0] != by_repeat[1]
    for cell in result["cells"]:
        assert cell["requests"]["ok"] == cell["requests"]["planned"] == 8
        assert cell["ttft_ms"]["p50"] >= TTFT_MS
        assert cell["prefix_cache_source"] == "usage"
        # Two waves of whole chats and what is answered meanwhile, not the two requests asked for.
        assert cell["requests"]["warmup"] == 20
        assert cell["server"]["output_tokens"] == (8 + 20) * 8
    for name in ("table.txt", "report.html", "manifest.json", "plan.json"):
        assert (run_folder() / name).stat().st_size > 0


def test_a_report_is_rebuilt_from_a_copied_folder(calm_run, tmp_path):
    first, elsewhere = summary(calm_run[0]), tmp_path / "elsewhere"
    shutil.copytree(run_folder(calm_run[0]), elsewhere)
    for derived in ("summary.json", "report.html", "table.txt"):
        (elsewhere / derived).unlink()
    bench("report", str(elsewhere), pictures=True)
    assert json.loads((elsewhere / "summary.json").read_text()) == first
    for derived in ("report.html", "table.txt"):
        assert (elsewhere / derived).stat().st_size > 0
    assert list((elsewhere / "plots").glob("*.svg"))


def test_json_is_one_document_on_stdout(calm_run):
    printed = json.loads(calm_run[1])
    assert fault(printed, "concluded") is None
    assert printed.pop("conclusion")["next_steps"]
    assert printed == summary(calm_run[0])


def test_an_open_loop_keeps_its_schedule(here):
    bench(
        *("run", "--scenario", "fixed-length", "--backends", "calm", "--rate", "40", "--requests", "30"),
        *("--output-tokens", "4", "--no-probe", "--no-report"),
    )
    (cell,) = summary()["cells"]
    assert cell["load"]["kind"] == "rate"
    assert cell["requests"]["ok"] == 30
    assert cell["ttft_ms"]["p50"] >= cell["ttft_service_ms"]["p50"]


def test_a_scenario_file_shapes_the_rate(here):
    """Ten seconds' worth of a constant 8/s, squeezed into bursts of a quarter second every half second."""
    shape = "[{seconds=0.25, start=2, end=2}, {seconds=0.25, start=0, end=0}]"
    bench(
        *("run", "--scenario", "fixed-length", "--backends", "calm", "--rate", "8", "--arrival", "constant"),
        *("--set", f"load.profile={shape}", "--set", "load.repeat_profile=true"),
        *("--set", "load.warmup_requests=0", "--requests", "16", "--output-tokens", "2"),
        *("--no-probe", "--no-report"),
    )
    records, _facts = RunFolder(run_folder()).read_cell("000-calm-r8-r0")
    seconds = records.requests["intended_ns"] / 1e9
    assert len(seconds) == 16
    assert ((seconds % 0.5) < 0.25 + 1e-6).all()


def test_a_closed_loop_thinks(here):
    bench(
        *("run", "--scenario", "fixed-length", "--backends", "calm", "--concurrency", "4", "--requests", "8"),
        *("--output-tokens", "2", "--no-probe", "--no-report", "--set", "load.warmup_requests=0"),
        *("--set", "load.think_time_s=0.3", "--set", "load.think_time=constant"),
    )
    records, _facts = RunFolder(run_folder()).read_cell("000-calm-c4-r0")
    rows = records.requests
    assert (rows["sent_ns"][:4] >= 0.3e9).all()
    assert (np.sort(rows["sent_ns"])[4:] >= np.sort(rows["end_ns"])[:4] + 0.3e9).all()


def test_a_gate_on_the_limits_fails_the_run_that_misses_them(here):
    limits = {"slo.ttft_ms.p50": TTFT_MS / 2, "slo.e2e_ms.max": 1e6}
    words = [word for key, ms in limits.items() for word in ("--set", f"{key}={ms}")]
    gate = ("--fail-on", "limits", "--junit", "out/junit.xml")
    run = ("run", "--scenario", "fixed-length", "--backends", "calm", *FEW, *ONCE, *words)
    missed = bench(*run, *gate, code=1)
    assert "gate: failed\n  limit: calm c8 TTFT p50: " in missed.stdout
    tests = Path("out/junit.xml").read_text()
    assert tests.count("<testcase ") == 2
    assert tests.count("<failure ") == 1
    kept = bench(*run, *gate, "--set", "slo.ttft_ms.p50=1e6")
    assert kept.stdout.endswith("gate: passed\n")
    assert "<failure " not in Path("out/junit.xml").read_text()


def test_a_dry_run_starts_nothing(here):
    done = bench_here(
        "run", "--scenario", "shared-prefix", "--backends", "calm", "--repeats", "2", "--dry-run"
    )
    assert "1 engine × 2 loads × 2 repeats" in done.stdout
    assert "003-calm-c4-r1" not in done.stdout
    cells = bench_here(
        "run", "--scenario", "shared-prefix", "--backends", "calm", "--repeats", "2", "--dry-run", "-v"
    )
    assert "003-calm-c4-r1" in cells.stdout
    assert "4 cells" in done.stdout
    assert not Path("results").exists()
    document = json.loads(
        bench_here(
            *("run", "--scenario", "fixed-length", "--backends", "calm", "--rate", "2", "--requests", "20"),
            *("--dry-run", "--json"),
        ).stdout
    )
    assert document["expected_s"] == 12.0


def test_a_dry_run_knows_what_earlier_runs_took(calm_run, monkeypatch):
    monkeypatch.chdir(calm_run[0])
    done = bench_here("run", "--scenario", "fixed-length", "--backends", "calm", *SMALL, "--dry-run")
    assert "1 earlier run of" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "what", "hint"),
    [
        (
            ("--scenario", "shared-prefx", "--backends", "calm"),
            "unknown scenario",
            "did you mean 'shared-prefix'?",
        ),
        (
            ("--scenario", "fixed-length", "--backends", "clam"),
            "unknown backend 'clam'",
            "did you mean 'calm'?",
        ),
        (("--scenario", "fixed-length", "--backends", "calm@fast"), "has no variant 'fast'", ""),
        (("--scenario", "fixed-length", "--backends", "calm,calm"), "is listed twice", "--repeats"),
        (("--scenario", "fixed-length", "--backends", ","), "no backend given", ""),
        (("--scenario", "fixed-length", "--backends", "openai=host:1"), "is not an http", ""),
        (("--scenario", "fixed-length", "--backends", "openai"), "openai", "openai=http"),
        (("--scenario", "fixed-length", "--backends", "calm", "--launch", "compose"), "compose", ""),
        (
            ("--scenario", "fixed-length", "--backends", "calm", "--model", "smollm"),
            "unknown model",
            "did you mean",
        ),
        (("--scenario", "fixed-length", "--backends", "calm", "--repeats", "0"), "--repeats", ""),
        (
            ("--scenario", "fixed-length", "--backends", "calm", "--set", "load.requets=3"),
            "requets",
            "requests",
        ),
        (("--scenario", "fixed-length", "--backends", "calm", "--set", "load"), "is not KEY=VALUE", ""),
        (
            ("--scenario", "fixed-length", "--backends", "calm", "--engine-set", "x=1"),
            "engine value 'x'",
            "known",
        ),
        (
            ("--scenario", "fixed-length", "--backends", "calm", "--api-key", "s3"),
            "command line",
            "--api-key-env",
        ),
        (("--scenario", "fixed-length", "--backends", "calm", "--api-key-env", "NO_VAR"), "NO_VAR", ""),
        (("--scenario", "shared-prefix", "--backends", "calm", "--input-tokens", "9"), "input_tokens", ""),
        (
            ("--scenario", "fixed-length", "--backends", "calm", "--concurrency", "1,x"),
            "not a whole number",
            "",
        ),
        (("--scenario", "fixed-length", "--backends", "calm", "--rate", "0"), "must be above 0", ""),
    ],
)
def test_a_mistake_is_one_line_with_code_2(here, arguments, what, hint):
    done = bench_here("run", *arguments, code=2)
    assert what in done.stderr
    assert hint in done.stderr
    assert "s3" not in done.stderr
    assert not Path("results").exists()


def test_a_taken_port_is_named(here):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = bench(
            "run", "--scenario", "fixed-length", "--backends", "calm", "--engine-set", f"port={port}", code=3
        )
    assert str(port) in done.stderr


def test_an_engine_that_will_not_start_shows_its_log_and_the_others_are_measured(here):
    define("broken", "--no-such-flag")
    flags = ("--repeats", "3", *FEW)
    done = bench("run", "--scenario", "fixed-length", "--backends", "broken,calm", *flags, code=3)
    assert "--no-such-flag" in done.stderr
    assert done.stderr.count("broken: starting") == 2
    result = summary()
    assert [cell["label"] for cell in result["cells"]] == ["calm"] * 3
    texts = [warning["text"] for warning in result["warnings"] if warning["code"] == "not-measured"]
    assert "broken: ended while loading" in texts[0]
    assert "broken: not started again, because 2 starts in a row failed" in texts[-1]


def test_the_only_engine_that_will_not_start_is_the_error(here):
    define("broken", "--no-such-flag")
    done = bench("run", "--scenario", "fixed-length", "--backends", "broken", *SMALL, code=3)
    assert "--no-such-flag" in done.stderr
    assert done.stdout == ""


def test_engines_of_which_none_will_start_are_all_named_at_the_end(here):
    for name in ("broken", "worse"):
        define(name, "--no-such-flag")
    done = bench("run", "--scenario", "fixed-length", "--backends", "broken,worse", *SMALL, code=3)
    assert done.stderr.splitlines()[-1] == "error: broken, worse: no backend could be measured"


def test_a_server_that_dies_invalidates_its_cell_and_the_rest_goes_on(here):
    define("mortal", "--fault", "die:at=12")
    done = bench(
        "run", "--scenario", "fixed-length", "--backends", "mortal,calm", "--repeats", "1", *FEW, code=4
    )
    assert "died" in done.stderr
    mortal, calm = summary()["cells"]
    assert calm["validity"]["verdict"] != "INVALID"
    assert mortal["validity"]["verdict"] == "INVALID"
    assert {"engine-died", "failed-requests"} <= {reason["code"] for reason in mortal["validity"]["reasons"]}


def test_a_server_without_metrics_that_takes_a_while_to_be_gone_died_in_its_cell(here):
    """It answers no more, and its process goes on for half a second, as one that frees its GPUs does."""
    file = define("mortal", "--fault", "die:at=8")
    text = file.read_text().partition("[metrics]")[0]
    last = "sleep 0.5; yes bye | head -20; exit 7"
    lingers = f'["sh", "-c", "{{harness_python}} -m harness truth \\"$@\\"; {last}", "truth"]'
    file.write_text(text.replace('["{harness_python}", "-m", "harness", "truth"]', lingers))
    done = bench("run", "--scenario", "fixed-length", "--backends", "mortal", *ONCE, *FEW, code=4)
    (cell,) = summary()["cells"]
    found = {reason["code"]: reason["measured"] for reason in cell["validity"]["reasons"]}
    assert found["engine-died"] == "exit code 7"
    assert "r0: exit code 7\n  | torch.OutOfMemoryError: CUDA out of memory." in done.stderr
    assert "hint: it ran out of memory: " in done.stderr


def test_a_server_that_hangs_ends_its_cell_and_has_no_more_in_this_repeat(here):
    define("hung", "--fault", "stall:at=6:times=1000000")
    flags = (*ONCE, *SMALL, "--requests", "40", "--concurrency", "1,2", "--set", "request.timeout_s=1")
    done = bench("run", "--scenario", "fixed-length", "--backends", "hung", *flags, code=4)
    why = "3 requests in a row had no answer within 1 s"
    assert f"the engine hung during 000-hung-c1-r0: {why}" in done.stderr
    (cell,) = summary()["cells"]
    found = {reason["code"]: reason["measured"] for reason in cell["validity"]["reasons"]}
    assert found["engine-died"] == why
    assert cell["requests"]["unsent"] > 25


def test_a_server_that_dies_once_its_requests_timed_out_did_not_hang(here):
    """No connection breaks before the short request: only its process says it."""
    define("mortal", "--fault", "stall:at=6:times=4", "--fault", "die:at=10", ttft_ms=100)
    flags = (*ONCE, *SMALL, "--requests", "20", "--concurrency", "1,2", "--set", "request.timeout_s=1")
    done = bench("run", "--scenario", "fixed-length", "--backends", "mortal", *flags, code=4)
    assert "the engine died during 000-mortal-c1-r0: exit code 1" in done.stderr
    facts = json.loads((run_folder() / "cells" / "000-mortal-c1-r0" / "cell.json").read_text())
    assert (facts["engine_end"], facts["engine_exited"]) == ("died", "exit code 1")


def test_a_server_that_hangs_in_an_open_loop_has_no_more_in_this_repeat(here):
    """The schedule goes on to its end, and the next one would meet a silent server from its first request."""
    define("hung", "--fault", "stall:at=6:times=1000000")
    load = ("--rate", "20,40", "--requests", "40", "--output-tokens", "8", "--set", "load.warmup_requests=2")
    flags = (*ONCE, *load, "--no-probe", "--no-report", "--set", "request.timeout_s=1")
    done = bench("run", "--scenario", "fixed-length", "--backends", "hung", *flags, code=4)
    (cell,) = summary()["cells"]
    assert (cell["load"]["value"], cell["requests"]["unsent"]) == (20, 0)
    found = {reason["code"]: reason["measured"] for reason in cell["validity"]["reasons"]}
    assert re.fullmatch(r"its last \d\d requests had no answer within 1 s", found["engine-died"])
    assert f"the engine hung during {cell['cell']}: {found['engine-died']}" in done.stderr


def test_a_server_that_answers_again_after_a_hang_is_measured_on(here):
    """As one that was only too slow for its load: a lower load may be within its power."""
    define("paused", "--fault", "stall:at=6:times=3")
    flags = (*ONCE, *SMALL, "--requests", "20", "--concurrency", "1,2", "--set", "request.timeout_s=1")
    bench("run", "--scenario", "fixed-length", "--backends", "paused", *flags, code=4)
    paused, after = summary()["cells"]
    found = {reason["code"]: reason["measured"] for reason in paused["validity"]["reasons"]}
    why = "3 requests in a row had no answer within 1 s; once the load was gone it answered"
    assert found["engine-died"] == why
    assert after["requests"]["ok"] == 20


def test_a_server_that_dies_before_its_first_window_says_so_with_its_log(here):
    define("mortal", "--fault", "die:at=1")  # number 0 is the greeting; the next one fills its cache
    flags = (*ONCE, *FEW, "--set", "cache.state=primed")
    done = bench("run", "--scenario", "fixed-length", "--backends", "mortal,calm", *flags, code=3)
    (warning,) = [one for one in summary()["warnings"] if one["code"] == "not-measured"]
    assert warning["text"].startswith("mortal: the engine died after it was ready: exit code ")
    assert str(run_folder() / "logs") in warning["hint"]
    assert warning["text"].splitlines()[0] in done.stderr
    assert [cell["label"] for cell in summary()["cells"]] == ["calm"]


FAILURES = {  # the rarer first: of two faults the first strikes
    "http_error": "503:every=13",
    "reset": "reset:every=11",
    "truncated": "truncation:every=7",
    "stream_error": "error-event:every=5",
    "malformed": "malformed:every=4",
}
FAILING = 64  # requests


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    """The cell of a server that fails in five ways."""
    here = tmp_path_factory.mktemp("failed")
    made(
        here,
        "failing",
        *striking(FAILURES.values()),
        more=(*SMALL, *ONCE, "--requests", str(FAILING)),
        code=4,
        ttft_ms=100,
    )
    return only_cell(here)


@pytest.mark.parametrize("outcome", FAILURES)
def test_failures_are_counted_by_kind(failed, outcome):
    requests = failed["requests"]
    assert requests["outcomes"][outcome] >= 3
    assert requests["outcomes"].keys() == {"ok", *FAILURES}
    assert requests["ok"] + requests["failed"] == FAILING


def interrupt(process, when, number=signal.SIGINT):
    """Sends the signal once the file or the text that `when` waits for is there."""
    reach(process, when)
    process.send_signal(number)
    return process.communicate(timeout=60)


def answers_of(label, outcome="complete"):
    """With this outcome so far, as the running server counts them."""
    for path in Path("results").glob("*/manifest.json"):
        if engine := json.loads(path.read_text())["backends"][label].get("engine"):
            with urlopen(engine["base_url"] + "/truth/statistics", timeout=10) as response:
                return json.load(response)[outcome]
    return 0


@pytest.mark.parametrize(
    "number", list(others_long([signal.SIGINT, signal.SIGTERM], lambda number: number == signal.SIGINT))
)
def test_an_interruption_under_load_keeps_what_was_measured_and_the_run_is_resumed(here, number):
    define("other", ttft_ms=TTFT_MS)
    more = ("--repeats", "1", *SMALL, "--requests", "64")
    process = begin("run", "--scenario", "fixed-length", "--backends", "calm,other", *more)
    # Seconds before the end, for a busy machine takes some to say so.
    reach(process, lambda: answers_of("calm") >= 1)
    run = run_folder().name
    assert "is still running" in bench_here("resume", run, code=2).stderr
    # In the second cell: a greeting, three waves of warm-up, and nine of the measured requests.
    reach(process, lambda: answers_of("other") >= 1 + 24 + 9)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    result = summary()
    assert result["state"] == "interrupted"
    before, cut_off = result["cells"]
    assert cut_off["requests"]["ok"] >= 8
    assert cut_off["requests"]["cancelled"] >= 1
    assert run in out + err
    manifest = json.loads((run_folder() / "manifest.json").read_text())
    pid = manifest["backends"]["other"]["engine"]["pid"]
    assert not Path(f"/proc/{pid}").exists()

    definition = Path("backends/other.toml").read_text()
    define("other", "--gap-ms", "11")
    assert "backend 'other' has changed" in bench_here("resume", run, code=2).stderr
    Path("backends/other.toml").write_text(definition)

    bench("resume", run)
    result = summary()
    assert result["state"] == "complete"
    assert [cell["cell"] for cell in result["cells"]] == ["000-calm-c8-r0", "001-other-c8-r0"]
    assert result["cells"][0] == before
    assert result["cells"][1]["requests"]["ok"] == 64
    assert result["cells"][1]["workload_sha256"] == before["workload_sha256"]
    assert "nothing is missing" in bench_here("resume", run, code=2).stderr


@pytest.mark.long
def test_a_run_under_way_is_not_resumed_and_a_killed_one_is(here):
    process = begin("run", "--scenario", "fixed-length", "--backends", "calm", "--repeats", "2", *FEW)
    reach(process, lambda: list(Path("results").glob("*/cells/000-*/cell.json")))
    process.send_signal(signal.SIGSTOP)
    try:
        run = run_folder().name
        assert "is still running" in bench_here("resume", run, code=2).stderr
        assert "running" in bench_here("list", "runs").stdout
    finally:
        process.kill()
        process.communicate()
    assert "killed" in bench_here("list", "runs").stdout
    bench("resume", run)
    assert [cell["cell"] for cell in summary()["cells"]] == ["000-calm-c8-r0", "001-calm-c8-r1"]


def test_an_interruption_while_the_engine_starts(here):
    define("slow-start", "--fault", "loading:for=60")
    process = begin("run", "--scenario", "fixed-length", "--backends", "slow-start", *SMALL)
    logs = Path("results").glob
    _out, err = interrupt(
        process, lambda: any(path.stat().st_size for path in logs("*/logs/*.log")), signal.SIGTERM
    )
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert json.loads((run_folder() / "manifest.json").read_text())["state"] == "interrupted"


def test_attach_needs_nothing_but_a_url(here):
    with running(ttft_ms=TTFT_MS, gap_ms=10) as server:
        bench("run", "--scenario", "fixed-length", "--backends", f"openai={server.url}", *SMALL)
        assert len(server.truth()["records"]) >= 18
    result = summary()
    (cell,) = result["cells"]
    assert cell["launch"] == "attach"
    assert cell["requests"]["ok"] == 16
    assert any(warning["code"] == "approximate-lengths" for warning in result["warnings"])
    assert result["simulated"], "the server says that it is simulated"


def test_attach_to_nothing(here):
    done = bench(
        "run", "--scenario", "fixed-length", "--backends", "openai=http://127.0.0.1:9", *SMALL, code=3
    )
    assert "127.0.0.1:9" in done.stderr


def test_a_key_is_taken_from_the_environment_and_never_written(here, monkeypatch):
    monkeypatch.setenv("BENCH_TRUTH_API_KEY", "sk-very-secret")
    with running(ttft_ms=TTFT_MS, gap_ms=10) as server:
        backends = ("--scenario", "fixed-length", "--backends", f"openai={server.url}")
        refused = bench("run", *backends, *SMALL, code=3, MY_KEY="sk-wrong-key")
        assert "--api-key-env" in refused.stderr + "BENCH_API_KEY"
        assert not Path("results").exists(), "a run that cannot be leaves no folder"
        (here / "tmp").mkdir()
        before = set(Path("/proc").glob("[0-9]*"))
        given = {"MY_KEY": "sk-very-secret", "TMPDIR": str(here / "tmp")}
        process = begin("run", *backends, *SMALL, "--api-key-env", "MY_KEY", **given)
        seen = set()
        while process.poll() is None:
            seen |= seen_with_key(b"sk-very-secret", here / "tmp", process.pid, before)
            time.sleep(0.1)
        said = "".join(process.communicate())
    assert {name for name, _ in seen} >= {"harness.load", "harness.sampling"}
    assert {name for name, holds_key in seen if holds_key} == set()
    assert summary()["cells"][0]["requests"]["ok"] == 16
    assert "sk-very-secret" not in said
    for path in here.rglob("*"):
        if path.is_file():
            assert b"sk-very-secret" not in path.read_bytes(), path


def seen_with_key(key, tmp, bench, before):
    """Processes of the run, known by their folder for temporary files: module, and whether the key shows.

    `before`: folders below /proc of those that ran already. What bench itself was given in its environment
    is the user's own doing; its command line is looked at. So is that of its copies between fork and exec,
    which have the same one.
    """
    found, own = set(), Path(f"/proc/{bench}/cmdline").read_bytes()
    for entry in set(Path("/proc").glob("[0-9]*")) - before:
        try:
            environ, line = (entry / "environ").read_bytes(), (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if f"TMPDIR={tmp}".encode() in environ:
            shown = line if int(entry.name) == bench or line == own else environ + line
            words = line.decode().split("\0")
            found.add((words[words.index("-m") + 1] if "-m" in words else words[0], key in shown))
    return found


@pytest.mark.long
def test_an_interruption_before_the_first_request_that_counts_measures_nothing(here):
    define("dumb", "--fault", "stall:at=1:times=8:for=100")  # the warm-up does not end
    process = begin("run", "--scenario", "fixed-length", "--backends", "dumb", *SMALL)
    _out, err = interrupt(process, lambda: answers_of("dumb", "open") == 8)
    assert process.returncode == 130, err
    assert "interrupted, not measured" in err
    assert not list(Path("results").glob("*/cells/*/cell.json"))


def test_fields_of_the_scenario_reach_the_server_and_are_a_condition(here):
    """The server ends an answer after 3 tokens unless a request says `ignore_eos`."""
    define("short", "--stop-after-tokens", "3", ttft_ms=TTFT_MS)
    free = ("run", "--scenario", "fixed-length", "--backends", "short", *FEW, *ONCE)
    free += ("--set", "request.exact_output=false", "--set", "request.fields.ignore_eos=true")
    for out, more in (("one", ()), ("two", ("--set", "request.fields.top_k=20"))):
        bench(*free, *more, "--out", out, code=MEASURED)
    runs = [next(Path(out).iterdir()) for out in ("one", "two")]
    cells = [json.loads((run / "summary.json").read_text())["cells"][0] for run in runs]
    assert [cell["output_tokens"]["total"] for cell in cells] == [8 * 8, 8 * 8]
    done = bench_here("compare", *map(str, runs), code=1)
    shown = " ".join(done.stdout.split())
    assert 'request fields of the scenario: {"ignore_eos": true, "top_k": 20} (the new one), ' in shown
    done = bench(*free, "--set", "request.fields.temperature=1", code=2)
    assert "request.fields.temperature" in done.stderr
