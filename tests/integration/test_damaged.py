"""A file of a whole run is damaged later: `bench resume` measures its cell again, and the run is whole."""

from harness.errors import ExitCode
from harness.store import RunFolder
from tests.integration.scripted import MEASURED, SMALL, bench, define, run_folder, summary


def test_a_damaged_cell_of_a_whole_run_is_measured_again(here):
    define("one", ttft_ms=100, gap_ms=5)
    bench("run", "--scenario", "fixed-length", "--backends", "one", *SMALL, code=MEASURED)
    run = RunFolder(run_folder())
    (cell,) = run.cells()
    events = run.cell_path(cell) / "events.parquet"
    data = bytearray(events.read_bytes())
    data[len(data) // 2] ^= 1
    events.write_bytes(data)
    assert "nothing is missing" not in bench("resume", str(run.path), "--no-report", code=MEASURED).stderr
    (told,) = bench("verify", str(run.path), code=ExitCode.LIMIT_FAILED).stdout.splitlines()
    # On a busy machine others were measured again, and set aside, before it.
    kept = (run.path / "set-aside").glob(f"{cell}.*/events.parquet")
    (damaged,) = [path for path in kept if path.read_bytes() == data]
    assert f"set-aside/{damaged.parent.name}/events.parquet is damaged" in told
    assert summary()["state"] != "interrupted"
    assert run.cells() == [cell]
