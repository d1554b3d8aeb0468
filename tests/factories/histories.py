"""Lines of a history: nights of one backend whose one figure takes these values."""

from harness.model import HistoryEntry
from tests.factories.documents import made

LOAD = {"kind": "concurrency", "value": 4}


def night(number, value, *, label="vllm", metric="ttft_ms.p50", runs=1, **keys):
    """The night of 1 November and so many more; `keys`: others of the entry, as JSON has them."""
    given = {
        "run": f"run-{number:02d}",
        "created_utc": f"2026-11-{number + 1:02d}T03:00:00Z",
        "scenario": "chat",
        "label": label,
        "load": LOAD,
        "metrics": {metric: {"interval": [value] * 3 if runs > 1 else [None, value, None], "runs": runs}},
    }
    return made(HistoryEntry, given | keys)


def nights(values, **keys):
    return [night(number, value, **keys) for number, value in enumerate(values)]
