"""Lengths of prompts and answers on the page of the workload."""

from types import SimpleNamespace

import numpy as np
import pytest

from harness.report.html.workload import workload
from tests.factories.summaries import cell, summary


def page_of(only, *samples):
    source = SimpleNamespace(
        summary=summary(only),
        manifest=None,
        name=str,
        index=lambda _label: 0,
        samples_of=lambda _label: samples,
    )
    return str(workload(source))


def test_a_prompt_of_a_million_tokens_is_a_plain_number():
    samples = SimpleNamespace(
        prompt_tokens=np.array([2047, 2048, 1048576, 1048577]), output_tokens=np.array([3, 4])
    )
    page = page_of(cell("vllm"), samples)
    assert "2047 – 525312 – 1048577" in page
    assert "3 – 3.5 – 4" in page


@pytest.mark.parametrize(
    ("arrivals", "words"),
    [
        ({"verdict": "differs", "achieved": {"gap_cv": 0.1, "ks": 0.3}}, "differs (gap CV, KS distance)"),
        ({"verdict": "kept", "achieved": {"gap_cv": 1.0, "ks": 0.1}}, "kept"),
        ({"verdict": "not tested", "limits": None, "reason": "ks, or so"}, "not tested (ks, or so)"),
    ],
)
def test_arrivals_name_the_figures_outside_their_limits(arrivals, words):
    limits = {"gap_cv": [0.9, 1.1], "ks": [0.0, 0.2]}
    given = {"process": "poisson", "arrivals": 50, "limits": limits, **arrivals}
    assert f"<td>{words}</td>" in page_of(cell("vllm", arrivals=given))
