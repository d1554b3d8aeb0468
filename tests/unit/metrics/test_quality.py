import json
from functools import reduce

import numpy as np
import pytest

from harness import validity
from harness.metrics import answer_check
from harness.metrics import quality as quality_module
from harness.metrics.answer_check import judge
from harness.metrics.counts import template_tokens
from harness.metrics.quality import form_refused, quality
from harness.metrics.reason import OfServer
from harness.metrics.state import cell_state
from harness.metrics.view import RequestView
from harness.model import Constraint, TemplateTokens
from harness.records.layout import Outcome, Records
from harness.records.request_table import Expected
from harness.summary.cell import view_of
from harness.validity import Evidence
from harness.workload.prompts.request import ChatRequest
from harness.workload.prompts.workload import workload
from tests.factories.recorded import facts, load, records

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "in": {"$ref": "#"}},
    "required": ["n"],
    "additionalProperties": False,
}
DEEP = reduce(lambda inner, _: {"allOf": [inner]}, range(200), {})
DRAFT_7 = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "properties": {"price": {"multipleOf": 0.01}, "in": {"$ref": "#"}},
}
LABEL = Expected("label", {"label": "sport", "labels": ["sport", "music", "sport news"]})
JSON = Expected("json_schema", SCHEMA)
CALL = Expected("tool_call", {"look": SCHEMA, "stop": {"type": "object"}})


def call(name, arguments):
    return json.dumps([{"id": "c", "name": name, "arguments": arguments}])


@pytest.mark.parametrize(
    ("expected", "text", "verdict"),
    [
        (LABEL, "Sport", "valid"),
        (LABEL, " The topic is sport, not music.", "valid"),
        (LABEL, "music or sport", "wrong label"),
        (LABEL, "sport news", "wrong label"),
        (LABEL, "transport", "no label"),
        (LABEL, "sportů", "no label"),
        (LABEL, "答案是sport。", "valid"),
        (LABEL, "テーマはmusicです", "wrong label"),
        (LABEL, "_sport_", "valid"),
        (Expected("label", {"label": "нет", "labels": ["да", "нет"]}), "Никогда, нет", "valid"),
        (Expected("label", {"label": "긍정", "labels": ["긍정", "부정"]}), "답은 긍정입니다.", "valid"),
        (LABEL, "", "no label"),
        (JSON, '{"n": 1}', "valid"),
        (JSON, ' {"n": 1, "in": {"n": 2}}\n', "valid"),
        (JSON, '{"n": 1, "in": {"m": 2}}', "schema"),
        (JSON, '{"n": 1.5}', "schema"),
        (JSON, '{"n": 1', "not JSON"),
        (JSON, 'Here: {"n": 1}', "not JSON"),
        (JSON, '```json\n{"n": 1}\n```', "fenced"),
        (JSON, ' ``` \n\n{"n": 1}```\n', "fenced"),
        (JSON, '```JSON5 title\n{"n": 1}\n```', "fenced"),
        (JSON, '```json {"n": 1}\n```', "not JSON"),
        pytest.param(JSON, "```" + "\n" * 100_000, "not JSON", id="a fence that never closes"),
        (JSON, "[" * 100_000, "not JSON"),
        (Expected("json_schema", {"maximum": 3}), "NaN", "not JSON"),
        (Expected("json_schema", {"type": "array"}), "[-Infinity]", "not JSON"),
        (Expected("json_schema", {"maximum": 3}), "1e400", "schema"),
        (Expected("json_schema", {"multipleOf": 0.01}), "1e400", "unjudged"),
        (Expected("json_schema", {"multipleOf": 0.01}), "[8.54]", "valid"),
        (Expected("json_schema", {"multipleOf": 0.01}), "8.54", "valid"),
        (Expected("json_schema", {"items": {"multipleOf": 0.1}}), "[0.3, 89.6, -1e10]", "valid"),
        (Expected("json_schema", {"multipleOf": 0.01}), "8.545", "schema"),
        (Expected("json_schema", DRAFT_7), '{"in": {"in": {"price": 8.54}}}', "valid"),
        (Expected("json_schema", DRAFT_7), '{"in": {"in": {"price": 8.545}}}', "schema"),
        (Expected("json_schema", {"multipleOf": 3}), "6.0", "valid"),
        (Expected("json_schema", {"multipleOf": 3}), "9" * 40, "valid"),
        (Expected("json_schema", {"multipleOf": 3}), "7", "schema"),
        pytest.param(Expected("json_schema", {"multipleOf": 0.01}), "1" * 310, "unjudged", id="310 digits"),
        pytest.param(Expected("json_schema", {"type": "integer"}), "1" * 5000, "not JSON", id="5000 digits"),
        (Expected("json_schema", {"$ref": "http://x.invalid/s"}), "{}", "unjudged"),
        (Expected("json_schema", {"$ref": "http://json-schema.org/draft-07/schema#"}), "{}", "valid"),
        (Expected("json_schema", {"type": "nonsense"}), "{}", "unjudged"),
        (Expected("json_schema", {"$schema": ["x"]}), "{}", "unjudged"),
        (Expected("json_schema", {"$schema": 5}), "{}", "unjudged"),
        pytest.param(Expected("json_schema", DEEP), "{}", "unjudged", id="a schema of 200 levels"),
        (Expected("json_schema", {"type": "string", "pattern": "(?<"}), '"a"', "unjudged"),
        (Expected("json_object"), "[]", "schema"),
        (Expected("json_object"), "{}", "valid"),
        (Expected("regex", "[0-9]{2}"), "12\n", "valid"),
        (Expected("regex", "[0-9]{2}"), "123", "pattern"),
        (Expected("regex", r"\p{L}+"), "abc", "unjudged"),
        (Expected("regex", "a{99999999999999999999}"), "abc", "unjudged"),
        pytest.param(Expected("regex", "(" * 5000 + ")" * 5000), "abc", "unjudged", id="5000 groups"),
        (Expected("choice", ["a", "b"]), "b", "valid"),
        (Expected("choice", ["a", "b"]), "ab", "choice"),
    ],
)
def test_an_answer_is_held_to_what_it_should_be(expected, text, verdict):
    assert judge(expected, text, "", "stop") == verdict
    cut = judge(expected, text, "", "length")
    assert cut == (verdict if verdict in ("valid", "unjudged") or expected is LABEL else "truncated")


