"""What makes cells unequal, and whether that decides."""

import pytest
from msgspec.structs import replace

from harness.conditions import conditions, unequal
from harness.conditions.ahead import Ahead, foreseen
from harness.conditions.cache_in_effect import OF_FILE, verify
from harness.metrics.view import RequestView
from harness.model import CellResult, Imported, as_json
from harness.records.request_table import NUMBERS, RequestTable
from harness.spec.scenario import load_scenario
from harness.workload.prompts.content import content_of
from tests.factories import documents, recorded
from tests.factories.documents import changed


def cell(label, load=None, repeat=0, facts=None, rows=None, hit_rate=None, **changes):
    known = recorded.facts(**(facts or {}))
    rows = rows or [{"intended": 0, "texts": [10, 20, 30], "prompt": 110, "tokens": 3}] * 4
    records = recorded.records(*rows)
    given = {
        "label": label,
        "backend": label,
        "load": load or {"kind": "concurrency", "value": 4, "arrival": None},
        "repeat": repeat,
        "simulated": False,
        "workload_sha256": "a" * 64,
        "quantisation": "bf16",
        "launch": "process",
        "output_tokens": {"tokens_per_event": 1.0},
        "conditions": conditions(RequestView(records), known, hit_rate),
    }
    return documents.made(CellResult, given, **changes)


def codes(*cells):
    return {entry.code: entry.matters for entry in unequal(cells)}


def rows(**changes):
    return [{"intended": 0, "texts": [10, 20, 30], "prompt": 110, "tokens": 3} | changes] * 4


def test_alike_is_alike():
    assert unequal([cell("a"), cell("b")]) == ()
    assert unequal([cell("a")]) == ()


def test_other_work_simulation_and_sampling_decide():
    other = cell("b", workload_sha256="b" * 64, simulated=True)
    assert codes(cell("a"), other) == {"workload": True, "simulated": True}
    warm = cell("b", facts={"request": {"temperature": 0.7}})
    assert codes(cell("a", facts={"request": {"temperature": 0.0}}), warm) == {"temperature": True}


def test_cells_of_different_load_points_are_not_held_against_each_other():
    other = cell("b", load={"kind": "concurrency", "value": 8, "arrival": None}, workload_sha256="b" * 64)
    assert unequal([cell("a"), other]) == ()


def test_other_weights_and_a_cache_switched_off_are_told():
    assert codes(cell("a"), cell("b", quantisation="Q4_1")) == {"weights": False}
    off = cell("b", facts={"prefix_cache": False})
    assert codes(cell("a", facts={"prefix_cache": True}, hit_rate=0.0), off) == {"prefix-cache": False}


@pytest.mark.parametrize(("prompt", "decides"), [(111, False), (140, True)])
def test_a_template_that_adds_other_tokens_is_found_by_the_prompt_counts(prompt, decides):
    (entry,) = unequal([cell("a"), cell("b", rows=rows(prompt=prompt))])
    assert (entry.code, entry.matters, entry.labels) == ("prompt-tokens", decides, ("a", "b"))
    assert "another tokenizer" in entry.what
    assert f"{prompt}.0 (b)" in entry.text


def test_prompt_counts_that_a_failed_request_left_unknown_are_compared_where_both_know():
    first = cell("a", rows=[{"texts": [1], "prompt": 100}, {"texts": [1], "prompt": 120}])
    partly = [{"texts": [1], "prompt": 100}, {"outcome": recorded.Outcome.RESET}]
    assert unequal([first, cell("b", rows=partly)]) == ()
    partly[0]["prompt"] = 101
    assert "prompt-tokens" in codes(first, cell("b", rows=partly))


def test_users_who_hang_up_are_another_load_than_none():
    load = {"kind": "concurrency", "value": 4, "arrival": None}
    some = cell("b", load | {"abandonment": {"share": 0.5, "after_s": 2.0}})
    (entry,) = unequal([cell("a", load), some])
    assert (entry.text, entry.matters) == ("users who hang up: none (a), 0.5 after 2 s (b)", True)


def test_chats_of_which_the_first_failed_have_no_mean_to_compare():
    """The same chats, of which the first eight are the long ones."""
    lengths = [200] * 8 + [100] * 8
    whole = [{"texts": [1], "prompt": tokens} for tokens in lengths]
    late = [{"outcome": recorded.Outcome.RESET}] * 8 + whole[8:]
    assert "prompt-tokens" not in codes(cell("a", rows=whole), cell("b", rows=late))


