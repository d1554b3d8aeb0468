from harness.model import CellResult
from harness.report.tables.sessions import session_tables
from tests.factories.documents import changed, made
from tests.factories.summaries import summary


def cell(repeat=0, **more):
    load = {"kind": "concurrency", "value": 4}
    return made(CellResult, label="x", load=load, repeat=repeat, **more)


def stats(ttft, cached, calls=3):
    return {"requests": calls, "ttft_ms": {"p50": ttft}, "tpot_ms": {"p50": 10.0}, "cached_share": cached}


COUNTS = {"planned": 6, "ended": 3, "failed": 1, "cut": 2, "not_begun": 1}


def test_repeats_are_summed_and_their_depths_are_medians_in_order():
    depths = [
        {"1k": stats(100.0 * n, 0.5), "512": stats(50.0, None), "16k": stats(900.0, 0.9)} for n in (1, 3)
    ]
    ended, by_depth = session_tables(
        summary(*(cell(n, sessions=COUNTS, by_depth=one) for n, one in enumerate(depths)))
    )
    assert ended.rows == [["x", "12", "6", "2", "2", "2"]]
    assert by_depth.rows == [
        ["x", "512", "6", "50.0", "10.0", "n/a"],
        ["x", "1k", "6", "200", "10.0", "50.0"],
        ["x", "16k", "6", "900", "10.0", "90.0"],
    ]
    assert max(len(line) for table in (ended, by_depth) for line in table.lines(80)) <= 80


def test_long_names_and_a_narrow_terminal_break_no_row():
    names = [f"llamacpp@a-variant-with-a-long-name-{number}" for number in range(2)]
    rows = [changed(cell(sessions=COUNTS, by_depth={"1k": stats(100.0, 0.5)}), label=name) for name in names]
    for columns in (60, 80):
        lines = [line for table in session_tables(summary(*rows)) for line in table.lines(columns)]
        assert max(map(len, lines)) <= columns
        assert len(set(lines)) == len(lines) - 1  # but for the empty ones: cut names differ


def test_kinds_that_are_depths_have_a_table_too_and_others_none():
    (table,) = session_tables(summary(cell(by_kind={"4k": stats(1.0, 0.0), "2k": stats(2.0, 0.0)})))
    assert [row[1] for row in table.rows] == ["2k", "4k"]
    assert session_tables(summary(cell(by_kind={"short": stats(1.0, 0.0)}))) == []
