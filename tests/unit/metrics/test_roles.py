"""What engines with roles count, by role, and the first token in parts."""

import pytest

from harness.metrics.roles import compute
from harness.metrics.view import CellView
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
        ({"prompt_tokens": 100.0, "output_tokens": 4.0}, 0),
        ({"prompt_tokens": 60.0, "output_tokens": 3.0}, 1),
        ({"prompt_tokens": 160.0, "output_tokens": 70.0}, 0),
    ]
    roles = by_role(
        ("prefill", "prefill", "decode"), ("http://a", "http://b", "http://c"), counts, [{}, {}, {}]
    )
    prefill, decode = roles
    assert prefill.counters == {"prompt_tokens": 160.0, "output_tokens": 7.0}
    assert (prefill.places, decode.places, prefill.restarts) == ((0, 1), (2,), 1)
    assert together(roles) == ({"prompt_tokens": 160.0, "output_tokens": 70.0}, 1)
    assert together(by_role(("prefill", "decode"), ("a", "b"), [(None, 0), counts[2]], [{}, {}])) == (None, 0)
