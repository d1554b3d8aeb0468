from harness.model import CellResult
from harness.report.findings.two_groups import two_groups
from tests.factories.documents import made
from tests.factories.summaries import summary


def cell(repeat, gap=None, **more):
    load = {"kind": "concurrency", "value": 1}
    ttft_ms = {"mean": 156, "p50": 156} | ({"p50_gap": gap} if gap else {})
    return made(CellResult, label="x", load=load, repeat=repeat, ttft_ms=ttft_ms, **more)


def lines(*cells):
    return list(two_groups(summary(*cells)))


def test_a_median_between_two_groups_is_named_with_the_middle_of_the_repeats():
    assert lines(cell(0, (100, 213)), cell(1, (103, 210)), cell(2)) == [
        "x c1: TTFT p50 lies between two groups of requests, about 102 and 212 ms"
    ]


def test_half_of_the_repeats_are_not_most():
    assert not lines(cell(0, (100, 213)), cell(1))
    assert not lines(cell(0))


def test_an_invalid_repeat_has_no_median_to_name():
    invalid = {"validity": {"verdict": "INVALID"}}
    assert not lines(cell(0, (100, 213), **invalid), cell(1, (100, 213), **invalid), cell(2))


def test_classes_on_both_sides_of_the_gap_are_the_groups():
    def turns(first, second):
        each = {"requests": 16, "ok": 16}
        return {
            "1": each | {"ttft_ms": {"mean": first, "p50": first}},
            "2": each | {"ttft_ms": {"mean": second, "p50": second}},
        }

    plain = "x c1: TTFT p50 lies between two groups of requests, about 100 and 213 ms"
    assert lines(cell(0, (100, 213), by_turn=turns(97, 218))) == [f"{plain} (turn 1 97.0 ms, turn 2 218 ms)"]
    assert lines(cell(0, (100, 213), by_turn=turns(97, 150))) == [plain]
    assert lines(cell(0, (100, 213), by_turn=turns(215, 218))) == [plain]
