"""`bench run --pairing blocks`: engines up together, blocks in turns, one interval over starts."""

import json
import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.host.cpus import usable_cpus
from harness.mockserver.process import running
from harness.store import RunFolder
from tests.integration.scripted import bench, bench_here, define, run_folder, summary
from tests.long import others_long

SMALL = (
    *("run", "--scenario", "fixed-length", "--concurrency", "4", "--requests", "8", "--output-tokens", "4"),
    *("--set", "load.warmup_requests=0"),
    *("--no-probe", "--no-agreement", "--no-report", "--set", "verdict.cool_down_s=0"),
    *("--set", "load.min_answers=8", "--set", "load.min_seconds=0.1", "--pairing", "blocks"),
)

pytestmark = pytest.mark.skipif(usable_cpus() < 2, reason="two engines need two cores")


@pytest.fixture
def engines(here):
    """`slow` is half as fast again as `calm`."""
    define("calm", ttft_ms=200, gap_ms=20)
    define("slow", ttft_ms=300, gap_ms=30)
    return here


ORDER = [
    *(("calm", 0, 0), ("slow", 0, 0), ("slow", 0, 1), ("calm", 0, 1)),
    *(("slow", 1, 2), ("calm", 1, 2), ("calm", 1, 3), ("slow", 1, 3)),
    *(("calm", 2, 4), ("slow", 2, 4), ("slow", 2, 5), ("calm", 2, 5)),
]


@pytest.mark.parametrize("starts", [*others_long([2, 3], lambda starts: starts == 2)])
def test_blocks_alternate_within_a_start_and_cores_are_swapped_between_starts(engines, starts):
    started = (*SMALL, "--backends", "calm,slow", "--repeats", str(starts), "--blocks", "2")
    planned = bench_here(*started, "--dry-run").stdout
    assert f"{starts} starts of 2 blocks" in planned
    assert f"{4 * starts} cells" in planned
    assert f"{2 * starts} engine starts" in planned
    done = bench(*started, limit_s=200)
    result = summary()
    order = [(cell["label"], cell["start_number"], cell["repeat"]) for cell in result["cells"]]
    assert order == ORDER[: 4 * starts]
    seats = {(cell["label"], cell["start_number"]): cell["cores"] for cell in result["cells"]}
    assert seats["calm", 0] == seats["slow", 1] == seats.get(("calm", 2), seats["calm", 0])
    assert seats["slow", 0] == seats["calm", 1]
    assert not set(seats["calm", 0]) & set(seats["slow", 0])
    (verdict,) = [one for one in result["comparison"] if one["primary"]]
    assert verdict["runs"] == [starts, starts]
    assert verdict["measured"] == [2 * starts, 2 * starts]
    if starts == 3:
        assert "over 3 starts with 6 pairs of blocks" in verdict["why"]
        assert {"within", "between", "blocks", "starts", "seconds"} <= verdict["levels"].keys()
    else:
        assert verdict["why"] == "2 starts each, 3 are needed"
    assert "pairing by blocks: all engines were up" in done.stdout
    assert f"{2 * starts} blocks each" in done.stdout
    manifest = RunFolder(run_folder()).read_manifest()
    assert (manifest.pairing, manifest.blocks) == ("blocks", 2)
    bench_here("verify", str(run_folder()))


@pytest.mark.long
def test_a_start_with_a_block_that_is_gone_is_measured_again(engines):
    """All of its blocks are: engines alternated in them, and one in another life has no partner."""
    bench(*SMALL, "--backends", "calm,slow", "--repeats", "2", "--blocks", "2", limit_s=200)
    folder = run_folder()
    names = [path.name for path in sorted((folder / "cells").iterdir())]
    shutil.move(folder / "cells" / names[5], engines / "gone")
    done = bench("verify", str(folder), code=1)
    assert f"{names[5]} was planned and is missing" in done.stdout + done.stderr
    before = {name: RunFolder(folder).read_facts(name).t0_unix_ns for name in names if name != names[5]}
    done = bench("resume", str(folder), limit_s=200)
    assert f"{names[4]}: measured again with the cells next to it" in done.stderr
    result = summary()
    assert [cell["cell"] for cell in result["cells"]] == names
    after = {name: RunFolder(folder).read_facts(name).t0_unix_ns for name in names}
    assert [name for name in before if before[name] == after[name]] == names[:4]
    assert [after[name] for name in names] == sorted(after.values())
    assert [found for found in result["warnings"] if found["code"] == "another-start"] == []
    bench("verify", str(folder))


