"""A cell's requests by URL, how evenly the URLs worked, and when one of them is doubted."""

import numpy as np
import pytest

from harness.metrics.replicas import fairness, replicas
from harness.metrics.view import RequestView
from harness.metrics.window import Window
from harness.records.layout import UNKNOWN, Outcome
from harness.validity import Evidence, judge
from tests.factories.recorded import facts, records, requested

URLS = ["http://a", "http://b"]
BOTH = {"urls": URLS, "balance": "round-robin"}


def made(*ttfts_ms, each=40, **fields):
    """`each` answers of every replica, of three tokens, alternately; a TTFT of None: it failed."""
    rows, places = [], []
    for index in range(each):
        for place, ttft in enumerate(ttfts_ms):
            sent = 10 * index
            jitter = 0.01 * (index % 5)
            texts = [] if ttft is None else [sent + ttft + jitter + step for step in range(3)]
            rows.append({"intended": sent, "sent": sent, "texts": texts, "prompt": 100, **fields})
            if ttft is None:
                rows[-1]["outcome"] = 1
            places.append(place)
    whole = records(*rows)
    whole.requests["replica"] = places
    return whole


def codes(cell, **changes):
    verdict = judge(Evidence(RequestView(cell), facts(**BOTH, **changes)))
    return {str(one.code): one for one in verdict.reasons if one.code.startswith("replica-")}


def test_each_url_has_its_own_figures():
    cell = made(5, 20)
    cell.requests["cached_tokens"] = [75, 25] * 40
    shares = np.ones(len(cell.requests))
    whole = replicas(RequestView(cell), facts(**BOTH), Window(0, 10**9, "whole"), shares)
    assert whole.balance == "round-robin"
    assert [part.url for part in whole.urls] == URLS
    assert [(part.requests, part.ok, part.failed, part.share) for part in whole.urls] == [
        (40, 40, 0, 0.5)
    ] * 2
    assert [part.ttft_ms.p50 for part in whole.urls] == pytest.approx([5.02, 20.02])
    assert [part.tpot_ms.p50 for part in whole.urls] == pytest.approx([1, 1])
    assert [part.e2e_ms.p50 for part in whole.urls] == pytest.approx([7.02, 22.02])
    assert [part.cached_share for part in whole.urls] == [0.75, 0.25]
    tokens = cell.requests["output_tokens"].sum() / 2
    assert [part.output_tokens_per_s for part in whole.urls] == [tokens, tokens]
    assert whole.fairness == 1.0


def test_an_uncounted_answer_outside_of_the_window_leaves_the_rate_known():
    cell = made(5, 20)
    cell.requests["output_tokens"][[0, 1]] = UNKNOWN
    shares = np.ones(len(cell.requests))
    shares[0] = 0
    whole = replicas(RequestView(cell), facts(**BOTH), Window(0, 10**9, "whole"), shares)
    assert [part.output_tokens_per_s for part in whole.urls] == [39 * 3, None]


def test_one_server_is_not_asked():
    cell = made(5)
    assert replicas(RequestView(cell), facts(), None, np.zeros(len(cell.requests))) is None


@pytest.mark.parametrize(
    ("rates", "index"),
    [([7, 7, 7], 1.0), ([9, 0, 0], 1 / 3), ([3, 1], 0.8), ([0, 0], None), ([5, None], None), ([4], 1.0)],
)
def test_fairness_is_jains_index(rates, index):
    assert fairness(rates) == (None if index is None else pytest.approx(index))


def test_replicas_alike_are_not_doubted():
    assert codes(made(20, 20)) == {}
    assert codes(made(20, 24.9)) == {}, "below a quarter of the fastest"
    assert codes(made(20, 40, each=29)) == {}, "too few to tell"
    assert codes(made(0.5, 1.2)) == {}, "below a millisecond"


