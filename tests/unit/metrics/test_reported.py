"""What a cell says of a file of another tool: the tool's own figures, and why there are no others."""

import pytest
from msgspec.structs import replace

from harness.metrics.families import figures_of
from harness.metrics.reason import OfServer, OfTimes
from harness.metrics.reported import with_reported
from harness.metrics.view import CellView
from harness.model import Imported
from harness.model.exchanged import KEY
from tests.factories import documents
from tests.factories.recorded import facts, records
from tests.factories.summaries import cell

EVERY_FACT = ("answers", "outcomes", "tokens", "asked", "times", "arrivals", "load")
LACKS, SUMMARY = "the file does not have it", "only what the file says is known"


def file(level="records", facts=EVERY_FACT, **more):
    return documents.made(Imported, level=level, facts=list(facts), **more)


def without(*lacking):
    return tuple(fact for fact in EVERY_FACT if fact not in lacking)


def test_a_cell_of_our_own_stays_as_it_is():
    own = cell()
    assert with_reported(own, None) is own


def test_a_file_of_requests_with_their_times_lacks_only_what_none_has():
    own = cell(null_reasons={"itl_ms.p99": "few", "slot_idle_ms": "an open loop has no slots"})
    made = with_reported(own, file())
    assert made.null_reasons == {
        "itl_ms.p99": "few",
        "slot_idle_ms": "an open loop has no slots",
        "requests.resent": LACKS,
        "output_chars_per_s": LACKS,
        "standstill": LACKS,
        "prefix_cache_ideal": LACKS,
        "tokens_after_hang_up": LACKS,
    }
    assert (made.output_chars_per_s, made.standstill, made.prefix_cache_ideal) == (None, None, None)
    assert made.imported.level == "records"
    assert made.ttft_ms == own.ttft_ms


def test_without_arrivals_the_gaps_are_unknown_for_that_and_other_reasons_stay():
    own = cell(null_reasons={"itl_ms.p99": "few", "itl_ms.mean": "few", "ttft_ms.p99": "too few"})
    made = with_reported(own, file(facts=without("arrivals"))).null_reasons
    assert (made["itl_ms.p99"], made["itl_ms.mean"]) == (LACKS, LACKS)
    assert made["ttft_ms.p99"] == "too few"
    assert (made["requests.resent"], made["standstill"]) == (LACKS, LACKS)


@pytest.mark.parametrize(("load", "state"), [("concurrency", "saturated"), ("rate", "under load")])
def test_without_times_a_closed_loop_is_taken_at_its_word(load, state):
    own = cell(
        load={"kind": load, "value": 4.0},
        state="under load",
        makespan_s=9.0,
        null_reasons={"state": "no time"},
    )
    made = with_reported(own, file("answers", without("times")))
    assert (made.state, made.makespan_s, made.sample) == (state, None, None)
    assert made.steady_state.why == LACKS
    assert ("state" in made.null_reasons) == (state == "under load")
    assert with_reported(own, file()).makespan_s == 9.0


def test_what_a_file_lacks_is_known_by_what_a_reason_is_and_not_by_its_words():
    reasons = {"a": OfServer("nothing"), "b": OfTimes("nothing"), "c": "nothing"}
    own = replace(cell(), null_reasons=reasons)
    timed, timeless = (
        with_reported(own, file(facts=facts)).null_reasons for facts in (EVERY_FACT, without("times"))
    )
    assert [timed[path] for path in reasons] == [LACKS, "nothing", "nothing"]
    assert [timeless[path] for path in reasons] == [LACKS, LACKS, "nothing"]


