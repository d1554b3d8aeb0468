from harness.model import CellResult
from harness.report.tables.subject import subject_tables
from tests.factories.documents import changed, made
from tests.factories.summaries import summary


def cell(repeat=0, **more):
    return made(CellResult, label="x", load={"kind": "concurrency", "value": 1}, repeat=repeat, **more)


def test_the_scenario_of_starts_has_their_phases_in_a_table():
    starts = [{"provide_s": 0.0, "load_s": load, "first_answer_s": 0.25} for load in (20.0, 30.0)]
    cells = summary(*(cell(repeat, start=start) for repeat, start in enumerate(starts)))
    (table,) = subject_tables(changed(cells, scenario="cold-start"))
    assert table.rows == [["x", "2", "0", "25.0", "0.250"]]
    assert subject_tables(cells) == []


def test_an_engine_that_bench_did_not_start_has_no_times():
    (table,) = subject_tables(changed(summary(cell()), scenario="cold-start"))
    assert table.rows == [["x", "0", "n/a", "n/a", "n/a"]]


def test_a_batch_of_all_prompts_at_once_has_the_time_until_its_last_answer():
    cells = summary(*(cell(repeat, makespan_s=took_s) for repeat, took_s in enumerate((5.0, 6.0, 9.0))))
    (table,) = subject_tables(changed(cells, scenario="offline-batch"))
    assert (table.head[-1], table.rows) == ("makespan s", [["x", "3", "6.00"]])
