"""Why the declared state of a cache cannot be told from the engine's counts."""

import pytest

from harness.conditions.cache_in_effect import Verified, verify
from harness.metrics.view import RequestView
from tests.factories.recorded import facts, records

COUNTED, SILENT = {"prompt": 100, "cached": 40}, {"prompt": 100}


@pytest.mark.parametrize(
    ("answers", "counters", "why"),
    [
        ([SILENT, SILENT], None, "no cached tokens are reported"),
        ([COUNTED, SILENT], None, "the server reports cached tokens of 1 of 2 answers only"),
        (
            [COUNTED, COUNTED | {"cached": 101}],
            None,
            "the server counts more cached tokens than prompt tokens",
        ),
        (
            [SILENT],
            {"prompt_tokens": 100.0, "cached_prompt_tokens": 110.0},
            "the server counts more cached tokens than prompt tokens",
        ),
    ],
)
def test_a_hit_rate_that_is_not_known_tells_nothing_and_says_why(answers, counters, why):
    made = records(*({"intended": 10 * i, "texts": [10 * i + 5], **row} for i, row in enumerate(answers)))
    known = facts(cache={"requested": "cold"}, server_counters=counters)
    assert verify(RequestView(made), known, None) == Verified(None, why, "")


def test_a_hit_rate_of_counters_alone_lacks_the_length_of_the_prompts():
    known = facts(cache={"requested": "cold"})
    assert verify(RequestView(records()), known, 0.3) == Verified(None, "no answer has its prompt tokens", "")