def test_no_address_or_file_that_a_schema_names_is_opened(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("urllib.request.urlopen", lambda *names, **_: opened.append(names))
    for reference in ("http://x.invalid/s", (tmp_path / "s.json").as_uri()):
        assert judge(Expected("json_schema", {"$ref": reference}), "{}", "", "stop") == "unjudged"
    assert opened == []


@pytest.mark.parametrize(
    ("calls", "verdict"),
    [
        (call("look", '{"n": 1}'), "valid"),
        (call("look", '{"n": "1"}'), "schema"),
        (call("look", '{"n": '), "not JSON"),
        (call("loook", "{}"), "unknown tool"),
        (call("stop", "{}"), "valid"),
        (call("stop", ""), "valid"),
        (call("look", ""), "schema"),
        ("", "no call"),
    ],
)
def test_a_tool_call_must_be_one_that_the_tool_takes(calls, verdict):
    assert judge(CALL, "whatever", calls, "tool_calls") == verdict


@pytest.mark.parametrize(
    "expected",
    [Expected("regex", "(a|a)*b"), Expected("json_schema", {"type": "string", "pattern": "^(a|a)*b$"})],
)
def test_a_pattern_that_never_ends_leaves_its_answers_unjudged(expected, monkeypatch):
    """40 letters would take it hours. Answers that end are judged, until too many did not end."""
    monkeypatch.setattr(answer_check, "MOST_S", 0.05)
    answer, other = json.dumps("a" * 40), Expected("regex", "[0-9]")
    text = answer.strip('"') if expected.check == "regex" else answer
    tried = []
    monkeypatch.setattr(quality_module, "judge", lambda *given: tried.append(given) or judge(*given))
    never = (ask(expected, "hard"), text, {})
    label = Expected("label", {"labels": ["yes", "no"], "label": "yes"})
    late = [(ask(label), "yes", {}), (ask(other, "late"), "7", {})]
    asked = [*[never] * 3, (ask(other, "easy"), "7", {}), *[never] * 3, *late]
    made, requested = cell(*asked)
    answers = quality(RequestView(made), requested).answers.structured
    assert (answers["hard"]["unjudged"], answers["hard"]["asked"], answers["hard"]["rate"]) == (6, 6, None)
    assert (answers["easy"]["valid"], answers["late"]["unjudged"]) == (1, 1)
    assert len(tried) == 6  # four that did not end, one that did, and a label


def cell(*requests):
    """(request, answer, changes of its record) → records and what was asked."""
    rows = [
        {"intended": 10 * i, "texts": [10 * i + 5, 10 * i + 9], **more}
        for i, (_, _, more) in enumerate(requests)
    ]
    made = records(*rows)
    made.requests["text_events"] = 2
    texts = [text for _, text, _ in requests]
    for place, text in enumerate(texts):
        said = np.flatnonzero(made.events["seq"] == place)
        made.events["text_chars"][said] = (len(text), 0)[: len(said)]
    ends = [more.get("end", "stop") for _, _, more in requests]
    errors = [more.get("error", "") for _, _, more in requests]
    for place, (_, _, more) in enumerate(requests):
        made.requests["http_status"][place] = more.get("status", 200)
    found = Records(
        made.requests, made.events, texts, ends, errors, [m.get("calls", "") for _, _, m in requests]
    )
    return found, workload([request for request, _, _ in requests], exact=True).requested


def ask(expected=None, kind="", **more):
    return ChatRequest((("user", "x"),), 10, 5, kind=kind, expected=expected, **more)


def test_rates_leave_out_what_was_cut_off_refused_or_never_answered():
    refused = {"outcome": Outcome.HTTP_ERROR, "status": 400}
    made, asked = cell(
        (ask(JSON, "json_schema"), '{"n": 1}', {}),
        (ask(JSON, "json_schema"), '{"m": 1}', {}),
        (ask(JSON, "json_schema"), '{"n": ', {"end": "length"}),
        (ask(JSON, "json_schema"), "", {**refused, "error": "cannot compile '/tmp/7': bad $ref 12"}),
        (ask(JSON, "json_schema"), "", {**refused, "error": "cannot compile '/tmp/8': bad $ref 13"}),
        (
            ask(JSON, "json_schema"),
            "",
            {"outcome": Outcome.STREAM_ERROR, "texts": [], "error": "no such feature"},
        ),
        (ask(JSON, "json_schema"), "", {"outcome": Outcome.TIMEOUT}),
        (ask(JSON, "free"), "no", {}),
        (ask(None), "", {}),
    )
    found = quality(RequestView(made), asked)
    assert found.structured_valid_rate == 0.5
    assert found.answers.structured["json_schema"] == {
        "constrained": True,
        "asked": 7,
        "rate": 0.5,
        "valid": 1,
        "schema": 1,
        "truncated": 1,
        "refused": 3,
        "failed": 1,
    }
    assert found.answers.structured["free"] == {"constrained": False, "asked": 1, "rate": 0.0, "not JSON": 1}
    assert found.answers.refusals == {"cannot compile …: bad $ref …": 2, "no such feature": 1}
    assert found.label_accuracy is None


def test_a_schema_that_is_not_taken_is_no_failure_of_the_measurement():
    refused = {"outcome": Outcome.HTTP_ERROR, "status": 400}
    answers = [(ask(JSON, "json_schema"), "{}", {}) for _ in range(8)]
    made, asked = cell(*answers, (ask(JSON, "json_schema"), "", refused))
    assert form_refused(made.requests, asked).tolist() == [False] * 8 + [True]
    judged = validity.judge(Evidence(RequestView(made), facts(), requested=asked))
    codes = {reason.code: (reason.verdict, reason.measured) for reason in judged.reasons}
    assert codes["form-refused"] == ("SUSPECT", "1 of 9")
    assert "failed-requests" not in codes
    made, asked = cell(*answers, (ask(JSON, "free"), "", refused))
    assert not form_refused(made.requests, asked).any()


def test_an_open_loop_whose_server_does_not_take_a_schema_is_not_overloaded():
    refused = {"outcome": Outcome.HTTP_ERROR, "status": 400}
    answers = [(ask(JSON, "json_schema"), "{}", {}) for _ in range(40)]
    made, asked = cell(*answers, *[(ask(JSON, "json_schema"), "", refused)] * 10)
    found = cell_state(made.requests, load("rate", 100.0), asked)
    assert (found.state, found.why) == ("under load", "40 of 40 requests served as they came")
    made, asked = cell(*answers, *[(ask(JSON, "free"), "", refused)] * 10)
    found = cell_state(made.requests, load("rate", 100.0), asked)
    assert (found.state, found.why) == ("unstable", "10 of 50 requests were not answered")
    made, asked = cell(*[(ask(JSON, "json_schema"), "", refused)] * 30)
    assert cell_state(made.requests, load("rate", 100.0), asked).why.startswith("0 answers")


@pytest.mark.parametrize("status", [401, 403, 404, 408, 409, 425, 429])
def test_a_refusal_that_is_not_about_the_schema_is_a_failure(status):
    """Such a status says who asks, where, when or how often."""
    refused = {"outcome": Outcome.HTTP_ERROR, "status": status}
    answers = [(ask(JSON, "json_schema"), "{}", {}) for _ in range(6)]
    made, asked = cell(*answers, *[(ask(JSON, "json_schema"), "", refused)] * 14)
    judged = validity.judge(Evidence(RequestView(made), facts(), requested=asked))
    codes = {reason.code: (reason.verdict, reason.measured) for reason in judged.reasons}
    assert codes["failed-requests"] == ("INVALID", f"14 of 20: HTTP {status}")
    assert "form-refused" not in codes
    assert quality(RequestView(made), asked).answers.structured["json_schema"]["refused"] == 14


def test_what_an_engine_has_no_field_for_enters_no_rate():
    made, asked = cell(
        (ask(JSON, "json_schema"), "{}", {}), (ask(Expected("choice", ["a"]), "choice"), "a", {})
    )
    assert quality(RequestView(made), asked).structured_valid_rate == 0.5
    assert quality(RequestView(made), asked, ["structured.json_schema"]).structured_valid_rate == 1.0


def test_a_rate_of_no_answer_that_could_be_judged_is_not_known():
    made, asked = cell((ask(JSON, "json_schema"), '{"n": ', {"end": "length"}))
    found = quality(RequestView(made), asked)
    assert found.structured_valid_rate is None
    assert found.answers.structured == {
        "json_schema": {"constrained": True, "asked": 1, "rate": None, "truncated": 1}
    }


def reasons(*asked, **more):
    """Why each rate of a cell with these requests is null."""
    made, requested = cell(*asked)
    return quality_module.compute(view_of(made, facts(**more), requested)).nulls


def test_a_rate_that_is_null_says_why():
    nothing = {
        "label_accuracy": "no label is expected",
        "structured_valid_rate": "no structured output is requested",
        "tool_call_valid_rate": "no tool call is expected",
    }
    assert reasons((ask(), "a", {})) == nothing
    labelled = reasons((ask(LABEL), "sport", {}))
    assert labelled == {rate: why for rate, why in nothing.items() if rate != "label_accuracy"}
    made, _ = cell((ask(LABEL), "sport", {}))
    unkept = quality_module.compute(view_of(made, facts(), None)).nulls
    assert set(unkept.values()) == {"what was expected of the answers was not kept"}
    assert all(isinstance(why, OfServer) for why in unkept.values())  # a file may just not hold it


def test_a_rate_without_an_answer_to_judge_says_what_became_of_them():
    shaped = ask(JSON, "json_schema")
    refused = {"outcome": Outcome.HTTP_ERROR, "status": 400}
    cut, failed = (shaped, '{"n": ', {"end": "length"}), (shaped, "", {"outcome": Outcome.TIMEOUT})
    why = reasons(cut, cut, (shaped, "", refused), failed)["structured_valid_rate"]
    assert why == "no answer came whole and could be judged: 2 truncated, 1 refused, 1 failed"
    free = (ask(JSON, "free"), "{}", {})
    assert reasons(free)["structured_valid_rate"] == "no constrained request was measured"
    lacking = {"request": {"unsupported": {"structured.json_schema": "no field"}}}
    why = reasons(free, (shaped, "{}", {}), **lacking)["structured_valid_rate"]
    assert why == "the engine has no field for json_schema"
    called_off = (shaped, "", {"outcome": Outcome.CANCELLED})
    assert reasons(called_off)["structured_valid_rate"] == "no answer to count"


def test_an_answer_without_a_finish_reason_was_cut_where_it_is_as_long_as_was_allowed():
    """Each may have ten tokens."""
    shaped, half = ask(JSON, "json_schema"), '{"n": '
    made, asked = cell(
        *((shaped, half, {"end": "", "tokens": tokens}) for tokens in (-1, 9, 10)),
        (shaped, half, {"end": "stop", "tokens": 10}),
        (shaped, '{"n": 1}', {"end": "", "tokens": 10}),
    )
    counts = quality(RequestView(made), asked).answers.structured["json_schema"]
    assert (counts["not JSON"], counts["truncated"], counts["valid"]) == (3, 1, 1)


@pytest.mark.parametrize(("tokens", "verdict"), [(9, "not JSON"), (10, "truncated")])
def test_a_completed_response_was_cut_where_it_is_as_long_as_was_allowed(tokens, verdict):
    """As llama.cpp ends it through responses."""
    made, asked = cell((ask(JSON, "json_schema"), '{"n": ', {"end": "completed", "tokens": tokens}))
    assert quality(RequestView(made), asked).answers.structured["json_schema"][verdict] == 1


def test_labels_and_calls_have_rates_of_their_own():
    made, asked = cell(
        (ask(LABEL), "sport", {}),
        (ask(LABEL), "music", {}),
        (ask(CALL), "", {"calls": call("stop", "{}"), "outcome": Outcome.EMPTY}),
        (ask(CALL), "text", {}),
    )
    found = quality(RequestView(made), asked)
    assert (found.label_accuracy, found.tool_call_valid_rate) == (0.5, 0.5)
    assert found.answers.tool_call["tool_call"]["no call"] == 1


def test_reasoning_is_no_part_of_the_answer():
    made, asked = cell((ask(JSON, "json_schema"), 'hm{"n": 1}', {}))
    made.events["text_chars"] = (2, 8)
    made.events["kind"][0] = 2
    assert quality(RequestView(made), asked).structured_valid_rate == 1.0


def test_the_first_answer_to_a_schema_is_looked_at_apart():
    other = Expected("json_schema", {"type": "object"})
    made, asked = cell(
        (ask(JSON, "free"), "{}", {"tokens": 3}),
        (ask(JSON, "json_schema"), "{}", {"tokens": 2}),
        (ask(other, "json_schema"), "{}", {"tokens": 2}),
        (ask(JSON, "json_schema"), "{}", {"tokens": 2, "texts": [31, 39]}),
    )
    assert quality(RequestView(made), asked).constraint == Constraint(
        first_use_ttft_ms=5.0, later_ttft_ms=1.0, first_uses=2, later_uses=1, tpot_ratio=2.0
    )


def test_answers_without_a_class_are_not_constrained():
    """An answer of no class takes as long as two tokens, one held to a schema four times as long."""
    made, asked = cell(
        (ask(JSON, "free"), "{}", {"tokens": 2, "texts": [5, 6]}),
        (ask(), "{}", {"tokens": 2, "texts": [15, 35]}),
        (ask(JSON, "json_schema"), "{}", {"tokens": 2, "texts": [25, 29]}),
    )
    assert quality(RequestView(made), asked).constraint.tpot_ratio == 4.0


def test_of_one_use_there_is_no_later_one():
    made, asked = cell(
        (ask(JSON, "free"), "{}", {"tokens": 3}), (ask(JSON, "json_schema"), "{}", {"tokens": 2})
    )
    found = quality(RequestView(made), asked).constraint
    assert (found.first_use_ttft_ms, found.later_ttft_ms) == (5.0, None)
    assert (found.first_uses, found.later_uses) == (1, 0)


def test_nothing_expected_gives_nothing():
    made, asked = cell((ask(), "a", {}))
    found = quality(RequestView(made), asked)
    assert found == quality(RequestView(made), None)
    assert set(found.by_key.values()) == {None}


def test_what_a_prompt_has_beyond_its_content_is_told():
    made, asked = cell(
        (ask(session=0), "x", {"prompt": 36}),
        (ask(session=0, turn=1), "x", {"prompt": 90}),
        (ask(session=1), "x", {"prompt": 37}),
    )
    assert template_tokens(RequestView(made), asked) == TemplateTokens(min=31, max=32)
    made.requests["prompt_tokens"] = -1
    assert template_tokens(RequestView(made), asked) is None