@pytest.mark.long
def test_two_running_servers_get_a_verdict_about_this_start(here):
    with ExitStack() as stack:
        urls = [stack.enter_context(running(ttft_ms=ms, gap_ms=10, tokens=4)).url for ms in (60, 90)]
        listed = ",".join(f"openai={url}" for url in urls)
        done = bench(*SMALL, "--backends", listed, limit_s=200)
    result = summary()
    assert {cell["start_number"] for cell in result["cells"]} == {0}
    (verdict,) = [one for one in result["comparison"] if one["primary"]]
    assert verdict["verdict"] == "faster"
    blocks = result["stopping"]["repeats"]  # ten, or more where too few of them count as independent
    assert blocks in (10, 14, 20, 28, 40)
    assert f"over {blocks} pairs of blocks of this start" in verdict["why"]
    assert "a verdict is about this start of each" in done.stdout


@pytest.mark.long
def test_a_paired_run_is_not_compared_with_one_that_took_turns(engines):
    """The machine was shared in one of them."""
    common = (*SMALL, "--backends", "calm,slow", "--repeats", "3")
    bench(*common, "--blocks", "2", "--out", "paired", limit_s=200)
    bench(*common[: common.index("--pairing")], *common[-4:], "--out", "apart", limit_s=200)
    (paired,), (apart,) = Path("paired").iterdir(), Path("apart").iterdir()
    done = bench("compare", str(apart), str(paired), "--json", code=(0, 1))
    pair = json.loads(done.stdout)["pairs"][0]
    found = {difference["what"]: difference for difference in pair["differences"]}
    assert found["engines that are up together"]["matters"]
    assert "engines that are up together" in pair["refused"]


@pytest.mark.long
def test_an_engine_that_dies_leaves_the_others_blocks(engines):
    """Its own later blocks of this start are explained by its death."""
    define("calm", "--fault", "die:at=8", ttft_ms=200, gap_ms=10)
    bench(*SMALL, "--backends", "calm,slow", "--repeats", "2", "--blocks", "2", code=(0, 4), limit_s=200)
    result = summary()
    assert [cell["repeat"] for cell in result["cells"] if cell["label"] == "slow"] == [0, 1, 2, 3]
    assert len([cell for cell in result["cells"] if cell["label"] == "calm"]) < 4
    bench("verify", str(run_folder()))


@pytest.mark.time
def test_a_duet_loads_both_at_the_same_moments(here):
    # So slow that no slot stands idle for long: a client that shares its core with an engine may be late.
    define("calm", ttft_ms=600, gap_ms=20)
    define("slow", ttft_ms=800, gap_ms=30)
    duet = (*SMALL[:-1], "duet", "--backends", "calm,slow", "--repeats", "1", "--blocks", "2")
    done = bench(*duet, limit_s=200)
    result = summary()
    begun = {(cell["label"], cell["repeat"]): cell["started_unix_ns"] for cell in result["cells"]}
    for repeat in range(2):
        assert abs(begun["calm", repeat] - begun["slow", repeat]) < 0.5e9
    assert result["verdict_rules"]["pairing"] == "duet"
    folder = RunFolder(run_folder())
    sampled = [folder.read_telemetry(cell).series for cell in folder.cells()]
    assert all("partner.cpu_s" in series for series in sampled), "the other engine is no other work"
    assert "loaded at the same moments" in done.stdout
    (verdict,) = [one for one in result["comparison"] if one["primary"]]
    assert verdict["why"] == "1 start each, 3 are needed"
    bench_here("verify", str(run_folder()))
