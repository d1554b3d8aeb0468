"""Files that the tools wrote themselves, of a scripted server: 100 ms to the first token, then 10 ms each.

Made by `python -m tests.bench.imported_tools --requests 12 --only "role chunk at once" --keep DIR`; its role
chunk comes at once, so that the tools' own figures differ.
"""

from pathlib import Path

import numpy as np
import pytest

from harness.imports import read
from harness.metrics import latency
from harness.metrics.view import RequestView

CAPTURES = Path(__file__).resolve().parents[2] / "captures" / "imports"
LAG_MS = 12.0  # of twelve requests: the tools' own start is in it


def taken_of(name):
    _, (taken,) = read(CAPTURES / name)
    return taken


RECORDS = [
    pytest.param("vllm.detail/r.json", "vllm bench serve", None, "records", id="vllm"),
    pytest.param("aiperf.detail/profile_export.jsonl", "aiperf", "0.13.0", "records", id="aiperf"),
    pytest.param("guidellm/r.json", "guidellm", "0.8.1", "records", id="guidellm"),
]


@pytest.mark.parametrize(("name", "tool", "version", "level"), RECORDS)
def test_records_of_a_tool_have_the_servers_times(name, tool, version, level):
    taken = taken_of(name)
    assert (taken.tool, taken.version, taken.level, taken.model) == (tool, version, level, "truth")
    assert taken.load.slots == 4
    view = RequestView(taken.records)
    assert len(view.requests) == 12
    assert not taken.definitions
    assert np.median(latency.of_metric(view, "ttft_ms")) == pytest.approx(100, abs=LAG_MS)
    assert latency.tpot_ms(view).mean() == pytest.approx(10, abs=0.5)


SUMMARIES = [
    pytest.param("vllm/r.json", "vllm bench serve", None, id="vllm"),
    pytest.param("aiperf/profile_export_aiperf.json", "aiperf", "0.13.0", id="aiperf"),
]


@pytest.mark.parametrize(("name", "tool", "version"), SUMMARIES)
def test_figures_of_a_tool_keep_its_meaning(name, tool, version):
    taken = taken_of(name)
    assert (taken.tool, taken.version, taken.level) == (tool, version, "summary")
    assert taken.load.slots == 4
    assert taken.answered == 12
    assert {path.partition(".")[0] for path in taken.reported} - set(taken.definitions) <= {
        "input_tokens_per_s"
    }
