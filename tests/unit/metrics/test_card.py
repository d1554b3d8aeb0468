import json

import numpy as np
import pytest
from msgspec.structs import asdict, replace

from harness.cli.main import main
from harness.errors import ExitCode
from harness.metrics.card import describe
from harness.model import CardLoad, ChatCount, WorkloadCard
from harness.records.request_table import Part, RequestTable
from harness.report.text.card import card_lines

S = 1_000_000_000


def requested(*rows):
    """Each: max_tokens, content_tokens, kind, shared parts, session, turn."""
    return RequestTable.of(
        (
            ((output, content, session, turn, -1, -1), kind, shared)
            for output, content, kind, shared, session, turn in rows
        ),
        [],
    )


SHARED = (Part(1, 32), Part(2, 10))
ROWS = ((8, 100, "usual", SHARED, -1, 0), (8, 60, "usual", SHARED, -1, 0), (16, 40, "odd", SHARED[:1], -1, 0))


def test_figures_worked_out_on_paper():
    card = describe(requested(*ROWS), 1, None)
    assert (card.requests, card.warmup_requests) == (2, 1)
    assert card.input_tokens.mean == pytest.approx(200 / 3)
    assert (card.input_tokens.min, card.input_tokens.max) == (40, 100)
    assert card.output_tokens.p50 == 8
    assert card.kinds == {"usual": 2, "odd": 1}
    sharing = card.sharing
    assert sharing.radix_hit_rate == pytest.approx((42 + 32) / 200)
    assert sharing.block_hit_rate == pytest.approx((32 + 32) / 200)
    assert sharing.unique_share == pytest.approx(1 - 74 / 200)
    assert sharing.sharing_requests == 2
    assert card.sessions is None
    assert card.arrivals is None


@pytest.mark.parametrize(("least", "outputs", "inputs"), [(1, 50, 900), (0, 50, 900), (0, 1, 1)])
def test_histograms_hold_every_request(least, outputs, inputs):
    """Recordings have no token of text, and vectors none of an answer."""
    rows = [(least + i % outputs, least + i * 7 % inputs, "", (), -1, 0) for i in range(300)]
    card = describe(requested(*rows), 0, None)
    for histogram in (card.input_tokens.histogram, card.output_tokens.histogram):
        assert sum(histogram.counts) == 300
        assert len(histogram.edges) == len(histogram.counts) + 1
        assert np.all(np.diff(histogram.edges) > 0)


def test_sessions_and_arrivals():
    rows = [(8, 20, "", (), i // 2, i % 2) for i in range(6)]
    card = describe(requested(*rows), 0, np.arange(50) * S)
    assert card.sessions == ChatCount(count=3, turns_mean=2.0, turns_max=2)
    assert card.arrivals.rate_per_s == pytest.approx(1)
    assert card.arrivals.gap_cv == pytest.approx(0)
    assert describe(requested(*rows), 0, np.zeros(50, np.int64)).arrivals is None


def test_a_card_as_text():
    def card(figures):
        load = CardLoad(kind="rate", value=2.0, process="poisson")
        return WorkloadCard(**asdict(figures), load=load, sha256="ab" * 32, exact_lengths=False)

    told = card(describe(requested(*ROWS), 1, np.arange(50) * S))
    text = "\n".join(card_lines(told))
    assert "open loop, 2 requests/s: 2 requests after 1 to warm up, sha256 abababababab" in text
    assert "approximate" in text
    assert "37% of 200 prompt tokens were in a prompt before (32% in blocks of 16), in 2 requests" in text
    assert "poisson: 1.00/s, gap CV 0.00" in text
    alone = card(describe(requested((8, 9, "", (), -1, 0)), 0, None))
    lines = "\n".join(card_lines(alone))
    assert "input   9 tokens each" in lines
    assert "none of 9 prompt tokens" in lines


def test_answers_that_are_no_text_have_no_length_to_ask_for():
    rows = [((1, 9, -1, 0, -1, -1, 4), "5 s", ())] * 2
    figures = describe(RequestTable.of(iter(rows), []), 1, None)
    assert figures.output_tokens.max == 0
    load = CardLoad(kind="concurrency", value=1, process=None)
    card = WorkloadCard(**asdict(figures), load=load, sha256="ab" * 32, exact_lengths=True, alike_chars=1)
    assert list(card_lines(card)) == [
        "closed loop, concurrency 1: 1 request after 1 to warm up, sha256 abababababab",
        "  input   9 tokens each",
        "  kinds   2 × 5 s",
        "  shared  none of 18 prompt tokens; no two texts begin with more than 1 equal letter",
    ]
    text = describe(requested((1, 9, "", (), -1, 0)), 0, None)
    assert "  output  1 token each" in list(card_lines(replace(card, output_tokens=text.output_tokens)))


def test_every_shipped_scenario_has_a_card(capsys):
    def listed(*words):
        assert main(["list", "scenarios", *words]) == ExitCode.OK
        return capsys.readouterr().out

    cards = listed("-v")
    names = [row["name"] for row in json.loads(listed("--json"))["scenarios"]]
    assert len(names) > 10
    assert [name for name in names if f"{name}\n" not in cards] == []
    assert cards.count("sha256") >= len(names)
