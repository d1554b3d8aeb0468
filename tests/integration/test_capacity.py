"""`bench run --find-capacity` on scripted servers whose capacity is known."""

import shutil

import pytest

from harness.mockserver import running
from tests.integration.scripted import bench, bench_here, define, run_folder, summary

SEARCH = (
    *("run", "--scenario", "fixed-length", "--backends", "narrow", "--repeats", "1", "--find-capacity"),
    *("--concurrency", "1,8", "--requests", "12", "--output-tokens", "4", "--no-probe"),
)
LIMITS = ("--set", "slo.ttft_ms.p90=85")


@pytest.fixture
def found(here):
    """What a search printed. With a third request in flight every other one waits for one of the two slots,
    longer than the limit allows."""
    define("narrow", "--max-running", "2", ttft_ms=60, gap_ms=8)
    return bench(*SEARCH, *LIMITS, "--no-report", limit_s=200).stdout


@pytest.mark.time
def test_the_capacity_of_a_server_of_two_slots_is_two(found):
    (capacity,) = summary()["capacity"]
    assert (capacity["value"], capacity["kept_by_search"], capacity["interval"]) == (2, [2], [2, 2, 3])
    tested = [(one["value"], one["kept"], one["runs"]) for one in capacity["tested"]]
    assert tested == [(1, 1, 1), (2, 2, 2), (3, 0, 2)]
    assert capacity["tested"][0]["attainment"] == 1
    assert "narrow: 2 users keep the limits (95% interval 2 to 3; 5 probes in 1 search)" in found
    assert "nothing is missing" in bench("resume", str(run_folder()), code=2).stderr


@pytest.mark.time
@pytest.mark.long
def test_one_start_of_each_says_how_much_more_a_server_may_carry_without_a_verdict(here):
    define("narrow", "--max-running", "1", ttft_ms=60, gap_ms=8)
    define("wide", "--max-running", "4", ttft_ms=60, gap_ms=8)
    search = ["wide,narrow" if flag == "narrow" else flag for flag in SEARCH]
    done = bench(*search, *LIMITS, "--no-report", limit_s=200)
    (pair,) = summary()["capacity_pairs"]
    assert (pair["a"], pair["verdict"]) == ("wide", "undecided")
    low, _, high = pair["ratio"]
    assert low <= 4 <= high
    assert "undecided whether wide carries more or less than narrow: 4 times the load" in done.stdout
    assert "1 search on each side, 3 are needed" in " ".join(done.stdout.split())
    bench("verify", str(run_folder()))


@pytest.mark.long
@pytest.mark.time
def test_a_server_that_runs_is_searched_as_often_as_asked_for(here):
    define("narrow")
    with running(max_running=2, ttft_ms=60, gap_ms=8) as server:
        attached = [f"narrow={server.url}" if word == "narrow" else word for word in SEARCH]
        bench(*attached, "--repeats", "2", *LIMITS, "--no-report", limit_s=200)
    assert summary()["capacity"][0]["value"] == 2
    repeats = {cell["repeat"] for cell in summary()["cells"]}
    assert repeats == {0, 1, 2, 3}  # short ones, one of the second search at its other end, and long ones


@pytest.mark.long
@pytest.mark.time
@pytest.mark.usefixtures("found")
def test_a_search_that_was_cut_short_goes_on_at_its_last_load():
    (last,) = (run_folder() / "cells").glob("*-c3-r1")
    shutil.rmtree(last)
    kept = {cell: (cell / "cell.json").stat().st_mtime_ns for cell in (run_folder() / "cells").iterdir()}
    manifest = run_folder() / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"state": "complete"', '"state": "interrupted"'))
    (run_folder() / "checksums.json").unlink()  # they would tell that the manifest was edited
    bench("resume", str(run_folder()), "--no-report", limit_s=200)
    assert summary()["capacity"][0]["interval"] == [2, 2, 3]
    assert last.is_dir()
    assert kept == {cell: (cell / "cell.json").stat().st_mtime_ns for cell in kept}
    again = bench("report", str(run_folder()), limit_s=100)
    assert "2 users keep the limits" in again.stdout + (run_folder() / "report.html").read_text()


def test_a_search_without_limits_is_refused(here):
    define("narrow")
    assert "--find-capacity needs a limit to keep" in bench_here(*SEARCH, code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--probe-seconds", "10"), "only applies to --find-capacity"),
        (("--find-capacity", "--rate", "1,8", "--probe-seconds", "0"), "must be above 0"),
        (("--find-capacity", "--rate", "1,8", "--duration", "9"), "ends a probe after 9 s"),
        (
            ("--find-capacity", "--rate", "1", "--set", "load.profile=[{seconds=9,start=1,end=2}]"),
            "no capacity",
        ),
    ],
)
def test_a_search_that_cannot_be_made_is_refused(here, arguments, said):
    define("any")
    asked = ("run", "--scenario", "fixed-length", "--backends", "any", "--set", "slo.ttft_ms.p95=500")
    assert said in bench_here(*asked, *arguments, code=2).stderr