@pytest.mark.parametrize(
    ("prompt", "answer", "found"),
    [
        (128.4, 64.1, {}),  # what a mean of other draws may be
        (130.0, 65.0, {"prompt-tokens": False, "output-length": False}),
        (1024.0, 64.0, {"prompt-tokens": True}),
        (128.0, 128.0, {"output-length": True}),
    ],
)
def test_figures_alone_have_the_lengths_that_their_rates_give(prompt, answer, found):
    def summary(label, prompt, answer):
        rates = {"requests_per_s": 5.0, "input_tokens_per_s": 5 * prompt, "output_tokens_per_s": 5 * answer}
        file = documents.made(Imported, level="summary", reported=rates)
        rows = [{"texts": [1], "tokens": -1}]
        return cell(label, facts={"imported": file}, rows=rows, imported=as_json(file))

    assert codes(summary("a", 128.0, 64.0), summary("b", prompt, answer)) == found


def test_later_turns_are_not_the_same_chat():
    """They hold each engine's own answers."""
    numbers = ([turn if name == "turn" else 0 for name in NUMBERS] for turn in (0, 1))
    turns = RequestTable.of(((row, "", ()) for row in numbers), [])
    talks = [[{"texts": [1], "prompt": 100}, {"texts": [1], "prompt": prompt}] for prompt in (180, 190)]
    first, second = (
        conditions(RequestView(recorded.records(*talk)), recorded.facts(), None, turns).prompt_tokens
        for talk in talks
    )
    assert first == second
    assert first.mean == 100


def test_answers_of_other_lengths_decide_what_depends_on_length():
    (entry,) = unequal([cell("a"), cell("b", rows=rows(tokens=2))])
    assert (entry.code, entry.matters) == ("output-length", True)
    assert {"e2e_ms", "tpot_ms", "output_tokens_per_s", "ttft_ms"} <= set(entry.metrics)


@pytest.mark.parametrize(
    ("calls", "found"),
    [(5.5, {"session-calls": True}), (4.1, {"session-calls": False}), (4.0, {}), (None, {})],
)
def test_sessions_of_more_calls_are_longer_for_that(calls, found):
    counts = {"planned": 9, "ended": 5, "failed": 0, "cut": 4}
    one, other = (
        cell(name, sessions=counts | {"calls_mean": mean}) for name, mean in (("a", 4.0), ("b", calls))
    )
    assert codes(one, other) == found
    assert all(entry.metrics == ("session_ms",) for entry in unequal([one, other]))


def test_alone_a_first_token_waits_for_no_other_answer():
    alone = {"kind": "concurrency", "value": 1, "arrival": None}
    (entry,) = unequal([cell("a", alone), cell("b", alone, rows=rows(tokens=2))])
    assert "tpot_ms" in entry.metrics
    assert "ttft_ms" not in entry.metrics


def test_sampling_that_one_engine_cannot_be_told_is_told():
    for temperature, expected in ((0.7, {"top-k": False, "penalty": False}), (0.0, {"penalty": False})):
        full = {"fields": {"top_k": 0, "repeat_penalty": 1.0}, "temperature": temperature}
        less = {"fields": {"top_p": 1.0}, "temperature": temperature}
        one, other = (cell(name, facts={"request": said}) for name, said in (("a", full), ("b", less)))
        assert codes(one, other) == expected


def test_a_length_that_only_some_could_be_made_to_keep_is_told():
    request = {"request": {"exact_output": True}}
    capped = cell("b", facts=request | {"workload__exact_output": False})
    (entry,) = unequal([cell("a", facts=request), capped])
    assert (entry.code, entry.matters) == ("length-forced", False)
    assert entry.text == "length of answers forced: yes (a), no (b)"


def test_events_of_several_tokens_decide_the_gap_alone():
    (entry,) = unequal([cell("a"), cell("b", output_tokens={"tokens_per_event": 4.0})])
    assert (entry.code, entry.matters, entry.metrics) == ("tokens-per-event", True, ("itl_ms",))


