"""Verdicts as `bench run` reaches them on its own, on scripted servers of known speed."""

import json
import re
import shutil
from pathlib import Path

import pytest

from harness.store import RunFolder
from tests.integration.scripted import bench, bench_here, define, run_folder, summary

# 16 answers of 8 tokens a cell. What decides about verdicts stays at its default, but for the pause between
# two engines: a scripted server leaves nothing behind that would have to cool down.
SMALL = (
    *("--scenario", "fixed-length", "--concurrency", "4", "--requests", "16", "--no-report"),
    *("--set", "verdict.cool_down_s=0", "--output-tokens", "8"),
)
PRIMARY = "ttft_ms.p50"
QUICK = ("--no-probe", "--no-report")


@pytest.fixture
def engines(here):
    """`slow` is ten per cent slower than `calm` in first token and gap."""
    define("calm", ttft_ms=150, gap_ms=20)
    define("slow", ttft_ms=165, gap_ms=22)
    return here


@pytest.mark.time
def test_ten_per_cent_slower_is_called_so(engines):
    """By four repeats, where logarithms of the ratios deviate by 3.1% or less; by three, 1.7%."""
    done = bench("run", *SMALL, "--backends", "calm,slow", "--repeats", "4", "--no-probe", limit_s=400)
    result = summary()
    assert len(result["cells"]) == 2 * 4
    words = {(one["a"], one["b"], one["metric"]): one["verdict"] for one in result["comparison"]}
    for metric in ("ttft_ms.p50", "tpot_ms.p50", "e2e_ms.p50", "output_tokens_per_s"):
        assert words["calm", "slow", metric] == "faster"
    assert result["ranking"][PRIMARY] == "calm > slow"
    assert re.search(r"calm 1\.\d+× faster \(1\.\d+ to 1\.\d+\)", " ".join(done.stdout.split()))
    (primary,) = (one for one in result["comparison"] if one["primary"])
    low, _, high = primary["ratio"]
    assert low <= 150 / 165 + 0.01
    assert high >= 150 / 165 - 0.01
    folder = run_folder()
    bench("compare", str(folder), "--baseline", "calm")
    bench("compare", str(folder), "--baseline", "calm", "--fail-on", "slower", code=1)


@pytest.mark.long
@pytest.mark.time
def test_a_backend_against_itself_gives_the_floor_of_later_verdicts(engines):
    done = bench("run", *SMALL, "--backends", "calm", "--aa", "--repeats", "3", limit_s=200)
    result = summary()
    assert {cell["label"] for cell in result["cells"]} == {"calm#a", "calm#b"}
    # On a machine that is busy with other things equal engines may stay undecided, and no more.
    assert {one["verdict"] for one in result["comparison"]} <= {"same", "not enough runs"}
    (found,) = [one for one in result["noise"] if one["metric"] == PRIMARY]
    assert 0 <= found["difference"] < 0.05 < 0.5
    assert found["smallest_detectable"] > 0.02
    assert "calm differs from itself by" in done.stdout
    kept = json.loads(Path("cache", "noise.json").read_text())
    ((key, floors),) = kept.items()
    assert floors["c4"][PRIMARY] == found["difference_upper"] > found["difference"]
    planned = ("--backends", "calm,slow", "--repeats", "5", "--dry-run", "--json")
    described = json.loads(bench("run", *SMALL, *planned).stdout)
    assert len(described["cells"]) == 10

    shutil.rmtree("results")
    bench("run", *SMALL, "--backends", "calm,slow", "--repeats", "1", limit_s=100)
    manifest = RunFolder(run_folder()).read_manifest()
    assert manifest.backends["calm"].noise_key == key
    assert manifest.noise_floor == {"calm": floors}
    shutil.rmtree("results")
    other = (*SMALL[:-1], "9")  # tokens of an answer
    bench("run", *other, "--backends", "calm", "--repeats", "1", limit_s=100)
    assert RunFolder(run_folder()).read_manifest().noise_floor == {}


@pytest.mark.long
def test_a_rate_that_the_load_set_is_no_verdict(here):
    """Both answer all of 20 requests a second; the slower one only needs longer for the last of them."""
    define("quick", ttft_ms=150, gap_ms=20)
    define("patient", ttft_ms=150, gap_ms=40)
    asked = ("--scenario", "fixed-length", "--rate", "20", "--requests", "60", "--output-tokens", "10")
    metrics = ("--set", 'verdict.metrics=["tpot_ms.p50","output_tokens_per_s"]')
    several = ("--repeats", "3", "--no-agreement", "--set", "verdict.cool_down_s=0", *QUICK)
    more = ("--set", "verdict.primary=output_tokens_per_s", *metrics, *several)
    done = bench("run", *asked, *more, "--backends", "quick,patient", limit_s=300)
    result = summary()
    assert {cell["state"] for cell in result["cells"]} == {"under load"}
    words = {one["metric"]: one for one in result["comparison"]}
    assert words["output_tokens_per_s"]["verdict"] == "not comparable"
    assert words["tpot_ms.p50"]["verdict"] == "faster"
    assert "output_tokens_per_s" not in result["ranking"]
    said = " ".join(done.stdout.split())
    assert "not comparable: both served all that was sent: the load set the rate" in said


def test_an_engine_that_fails_is_not_faster_and_a_gate_names_it(here):
    """In every run some of its requests end in an error; what is left is as fast as before, or faster."""
    define("sound", ttft_ms=200, gap_ms=80)
    define("frail", "--fault", "503:every=4", ttft_ms=100, gap_ms=80)
    some = ("--repeats", "2", "--no-probe", "--no-agreement", "--requests", "8")
    less = ("--set", "load.warmup_requests=0", "--set", "load.min_answers=8")
    done = bench("run", *SMALL, *some, *less, "--backends", "sound,frail", code=4, limit_s=200)
    result = summary()
    primary = next(one for one in result["comparison"] if one["primary"])
    assert (primary["verdict"], primary["failed"]) == ("not comparable", [0, 2])
    assert result["ranking"][PRIMARY] == "sound ∦ frail (2 of 2 failed)"
    assert "Not comparable in TTFT p50: frail: 2 of 2" in " ".join(done.stdout.split())
    gate = bench_here("compare", str(run_folder()), code=1).stdout
    assert "missing: frail c4: INVALID failed-requests 2 of 2" in gate