def test_a_summary_has_its_own_counts_and_figures():
    lacking = ("ttft_ms.mean", "ttft_ms.p50", "e2e_ms.p50", "gpu")
    own = cell(null_reasons=dict.fromkeys(lacking, "nothing was measured"))
    given = file(
        "summary",
        without("times", "arrivals"),
        answered=90,
        failed=10,
        reported={"ttft_ms.mean": 41.5, "ttft_ms.p50": 40.0, "output_tokens_per_s": 812.0},
    )
    made = with_reported(own, given)
    assert (made.ttft_ms.mean, made.ttft_ms.p50) == (41.5, 40.0)
    assert made.output_tokens_per_s == 812.0
    assert not {"ttft_ms.mean", "ttft_ms.p50", "output_tokens_per_s"} & made.null_reasons.keys()
    assert made.null_reasons["e2e_ms.p50"] == SUMMARY
    assert made.null_reasons["gpu"] == "nothing was measured"
    counts = made.requests
    assert (counts.sent, counts.ok, counts.failed) == (100, 90, 10)
    assert counts.outcomes == {"ok": 90, "http_error": 10}


def test_a_summary_that_does_not_say_how_many_counts_none():
    counts = with_reported(cell(), file("summary")).requests
    assert (counts.sent, counts.ok, counts.failed, counts.outcomes) == (0, 0, 0, {})
    assert with_reported(cell(), file("answers", answered=7)).requests.ok == 32


@pytest.mark.parametrize(("answered", "shown"), [(298, False), (299, True), (None, True)])
def test_a_percentile_of_a_tool_needs_as_many_answers_as_one_of_ours(answered, shown):
    given = file("summary", answered=answered, reported={"ttft_ms.p99": 70.0})
    made = with_reported(cell(), given)
    assert made.ttft_ms.p99 == (70.0 if shown else None)
    why = made.null_reasons.get("ttft_ms.p99")
    assert why == (None if shown else "298 samples; p99 needs 299")


@pytest.mark.parametrize(("answered", "why"), [(12, "180 samples; p99 needs 299"), (20, None), (None, None)])
def test_the_samples_of_itl_are_gaps(answered, why):
    """16 tokens an answer."""
    rates = {"output_tokens_per_s": 80.0, "requests_per_s": 5.0}
    given = file("summary", answered=answered, reported={"itl_ms.p99": 70.0, **rates})
    made = with_reported(cell(), given)
    assert made.itl_ms.p99 == (None if why else 70.0)
    assert made.null_reasons.get("itl_ms.p99") == why


def test_how_many_gaps_there_were_is_not_known_without_rates():
    given = file("summary", answered=12, reported={"itl_ms.p99": 70.0, "tpot_ms.p99": 70.0})
    made = with_reported(cell(), given)
    assert (made.itl_ms.p99, made.tpot_ms.p99) == (70.0, None)


def test_percentiles_that_bench_exported_had_samples_enough():
    """Two of 300 requests failed: the p99 of all is known, though 298 were answered."""
    given = file("summary", answered=298, failed=2, tool=KEY, reported={"ttft_ms.p99": 70.0})
    assert with_reported(cell(), given).ttft_ms.p99 == 70.0


def test_a_latency_that_the_cell_lacks_has_what_the_tool_says_alone():
    made = with_reported(cell(), file("summary", reported={"tpot_ms.mean": 9.0, "tpot_ms.p50": 8.0}))
    assert (made.tpot_ms.mean, made.tpot_ms.p50, made.tpot_ms.p90) == (9.0, 8.0, None)


@pytest.mark.parametrize("slots", [4, None])
def test_a_file_of_figures_is_not_said_to_lack_requests(slots):
    """The reasons are those that the families give without any request; the file counts twelve answers."""
    given = file("summary", ("answers", "outcomes"), answered=12, failed=0)
    kind = {"kind": "concurrency" if slots else "rate", "value": 4.0}
    figures, nulls = figures_of(CellView(records(), facts(load=kind, imported=given)))
    own = replace(cell(load=kind, state=figures["state"], state_why=figures["state_why"]), null_reasons=nulls)
    made = with_reported(own, given)
    for why in made.null_reasons.values():
        assert not why.startswith(
            ("no answer", "no request was", "no measured", "0 req", "the server", "the e")
        )
    assert made.null_reasons["gpu"] == made.null_reasons["reasoning_tokens_per_s"] == LACKS
    assert made.requests.resent is None
    assert made.state_why == ("each slot sends again at once, as the tool says" if slots else LACKS)