def test_first_tokens_of_whole_answers_are_not_compared_with_those_of_a_stream():
    reason = {"code": "not-streamed", "verdict": "SUSPECT", "measured": "x", "limit": "y", "hint": ""}
    doubt = {"verdict": "SUSPECT", "reasons": [reason]}
    (entry,) = unequal([cell("a"), cell("b", validity=doubt)])
    assert (entry.code, entry.labels, entry.matters) == ("not-streamed", ("b",), True)
    first_tokens = ("ttft_ms", "ttft_service_ms", "ttft_reasoning_ms", "ttft_answer_ms")
    assert entry.metrics == (*first_tokens, "itl_ms", "tpot_ms")
    assert unequal([cell(name, validity=doubt) for name in "ab"]) == ()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("prompt-echoed", "hold their prompts"),
        ("errors-as-answers", "are errors"),
        ("answers-same", "are one text"),
        ("one-token-repeated", "are one token over and over"),
    ],
)
def test_answers_that_are_worth_nothing_are_not_compared_with_others(code, words):
    reason = {"code": code, "verdict": "SUSPECT", "measured": "x", "limit": "y", "hint": ""}
    doubt = {"verdict": "SUSPECT", "reasons": [reason]}
    (entry,) = unequal([cell("a"), cell("b", validity=doubt)])
    assert (entry.code, entry.labels, entry.matters, entry.metrics) == (code, ("b",), True, ())
    assert entry.what == f"answers of b that {words}"
    assert entry.text == f"answers {words}: b (x)"
    assert unequal([cell(name, validity=doubt) for name in "ab"]) == ()


def test_what_one_engine_could_not_be_asked_decides():
    deaf = cell(
        "b", facts={"request": {"unsupported": {"structured.regex": "no field", "exact_output": "x"}}}
    )
    (entry,) = unequal([cell("a"), deaf])
    assert (entry.code, entry.labels, entry.matters) == ("unsupported-structured.regex", ("b",), True)
    assert unequal([deaf, changed(deaf, label="c")]) == ()


def test_a_shape_that_one_engine_ignores_decides():
    kept, ignored = ({"structured": {"regex": {"constrained": True, "rate": rate}}} for rate in (1.0, 0.1))
    assert codes(cell("a", answers=kept), cell("b", answers=ignored)) == {"shape-regex": True}
    assert unequal([cell("a", answers=kept), cell("b", answers=kept)]) == ()


def test_a_share_of_valid_answers_just_below_half_does_not_read_as_half():
    low, half = ({"structured": {"regex": {"constrained": True, "rate": rate}}} for rate in (0.497, 0.5))
    (entry,) = unequal([cell("a", answers=low), cell("b", answers=half)])
    assert "49.7%" in entry.text
    assert "50%" in entry.text


def test_fewer_sequences_at_once_decide_only_where_the_load_asks_for_more():
    few, many = {"engine_values": {"max_sequences": 4}}, {"engine_values": {"max_sequences": 16}}
    assert codes(cell("a", facts=few), cell("b", facts=many)) == {"max-sequences": False}
    eight = {"kind": "concurrency", "value": 8, "arrival": None}
    assert codes(cell("a", eight, facts=few), cell("b", eight, facts=many)) == {"max-sequences": True}


def test_a_cache_that_is_not_as_declared_decides_and_one_that_cannot_be_seen_is_told():
    confirmed, found = cell("a", hit_rate=0.0), cell("b", hit_rate=0.9)
    assert codes(confirmed, found) == {"cache-state": True}
    (entry,) = unequal([confirmed, found])
    assert entry.text == f"{entry.what}: yes (a), no (b)"
    assert codes(confirmed, cell("b", hit_rate=None)) == {"cache-state": False}


def test_one_entry_for_all_load_points_and_the_deciding_one_wins():
    eight = {"kind": "concurrency", "value": 8, "arrival": None}
    cells = [
        cell("a"),
        cell("b", rows=rows(prompt=111)),
        cell("a", eight),
        cell("b", eight, rows=rows(prompt=140)),
    ]
    (entry,) = unequal(cells)
    assert entry.matters


def test_the_order_of_measuring_makes_no_second_entry():
    cells = [cell("a"), cell("b", quantisation="Q4_1")]
    again = [changed(one, repeat=1) for one in reversed(cells)]
    (entry,) = unequal([*cells, *again])
    assert entry.labels == ("a", "b")


def test_reasoning_text_in_one_only_decides():
    one = cell("a")
    reasoned = {**as_json(one.conditions), "thinking": {"seen": True}}
    assert codes(changed(one, conditions=reasoned), cell("b")) == {"thinking": True}


def test_cells_measured_before_conditions_were_kept_are_taken():
    old = cell("a", conditions={})
    assert unequal([old, cell("b")]) == ()


@pytest.mark.parametrize(
    ("wanted", "hit_rate", "holds"),
    [
        ("cold", 0.0, True),
        ("cold", 0.11, True),  # the template's tenth may be shared
        ("cold", 0.5, False),
        ("cold", None, None),
        ("warm", 0.5, False),
        ("warm", 0.7, True),
        ("primed", 0.7, False),
        ("primed", 0.9, True),
        ("any", 0.1, None),
        ("any", 0.9, False),  # these prompts share nothing
    ],
)
def test_a_declared_cache_state_is_held_against_the_hit_rate(wanted, hit_rate, holds):
    facts = recorded.facts(cache={"requested": wanted}, workload__shared_share=0.9)
    records = recorded.records(*rows())
    assert verify(RequestView(records), facts, hit_rate).holds is holds


