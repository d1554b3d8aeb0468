"""The commands of the page about a new engine do what it says: validate, probe, write what is made of it."""

import pytest

from harness.mockserver import running
from tests.integration.test_contributing_code import Checkout, code_of, sources_in


@pytest.mark.long
def test_an_engine_is_a_definition(tmp_path):
    checkout = Checkout(sources_in(tmp_path / "sources"), tmp_path / "checkout")
    _, (validate, probe, generate) = code_of("add-an-engine")
    checkout.run(validate.replace("NAME", "truth"))
    started, running_one = probe.splitlines()
    checkout.run(started.replace("NAME", "truth"))
    with running() as server:
        checkout.run(running_one.replace("NAME=URL", f"truth={server.url}"))
    for line in generate.splitlines():
        said = checkout.run(line)
    assert "passed" in said
