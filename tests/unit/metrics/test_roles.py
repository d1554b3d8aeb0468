"""What engines with roles count, by role, and the first token in parts."""

from dataclasses import replace

import numpy as np
import pytest

from harness.metrics.roles import compute
from harness.metrics.view import CellView
from harness.records.series import Samples, Telemetry
from harness.run.measure.roles import by_role, together
from tests.factories.recorded import facts, records

ROWS = [{"sent": 100 * n, "texts": [100 * n + 230, 100 * n + 250]} for n in range(4)]


def observed(mean_ms, count=4):
    return {"buckets": [], "sum": mean_ms * count / 1e3, "count": count}


def role(name, **histograms):
    return {"role": name, "places": [0], "urls": [f"http://{name}"], "counters": {}, "histograms": histograms}


def found(*roles):
    return compute(CellView(records(*ROWS), facts(roles=list(roles))))


def test_the_parts_of_the_first_token_add_up():
    decode = role("decode", ttft=observed(90), transfer=observed(50))
    split = found(role("prefill", e2e=observed(120)), decode).roles.ttft_split
    assert (split.client_ms, split.prefill_ms, split.decode_ms) == pytest.approx((230, 120, 90))
    assert (split.transfer_ms, split.rest_ms) == pytest.approx((50, 20))


@pytest.mark.parametrize(
    ("prefill", "said"),
    [
        (role("prefill"), "do not count the times"),
        (role("prefill", e2e=observed(120, count=3)), "3 read, 4 went on with, 4 answered"),
    ],
)
def test_a_split_that_is_not_known_says_why(prefill, said):
    figures = found(prefill, role("decode", ttft=observed(90)))
    assert figures.roles.ttft_split is None
    assert said in figures.nulls["roles.ttft_split"]


def test_engines_of_one_role_add_up_and_roles_do_not():
    counts = [
        ({"prompt_tokens": 100.0, "output_tokens": 4.0}, ()),
        ({"prompt_tokens": 60.0, "output_tokens": 3.0}, ((1.0, 2.0),)),
        ({"prompt_tokens": 160.0, "output_tokens": 70.0}, ()),
    ]
    roles = by_role(
        ("prefill", "prefill", "decode"), ("http://a", "http://b", "http://c"), counts, [{}, {}, {}]
    )
    prefill, decode = roles
    assert prefill.counters == {"prompt_tokens": 160.0, "output_tokens": 7.0}
    assert (prefill.places, decode.places, prefill.restarts) == ((0, 1), (2,), 1)
    assert together(roles) == {"prompt_tokens": 160.0, "output_tokens": 70.0}
    assert together(by_role(("prefill", "decode"), ("a", "b"), [(None, ()), counts[2]], [{}, {}])) is None


def steady(value):
    return Samples(np.array([-1_000, 200, 10_000]) * 1_000_000, np.full(3, float(value)))


def gauges(**series):
    """The figures of two engines that read prompts, 0 and 2, of the series by their names, `_` for `.`."""
    named = {f"engine.{name[1]}.{name[3:]}": steady(value) for name, value in series.items()}
    prefill = role("prefill") | {"places": [0, 2]}
    seen = CellView(records(*ROWS), facts(roles=[prefill, role("decode") | {"places": [1]}]), None)
    return compute(replace(seen, telemetry=Telemetry(named))).roles.of


def test_gauges_of_one_role_add_up_and_the_fullest_cache_counts():
    found = gauges(
        e0_running=2,
        e2_running=3,
        e0_waiting=1,
        e2_waiting=0.5,
        e0_kv_use=0.3,
        e2_kv_use=0.7,
        e1_running=40,
        e1_waiting=9,
        e1_kv_use=0.9,
    )
    prefill, decode = found["prefill"], found["decode"]
    assert (prefill.running, prefill.waiting, prefill.kv_use) == pytest.approx((5, 1.5, 0.7))
    assert (decode.running, decode.waiting, decode.kv_use) == pytest.approx((40, 9, 0.9))


def test_a_gauge_that_one_engine_of_the_role_lacks_is_not_known():
    prefill = gauges(e0_running=2, e0_waiting=1, e2_waiting=1, e0_kv_use=0.3)["prefill"]
    assert (prefill.running, prefill.waiting, prefill.kv_use) == (None, 2, None)


def test_gauges_are_of_the_window_and_the_cache_of_its_fullest_moment():
    """Four requests at once: from 0 to 250 ms. A cache fills up to a half and is cleared after the load."""
    at_ms, held = [-1_000, 0, 100, 250, 300, 1_000], [0.9, 0.1, 0.5, 0.1, 0.9, 0.9]
    told = role("prefill") | {"places": [0]}
    seen = CellView(
        records(*[{"texts": [230, 250]}] * 4),
        facts(roles=[told], load={"kind": "concurrency", "value": 4}),
        None,
        Telemetry({"engine.0.kv_use": Samples(np.array(at_ms) * 1_000_000, np.array(held))}),
    )
    assert compute(seen).roles.of["prefill"].kv_use == pytest.approx(0.5)


def test_counters_and_times_of_a_role_are_its_engines_own():
    told = role("prefill", ttft=observed(80), e2e=observed(120, count=0)) | {
        "counters": {"prompt_tokens": 160.0, "cached_prompt_tokens": 40.0}
    }
    figures = found(told, role("decode") | {"counters": None}).roles.of
    prefill, decode = figures["prefill"], figures["decode"]
    assert (prefill.urls, decode.urls) == (("http://prefill",), ("http://decode",))
    assert (prefill.prompt_tokens, prefill.cached_prompt_tokens, prefill.output_tokens) == (160, 40, None)
    assert (prefill.ttft_ms, prefill.e2e_ms) == (pytest.approx(80), None)
    assert (decode.prompt_tokens, decode.ttft_ms, decode.running) == (None, None, None)


def test_engines_without_a_role_have_no_such_figures():
    made = found()
    assert (made.roles, made.nulls) == (None, {})
