"""The size of the KV cache that working sets are multiples of, and why it is not known."""

from types import SimpleNamespace

import pytest

from harness.engines.start.kv_cache import reported_tokens
from harness.errors import SpecError
from harness.run.setup.working_sets import kv_tokens

WANTED = SimpleNamespace(working_set=(0.5,), kv_tokens=None)
DEFINITION = SimpleNamespace(server=SimpleNamespace(kv_tokens=("kv_blocks", "block_size")))


def engine(**info):
    return SimpleNamespace(
        base_url="http://a",
        definition=DEFINITION,
        facts={"info": info},
        kv_tokens=lambda: reported_tokens(DEFINITION, info),
    )


def test_it_is_what_the_engine_reports():
    assert kv_tokens(WANTED, None, engine(kv_blocks=100, block_size=16)) == 1600


@pytest.mark.parametrize(
    ("info", "why"),
    [
        ({}, "the server does not say how many tokens its KV cache holds"),
        (
            {"kv_blocks": "100 + 200", "block_size": 16},
            "the KV caches of its replicas are of unlike sizes: 100 + 200",
        ),
    ],
)
def test_why_it_is_not_known(info, why):
    with pytest.raises(SpecError) as caught:
        kv_tokens(WANTED, None, engine(**info))
    assert str(caught.value) == f"http://a: {why}"