@pytest.mark.parametrize("wanted", ["cold", "warm"])
def test_a_server_that_counts_no_prompt_tokens_tells_nothing_of_its_cache(wanted):
    facts = recorded.facts(cache={"requested": wanted}, workload__shared_share=0.9)
    records = recorded.records(*rows(prompt=0))
    assert verify(RequestView(records), facts, 0.0).holds is None


@pytest.mark.parametrize(
    ("wanted", "hit_rate", "holds"), [("cold", 0.9, None), ("cold", 0.0, True), ("any", 0.9, None)]
)
def test_prompts_of_a_file_may_begin_alike(wanted, hit_rate, holds):
    """Sixty prompts with one long beginning in the user's message hit the cache from a cold start."""
    assert content_of(load_scenario("prompt-file")) == OF_FILE
    facts = recorded.facts(cache={"requested": wanted}, workload__content=OF_FILE)
    assert verify(RequestView(recorded.records(*rows())), facts, hit_rate).holds is holds


@pytest.mark.parametrize(
    ("cached", "holds"),
    [
        ((90, 80, 100, 100), False),
        ((90, 40, 100, 100), None),  # less than half: the template may be longer than is known
        ((90, 0, 100, 100), None),  # begun first, and left what the other one found
        ((90, None, 100, 100), None),
    ],
)
@pytest.mark.parametrize("wanted", ["cold", "any"])
def test_prompts_of_a_file_that_are_found_before_any_answer_were_in_the_cache(wanted, cached, holds):
    """Two are sent at once, and two after their answers, which may find what those left. `any` declares
    nothing: an earlier load sent them too."""
    made = [
        {"intended": sent, "texts": [sent + 50, sent + 60], "prompt": 100}
        | ({} if count is None else {"cached": count})
        for sent, count in zip((0, 10, 100, 110), cached, strict=True)
    ]
    facts = recorded.facts(cache={"requested": wanted}, workload__content=OF_FILE)
    found = verify(RequestView(recorded.records(*made)), facts, 0.9)
    assert found.holds is (holds if wanted == "cold" else None)
    if found.holds is False:
        assert found.measured == "hit rate 90.0%, of each first prompt 80% or more, before any answer"


def test_a_cache_that_is_off_is_cold():
    facts = recorded.facts(cache={"requested": "cold"}, prefix_cache=False)
    assert verify(RequestView(recorded.records(*rows())), facts, None).holds


def told(texts, tokens, chars, **changes):
    """100 answers of so many tokens and characters, the latter alternately that many more and fewer."""
    made = recorded.records(*[{"intended": 0, "texts": list(range(10, 10 + texts)), "tokens": tokens}] * 100)
    mean, spread = chars
    made.requests["output_chars"] = [mean + spread * (-1) ** n for n in range(100)]
    return {"conditions": conditions(RequestView(made), recorded.facts(), None), **changes}


def test_a_server_that_counts_no_tokens_has_no_text_per_token():
    found = told(20, 0, (80, 4))["conditions"].output_text
    assert (found.per_answer, found.per_token, found.per_token_error) == (80.0, None, None)


def entries(first, second):
    found = unequal([cell("a", **first), cell("b", **second)])
    return {one.code: one for one in found}


def test_half_the_text_of_as_many_tokens_refuses_what_tokens_and_answers_decide():
    found = entries(told(20, 20, (80, 4)), told(10, 20, (40, 4)))
    assert found["characters-per-token"].matters
    assert set(found["characters-per-token"].metrics) >= {"tpot_ms", "output_tokens_per_s"}
    assert "output_chars_per_s" not in found["characters-per-token"].metrics
    assert found["output-text"].matters
    assert set(found["output-text"].metrics) >= {"e2e_ms", "requests_per_s"}
    assert "ttft_ms" not in found["output-text"].metrics


@pytest.mark.parametrize(("spread", "unequal_text"), [(4, True), (80, False)], ids=["text", "chance"])
def test_no_text_at_all_against_some_refuses_what_answers_decide(spread, unequal_text):
    """The mean of 8 is known to 0.4, or to 8: a few long texts among empty ones."""
    found = entries(told(1, 0, (0, 0)), told(1, 0, (8, spread)))
    assert ("output-text" in found) is unequal_text
    if unequal_text:
        assert found["output-text"].matters
        assert set(found["output-text"].metrics) >= {"e2e_ms", "real_time_factor", "audio_s_per_s"}


