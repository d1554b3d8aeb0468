from harness.model import CellResult
from harness.report.findings.classes import class_lines
from tests.factories.documents import made
from tests.factories.summaries import summary


def cell(repeat=0, **more):
    load = {"kind": "concurrency", "value": 4}
    return made(CellResult, label="x", load=load, repeat=repeat, **more)


def lines(*cells):
    return list(class_lines(summary(*cells)))


def test_answers_are_summed_over_repeats_and_say_what_is_wrong():
    answers = {
        "structured": {
            "json_schema": {
                "constrained": True,
                "asked": 10,
                "rate": 0.75,
                "valid": 6,
                "schema": 2,
                "truncated": 1,
                "refused": 1,
            },
            "free": {"constrained": False, "asked": 4, "rate": 0.0, "not JSON": 4},
        },
        "refusals": {"no $ref here": 1},
    }
    broken = cell(2, answers=answers, validity={"verdict": "INVALID"})
    assert lines(cell(0, answers=answers), cell(1, answers=answers), broken) == [
        "x c4, structured: free 0 of 8 right (8 not JSON); "
        "json_schema 12 of 16 right (4 schema, 2 truncated, 2 refused)",
        "x c4, refused: 2 x no $ref here",
    ]


def test_a_form_that_the_engine_was_not_asked_for_says_so():
    kinds = {"regex": {"constrained": False, "asked": 38, "rate": 0.0, "not matched": 38}}
    assert lines(cell(answers={"structured": kinds})) == [
        "x c4, structured: regex 0 of 38 right, not constrained (38 not matched)"
    ]


def test_a_kind_is_not_named_twice():
    labels = {"constrained": False, "asked": 4, "rate": 0.5, "valid": 2, "wrong label": 2}
    (line,) = lines(cell(answers={"label": {"label": labels}}))
    assert line.startswith("x c4, label: 2 of 4 right")


def test_drafts_that_were_kept_are_a_line_where_an_engine_counts_them():
    rates = (0.7, 0.816, 0.9)
    drafting = [cell(repeat, server={"acceptance_rate": rate}) for repeat, rate in enumerate(rates)]
    assert lines(*drafting) == ["x c4, drafts: 81.6% of the drafted tokens were kept (engine's counters)"]
    assert lines(cell(server={"acceptance_rate": None})) == []


def test_classes_and_turns_have_a_line_each():
    turns = {str(turn): {"ttft_ms": {"p50": 100.0 * turn}} for turn in range(1, 9)}
    kinds = {
        "long": {"tpot_ms": {"p50": 30.0}, "ttft_ms": {"p50": 255.0}},
        "short": {"tpot_ms": {"p50": None}, "ttft_ms": {"p50": 104.0}},
    }
    assert lines(cell(by_kind=kinds, by_turn=turns)) == [
        "x c4, TTFT p50 by kind: long: 255 ms, short: 104 ms",
        "x c4, TPOT p50 by kind: long: 30.0 ms",
        "x c4, TTFT p50 by turn: 1: 100 ms, 2: 200 ms, 3: 300 ms, 4: 400 ms, 5: 500 ms, 6: 600 ms, "
        "and 2 more",
    ]


def test_classes_have_the_medians_of_the_repeats_as_the_tables_have():
    repeats = (cell(index, by_turn={"1": {"ttft_ms": {"p50": ms}}}) for index, ms in enumerate((10, 20, 90)))
    assert lines(*repeats) == ["x c4, TTFT p50 by turn: 1: 20.0 ms"]


def test_nothing_to_say():
    assert lines(cell(), cell(1, answers=None, by_kind=None, constraint=None)) == []


def test_a_class_with_a_dot_in_its_name_is_one_of_them():
    kinds = {name: {"e2e_ms": {"p50": ms}} for name, ms in (("2", 1.0), ("2.5 s", 20.0), ("5 s", 40.0))}
    assert lines(cell(by_kind=kinds, conditions={"api": "transcriptions"})) == [
        "x c4, E2E p50 by kind: 2: 1.00 ms, 2.5 s: 20.0 ms, 5 s: 40.0 ms"
    ]


def test_answers_that_were_all_cut_off_are_none_to_judge():
    kinds = {"free": {"constrained": False, "asked": 20, "rate": None, "truncated": 20}}
    assert lines(cell(answers={"structured": kinds})) == [
        "x c4, structured: free none to judge (20 truncated)"
    ]


def test_tokens_that_came_together_are_a_line_where_some_did():
    kinds = {"code": {"tokens_per_event": 3.25}, "prose": {"tokens_per_event": 1.0}}
    assert lines(cell(by_kind=kinds)) == ["x c4, tokens per event by kind: code: 3.25, prose: 1.00"]
    assert lines(cell(by_kind={"code": {"tokens_per_event": 1.0}})) == []