@pytest.mark.parametrize(("hits", "doubted"), [((21, 19), False), ((24, 16), False), ((34, 6), True)])
def test_a_median_between_hits_and_misses_of_a_cache_is_a_matter_of_chance(hits, doubted):
    """So many of 40 answers of each URL come from a cache: their medians are 80 ms apart."""
    rows = [
        {"sent": 10 * index, "texts": [10 * index + (20 if index // 2 < hits[index % 2] else 100)] * 3}
        for index in range(80)
    ]
    whole = records(*rows)
    whole.requests["replica"] = np.arange(80) % 2
    found = codes(whole)
    assert bool(found) == doubted
    if doubted:
        assert found["replica-slower"].measured.startswith(
            "http://b: TTFT +80.00 ms, 20.00 ms at the fastest"
        )


def test_a_url_that_the_client_had_no_socket_for_has_not_failed():
    whole = made(20, None)
    assert codes(whole).keys() == {"replica-failed"}
    whole.requests["outcome"][1::2] = Outcome.NO_SOCKET
    assert codes(whole) == {}


def test_the_slower_is_named():
    found = codes(made(40, 20))
    assert found.keys() == {"replica-slower"}
    assert found["replica-slower"].verdict == "SUSPECT"
    ttft, e2e = found["replica-slower"].measured.split("; ")
    assert ttft == "http://a: TTFT +20.00 ms, 20.02 ms at the fastest"
    assert e2e == "E2E +20.00 ms, 22.02 ms at the fastest"
    assert found["replica-slower"].limit == "TTFT 5.00 ms, E2E 5.50 ms"


def decoding(*gaps_ms, tokens=(20, 20)):
    """40 answers of each of two replicas, 60 ms to the first token."""
    rows, places = [], []
    for index in range(40):
        for place, gap in enumerate(gaps_ms):
            sent = 1000 * index
            texts = [sent + 60 + 0.01 * (index % 5) + gap * step for step in range(tokens[place])]
            rows.append({"intended": sent, "sent": sent, "texts": texts, "prompt": 100})
            places.append(place)
    whole = records(*rows)
    whole.requests["replica"] = places
    return whole


def test_a_replica_that_decodes_more_slowly_is_named():
    reason = codes(decoding(20, 28), workload__exact_output=False)["replica-slower"]
    assert reason.measured.startswith("http://b: TPOT +8.00 ms, 20.00 ms at the fastest; E2E +152.00 ms")
    assert codes(decoding(20, 21), workload__exact_output=False) == {}


def mixed(*factors, short=(40, 40), each=80):
    """Reasons where each kind has a first token of its own, times the factor of its replica; `short`: how
    many of its answers each replica gave to the short kind.
    """
    rows, places, asked = [], [], []
    for index in range(each):
        for place, factor in enumerate(factors):
            sent, kind = 1000 * index, "short" if index < short[place] else "long"
            ttft = {"short": 60, "long": 400}[kind] * factor + 0.1 * (index % 5)
            rows.append({"intended": sent, "sent": sent, "texts": [sent + ttft + step for step in range(3)]})
            places.append(place)
            asked.append((kind, {}))
    whole = records(*rows)
    whole.requests["replica"] = places
    verdict = judge(Evidence(RequestView(whole), facts(**BOTH), requested=requested(*asked)))
    return {str(reason.code): reason for reason in verdict.reasons if reason.code.startswith("replica-")}


def test_a_replica_that_is_slower_in_each_kind_of_a_mix_is_named():
    """The medians of all lie between the two kinds, where chance has 340 ms."""
    reason = mixed(1, 1.6)["replica-slower"]
    assert reason.measured == (
        "http://b: TTFT +60% in requests of like kind; E2E +59% in requests of like kind"
    )
    assert reason.limit == "TTFT 25%, E2E 25%"
    assert mixed(1.6, 1)["replica-slower"].measured.startswith("http://a: ")
    assert mixed(1, 1.2) == {}
    assert mixed(1, 1.6, short=(14, 14), each=28) == {}, "too few to tell"


def test_a_replica_that_got_more_of_a_long_kind_is_no_slower():
    assert mixed(1, 1, short=(70, 10)) == {}
    assert mixed(1.6, 1, short=(70, 10))["replica-slower"].measured.startswith("http://a: TTFT +")
    assert mixed(1, 1.6, short=(80, 0)) == {}, "no kind that both answered"


def test_longer_answers_of_one_replica_make_it_no_slower():
    assert codes(decoding(20, 20, tokens=(20, 40)), workload__exact_output=False) == {}


def test_a_replica_without_an_answer_is_named():
    found = codes(made(20, None))
    assert found.keys() == {"replica-failed"}
    assert found["replica-failed"].measured == "http://b: 0 of 40 requests answered"


@pytest.mark.parametrize(("failed", "doubted"), [(1, False), (2, True)])
def test_a_replica_that_failed_meanwhile_is_named(failed, doubted):
    cell = made(20, 20, each=100)
    cell.requests["outcome"][1 : 2 * failed : 2] = 1
    found = codes(cell)
    assert bool(found) == doubted
    if doubted:
        assert found["replica-failed"].measured == "http://b: 98 of 100 requests answered"
