"""Metrics of a class of requests: what verdicts and charts can be about besides whole cells."""

import pytest

from harness.model import CellResult, Manifest, better_of
from harness.model.measures import measure
from harness.model.metric_table import root_of
from harness.report.findings.sentences import waited
from harness.verdicts.evidence import TIMES, kind_of
from harness.verdicts.rules import rules_of
from tests.factories.documents import made


@pytest.mark.parametrize(
    ("path", "better"),
    [
        ("ttft_ms.p50", "lower"),
        ("by_depth.4k.ttft_ms.p50", "lower"),
        ("by_kind.1 x 32x32 png, fresh.tpot_ms.p90", "lower"),
        ("by_depth.4k.output_tokens_per_s", None),  # of whole cells only
        ("by_depth.4k", None),
        ("by_moon.4k.ttft_ms.p50", None),
    ],
)
def test_a_class_has_latencies_alone(path, better):
    assert better_of(path) == better


def test_words_say_whose_figure_it_is():
    shown = measure("by_depth.4k.ttft_ms.p50")
    assert (shown.name, shown.path, shown.unit) == ("TTFT p50 of 4k", "by_depth.4k.ttft_ms.p50", "ms")
    assert root_of(shown.path) == "ttft_ms"
    assert kind_of(shown.path) == kind_of("victim_loss") == TIMES


def test_no_two_metrics_have_one_name_in_the_words_for_people():
    paths = ("ttft_ms.p50", "by_depth.4k.ttft_ms.p50", "by_depth.8k.ttft_ms.p50", "by_depth.8k.ttft_ms.p90")
    names = [waited(measure(path)) for path in paths]
    assert names == ["first token", "first token of 4k", "first token of 8k", "first token of 8k, p90"]


def test_each_class_that_was_measured_has_a_metric():
    asked = {"primary": "ttft_ms.p50", "metrics": ["by_depth.*.ttft_ms.p50", "ttft_ms.p50"]}
    manifest = made(Manifest, scenario={"verdict": asked})
    cells = [
        made(CellResult, by_depth={"512": {}, "1k": {}}),
        made(CellResult, by_depth={"1k": {}, "1.5k": {}}),
    ]
    found = rules_of(manifest, cells).metrics
    assert found == ("ttft_ms.p50", "by_depth.512.ttft_ms.p50", "by_depth.1k.ttft_ms.p50")
    assert rules_of(manifest).metrics == ("ttft_ms.p50",)
