"""Lengths of prompts and answers on the page of the workload."""

from types import SimpleNamespace

import numpy as np

from harness.report.html.workload import workload
from tests.factories.summaries import cell, summary


def test_a_prompt_of_a_million_tokens_is_a_plain_number():
    samples = SimpleNamespace(
        prompt_tokens=np.array([2047, 2048, 1048576, 1048577]), output_tokens=np.array([3, 4])
    )
    source = SimpleNamespace(
        summary=summary(cell("vllm")),
        manifest=None,
        name=str,
        index=lambda _label: 0,
        samples_of=lambda _label: [samples],
    )
    page = str(workload(source))
    assert "2047 – 525312 – 1048577" in page
    assert "3 – 3.5 – 4" in page
