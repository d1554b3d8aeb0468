"""Whether limits were kept, with shares that do not contradict the answer."""

from types import SimpleNamespace

from harness.report.html.limits import limits
from tests.factories.summaries import cell, summary


def page(part, *cells, **changes):
    source = SimpleNamespace(summary=summary(*cells, **changes), name=str, index=lambda _label: 0)
    made = part(source)
    return made if isinstance(made, str) else "".join(made)


def test_less_than_all_requests_is_never_a_hundred_per_cent():
    limit = {"metric": "ttft_ms", "share": "max", "limit_ms": 200.0, "within": 0.99964, "met": False}
    missed = cell(slo={"limits": [limit], "attainment": 0.99964})
    kept = cell("vllm", slo={"limits": [{**limit, "within": 1.0, "met": True}]})
    tried = {"value": 100.25, "runs": 1, "kept": 0, "attainment": 0.99964, "why": "e2e max"}
    found = page(
        limits,
        missed,
        kept,
        capacity=[{"label": "vllm", "kind": "rate", "kept_by_search": [], "tested": [tried]}],
    )
    assert found.count(">99.96<") == 2  # the load that was tried, and the limit that was missed
    assert found.count(">100<") == 1
    assert ">100.25<" in found


def test_a_share_below_that_of_its_limit_does_not_read_as_it():
    limit = {"metric": "e2e_ms", "share": "p95", "limit_ms": 500.0, "within": 0.9496, "met": False}
    assert ">94.96<" in page(limits, cell(slo={"limits": [limit], "attainment": 0.9496}))


def test_a_load_that_was_measured_again_names_the_probe_that_does_not_count():
    tried = {"value": 8, "runs": 3, "kept": 2, "attainment": 1.0, "why": None, "disturbed": 1}
    answer = {"label": "vllm", "kind": "rate", "kept_by_search": [], "tested": [tried]}
    found = page(limits, capacity=[answer])
    assert ">2 of 3<" in found
    assert ">1 disturbed probe left out<" in found
