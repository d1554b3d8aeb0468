"""What an engine that runs already is shown, and where."""

import pytest

from harness.engines.session import _access_for
from harness.spec.backend import BackendRef
from harness.spec.backend_refs import load_backend
from harness.spec.reach import Given, Reach


@pytest.mark.parametrize(
    ("metrics_url", "shown"),
    [
        ("https://gate/metrics", True),
        ("https://GATE:443/metrics", True),
        ("http://gate/metrics", False),
        ("https://gate:9090/metrics", False),
        ("http://behind:8000/metrics", False),
    ],
)
def test_the_headers_of_a_gateway_go_to_its_own_address_alone(metrics_url, shown):
    """However its address is written. Without TLS its key would go in the clear."""
    reach = Reach(headers=(Given("X-Key", "k"),))
    ref = BackendRef(load_backend("vllm"), None, "https://gate", reach=reach)
    assert ("X-Key" in _access_for(metrics_url, ref).headers) is shown
