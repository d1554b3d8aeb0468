"""Usage against text, finish reasons, and the in-flight cap: true alarms and false ones, by hand."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.metrics.latency import at_once
from harness.metrics.view import RequestView
from harness.records.finish import Finish, finish_of
from harness.records.layout import REQUEST_DTYPE, UNKNOWN, Outcome, Phase, Records
from harness.records.request_table import NUMBERS, RequestTable
from harness.validity import Evidence, blame, judge
from tests.factories.answers import CHUNKED, chunked, event, head, play
from tests.factories.recorded import facts, load, records, summarise_cell


def answers(count=20, events=20, **fields):
    rows = [
        {
            "intended": 500 * n,
            "texts": [500 * n + 60 + 20 * i for i in range(events)],
            "prompt": 100,
            **fields,
        }
        for n in range(count)
    ]
    return records(*rows)


def asked(count, most):
    numbers = tuple(most if name == "max_tokens" else -1 for name in NUMBERS)
    return RequestTable.of(((numbers, "", ()) for _ in range(count)), [])


def found(made, requested=None, **changes):
    verdict = judge(
        Evidence(RequestView(made), facts(workload__exact_output=False, **changes), None, requested)
    )
    return {str(reason.code): reason for reason in verdict.reasons}


def test_fewer_tokens_than_text_events_cannot_be():
    reason = found(answers(tokens=10))["usage-implausible"]
    assert reason.verdict == "SUSPECT"
    few = "20 of 20 answers with fewer tokens than text events"
    assert reason.measured == f"{few}: 10.0 tokens in 20.0 events (means)"


@pytest.mark.parametrize("tokens", [19, 20, 21, 80])
def test_a_flushed_rest_and_several_tokens_in_an_event_are_usual(tokens):
    assert "usage-implausible" not in found(answers(tokens=tokens))


def test_tool_calls_may_send_one_token_in_several_events():
    made = answers(tokens=10)
    calls = ['[{"id": "1", "name": "f", "arguments": "{}"}]'] * 20
    made = type(made)(made.requests, made.events, made.texts, made.finish_reasons, made.errors, calls)
    assert "usage-implausible" not in found(made)


@pytest.mark.parametrize(("tokens", "doubted"), [(20, False), (21, False), (22, True), (60, True)])
def test_more_tokens_than_the_request_allowed_cannot_be(tokens, doubted):
    reason = found(answers(tokens=tokens), asked(20, 20)).get("usage-implausible")
    assert (reason.limit if reason else None) == ("the tokens that the request allowed" if doubted else None)
    assert reason is None or reason.measured.endswith(f": {tokens:.1f} where 20.0 were allowed (means)")


def test_answers_that_are_longer_than_allowed_were_counted_right():
    """A server that reads no limit on tokens, or another field than was sent."""
    reasons = found(answers(events=30), asked(20, 20))
    assert "usage-implausible" not in reasons
    assert reasons["output-length"].measured == "20 of 20 answers longer than allowed, by their events too"
    assert "output-length" not in found(answers(events=21), asked(20, 20))


@pytest.mark.parametrize(
    ("reason", "tokens", "doubted"),
    [
        ("length", 8, True),
        ("max_tokens", 8, True),
        ("length", 19, False),  # a token without text may end an answer
        ("length", 20, False),
        ("stop", 8, False),
        ("", 8, False),
    ],
)
def test_answers_that_end_at_a_limit_below_the_one_that_was_asked_for(reason, tokens, doubted):
    made = answers(events=tokens, tokens=tokens)
    made = replace(made, finish_reasons=[reason] * 15 + ["stop"] * 5)
    length = found(made, asked(20, 20)).get("output-length")
    assert (length is not None) == doubted
    if length is not None:
        limit = f"ended at a limit on their length after {tokens}.0 tokens where 20.0 were allowed (means)"
        assert length.measured == f"15 of 20 answers {limit}"


def test_reasoning_that_a_server_does_not_count_ends_no_answer_early():
    made = replace(answers(events=8, tokens=8), finish_reasons=["length"] * 20)
    made.requests["first_reasoning_ns"] = made.requests["first_text_ns"]
    assert "output-length" not in found(made, asked(20, 20))


def test_answers_whose_tokens_were_not_counted_hide_none_that_are_too_long():
    made = answers(tokens=60)
    made.requests["output_tokens"][1:] = UNKNOWN
    reason = found(made, asked(20, 20))["usage-implausible"]
    assert reason.measured.startswith("1 of 1 answers with more tokens than were allowed")


@pytest.mark.parametrize(("cached", "doubted"), [(100, False), (300, True)])
def test_more_cached_tokens_than_prompt_tokens_cannot_be(cached, doubted):
    made = answers(cached=cached)
    assert ("usage-implausible" in found(made)) == doubted
    summary = summarise_cell(made, facts(), None)
    assert summary.prefix_cache_hit_rate == (None if doubted else 1.0)
    if doubted:
        assert "more cached tokens than prompt" in summary.null_reasons["prefix_cache_hit_rate"]


@pytest.mark.parametrize(("thoughts", "doubted"), [(20, False), (60, True)])
def test_more_reasoning_tokens_than_output_tokens_cannot_be(thoughts, doubted):
    made = answers()
    made.requests["reasoning_tokens"] = thoughts
    assert ("usage-implausible" in found(made)) == doubted
    summary = summarise_cell(made, facts(), None)
    assert (summary.answer_tokens_per_s is None) == doubted
    if doubted:
        assert "more reasoning tokens than output" in summary.null_reasons["answer_tokens_per_s"]


CAPTURES = Path(__file__).resolve().parents[2] / "captures"


@pytest.mark.parametrize("engine", ["llamacpp", "vllm", "transformers"])
def test_streams_of_real_engines_are_not_doubted(engine):
    """20 ms between the events of each of 20 answers."""
    stream = json.loads((CAPTURES / f"{engine}.json").read_text("utf-8"))["answers"]["stream"]
    parts = [event(json.dumps(chunk).encode()) for chunk in stream["chunks"]]
    parts += [event(b"[DONE]")] if stream["done"] else []
    reads = [head(CHUNKED)]
    reads += [chunked([part]).removesuffix(b"0\r\n\r\n") for part in parts] + [b"0\r\n\r\n"]
    settled = play(reads, stamps=[20_000_000 * n for n in range(1, len(reads) + 1)])
    assert settled.outcome is Outcome.OK
    assert finish_of(settled.finish_reason) is Finish.CUT
    rows = np.zeros(20, REQUEST_DTYPE)
    rows[:] = settled.row
    rows["seq"], rows["phase"] = np.arange(20), Phase.MEASURE
    events = np.concatenate([settled.events] * 20)
    events["seq"] = np.repeat(np.arange(20), len(settled.events))
    made = Records(rows, events, [settled.text] * 20, [settled.finish_reason] * 20, [""] * 20)
    doubts = {"usage-implausible", "finish-reason-unknown", "itl-merged", "merged-events"}
    assert not doubts & found(made, asked(20, int(rows["output_tokens"][0]))).keys()
    assert not at_once(rows).any()


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", Finish.WHOLE),
        ("end_turn", Finish.WHOLE),
        ("tool_calls", Finish.WHOLE),
        ("STOP", Finish.WHOLE),
        ("eos_token", Finish.WHOLE),
        ("length", Finish.CUT),
        ("MAX_TOKENS", Finish.CUT),
        ("abort", Finish.GIVEN_UP),
        ("cancelled", Finish.GIVEN_UP),
        ("content-filter", Finish.GIVEN_UP),
        ("timeout", Finish.GIVEN_UP),
        ("error", Finish.GIVEN_UP),
        ("guardrail_intervened", Finish.GIVEN_UP),
        ("content_filter: PROHIBITED_CONTENT", Finish.GIVEN_UP),
        ("function_call_filter: MALFORMED_FUNCTION_CALL", Finish.GIVEN_UP),
        ("MALFORMED_FUNCTION_CALL", Finish.GIVEN_UP),
        ("paused", None),
        ("", None),
    ],
)
def test_finish_reasons_are_a_closed_table(reason, finish):
    assert finish_of(reason) is finish


def test_a_reason_outside_the_table_is_reported():
    made = answers()
    made.finish_reasons[3:5] = ["paused", "paused"]
    reason = found(made)["finish-reason-unknown"]
    assert (reason.verdict, reason.measured) == ("SUSPECT", '2 of 20 answers: 2 "paused"')
    assert "finish-reason-unknown" not in found(answers())


OPEN = load("rate", 10)


def held(late_ms=0, cap=2, each_ms=440):
    """40 requests meant to leave every 100 ms, of which so many may be in flight, each for so long."""
    free, rows = [0] * cap, []
    for n in range(40):
        sent = max(100 * n, min(free)) + late_ms * n
        free[free.index(min(free))] = sent + each_ms
        rows.append({"intended": 100 * n, "sent": sent, "texts": [sent + each_ms - 1, sent + each_ms]})
    return records(*rows)


def test_what_the_cap_held_back_is_the_engines_doing():
    made = held()
    verdict = judge(Evidence(RequestView(made), facts(load=OPEN, client__held_at_cap=38)))
    reasons = {str(reason.code): reason for reason in verdict.reasons}
    assert "rate-missed" not in reasons
    assert reasons["held-at-cap"].measured.startswith("38 of 40 requests waited at the in-flight cap: 4.61/s")
    assert blame(verdict) == ("engine", "held-at-cap")


def test_a_late_client_is_blamed_although_the_cap_was_reached():
    """The cap is far from used up for most of the time; each request leaves 40 ms later than the last."""
    made = held(late_ms=40, cap=20)
    verdict = judge(Evidence(RequestView(made), facts(load=OPEN, client__held_at_cap=1)))
    assert "rate-missed" in {reason.code for reason in verdict.reasons}
    assert "held-at-cap" not in {reason.code for reason in verdict.reasons}
    assert blame(verdict)[0] == "client"


def test_a_server_that_keeps_up_is_not_held():
    made = held(cap=20)
    assert np.all(made.requests["sent_ns"] == made.requests["intended_ns"])
    assert not {"rate-missed", "held-at-cap"} & found(made, load=OPEN).keys()


@pytest.mark.parametrize(("tokens", "found_many"), [(500, 0), (501, 20)])
def test_a_prompt_has_no_more_tokens_than_bytes(tokens, found_many):
    made = answers(prompt=tokens)
    reasons = found(made, asked(20, 20), most_prompt_tokens=500)
    if not found_many:
        assert "usage-implausible" not in reasons
        return
    reason = reasons["usage-implausible"]
    assert reason.measured == "20 of 20 answers with more prompt tokens than bytes were sent: 501.0 (mean)"
    assert reason.limit.startswith("500: ")


def test_later_turns_have_the_answers_before_them():
    numbers = tuple(1 if name == "turn" else -1 for name in NUMBERS)
    later = RequestTable.of(((numbers, "", ()) for _ in range(20)), [])
    assert "usage-implausible" not in found(answers(prompt=900), later, most_prompt_tokens=500)
    assert "usage-implausible" not in found(answers(prompt=900), asked(20, 20))