def test_a_little_more_usage_for_the_same_text_widens_the_floor():
    """4% more; both means are known to 0.5% (spread 4 of 80 over 100 answers), together to 0.7%."""
    found = entries(told(50, 50, (80, 4)), told(50, 52, (80, 4)))
    one = found["characters-per-token"]
    assert not one.matters
    assert one.apart == pytest.approx(0.04 - 2 * 2**0.5 * 0.005, abs=1e-4)
    assert "output-text" not in found


def test_texts_that_differ_by_chance_are_equal():
    """3% apart, known to 2% each."""
    found = entries(told(20, 20, (80, 16)), told(20, 20, (82.4, 16)))
    assert not {"characters-per-token", "output-text"} & found.keys()


def test_other_weights_say_other_things():
    other = told(20, 20, (40, 4), quantisation="Q4_1", track="q4")
    assert "output-text" not in entries(told(20, 20, (80, 4), track="bf16"), other)
    assert "output-text" in entries(told(20, 20, (80, 4), track="bf16"), {**other, "track": None})


def test_answers_a_little_apart_in_length_widen_the_floor_and_far_apart_refuse():
    found = entries(told(48, 48, (80, 4)), told(50, 50, (83.333, 4)))
    assert (found["output-length"].matters, found["output-length"].apart) == (False, pytest.approx(2 / 48))
    assert entries(told(40, 40, (80, 4)), told(50, 50, (100, 4)))["output-length"].matters


def test_a_count_that_cannot_be_right_refuses_tokens_and_says_nothing_of_lengths():
    reason = {"code": "usage-implausible", "verdict": "SUSPECT", "measured": "x", "limit": "y", "hint": "z"}
    wrong = told(20, 40, (80, 4), validity={"verdict": "SUSPECT", "reasons": [reason]})
    found = entries(told(20, 20, (80, 4)), wrong)
    assert found["usage-implausible"].labels == ("b",)
    assert "tpot_ms" in found["usage-implausible"].metrics
    assert not {"output-length", "output-text"} & found.keys()


def test_lengths_that_differ_do_not_read_alike():
    few = {"intended": 0, "texts": [10, 20, 30], "prompt": 110}
    first = cell("a", rows=[few | {"tokens": 3}] * 50)
    (entry,) = unequal([first, cell("b", rows=[few | {"tokens": 3}] * 49 + [few | {"tokens": 4}])])
    assert entry.text == "tokens per answer: 3.00 (a), 3.02 (b)"


def test_equal_means_of_different_chats_say_so():
    """They are the last of ten: a hash of all their counts finds what the first eight counts do not."""
    alike, *chats = ({"texts": [1], "prompt": tokens} for tokens in (110, 100, 120))
    (entry,) = unequal([cell("a", rows=[alike] * 8 + chats), cell("b", rows=[alike] * 8 + chats[::-1])])
    assert (entry.code, entry.matters) == ("prompt-tokens", False)
    assert entry.text == "prompt tokens of the same chats: 110.0 (a, b) on average, others in single chats"


@pytest.mark.parametrize(("answer", "decides"), [("8.0", False), ("3.0", True), ("many", True)])
def test_what_a_server_says_of_its_sequences_need_not_be_a_whole_number(answer, decides):
    cells = [cell(label) for label in "ab"]
    settings = [{"max-sequences": answer}, {"max-sequences": "16"}]
    known = [
        replace(one, conditions=replace(one.conditions, settings=given))
        for one, given in zip(cells, settings, strict=True)
    ]
    assert codes(*known) == {"max-sequences": decides}
    engines = (
        Ahead(label, None, {"info": {"total_slots": given["max-sequences"]}})
        for label, given in zip("ab", settings, strict=True)
    )
    assert bool(list(foreseen(dict(zip("ab", engines, strict=True)), 4))) == decides


def test_other_request_fields_decide():
    base = {"temperature": 0.0, "fields": {"stream": True}}
    more = {**base, "fields": {"stream": True, "top_k": 20}, "own_fields": {"top_k": 20}}
    plain, own = cell("a", facts={"request": base}), cell("b", facts={"request": more})
    assert codes(plain, own) == {"request-fields": True}
    (difference,) = unequal([plain, own])
    assert '{"top_k": 20}' in difference.text
    assert unequal([own, own]) == ()
