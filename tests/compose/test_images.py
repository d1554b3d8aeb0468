"""Images that have to be fetched: from a registry on this machine, by the real daemon."""

import pytest

from harness.engines.start.containers.daemon import Daemon
from harness.engines.start.containers.images import ensure_image
from harness.errors import SetupError
from harness.spec.backend_refs import load_backend
from tests.compose.conftest import docker
from tests.compose.registry import serving


def test_a_pull_shows_its_progress_and_is_recorded_by_digest(monkeypatch):
    said = []
    with serving(30_000_000, bytes_per_s=6e6) as (name, digest):
        monkeypatch.setenv("BENCH_IMAGE_SGLANG", name)
        try:
            image = ensure_image(Daemon(), load_backend("sglang"), "cpu", said.append)
            again = ensure_image(Daemon(), load_backend("sglang"), "cpu", lambda line: pytest.fail(line))
        finally:
            docker("rmi", name)
    assert image == again
    assert image.digest == f"{name.rpartition(':')[0]}@{digest}"
    assert image.overridden
    assert said[0] == f"sglang: pulling {name}"
    assert any("of 0.0 GB" in line for line in said[1:-1]), said
    assert "pulled in" in said[-1]


def test_a_registry_without_the_image_is_told_from_none_at_all(monkeypatch):
    with serving(10, bytes_per_s=1e9) as (name, _digest):
        pass
    monkeypatch.setenv("BENCH_IMAGE_SGLANG", name)
    with pytest.raises(SetupError) as caught:
        ensure_image(Daemon(), load_backend("sglang"), "cpu", print)
    assert f"image {name} is not on this machine and cannot be pulled: Docker refused" in str(caught.value)
    assert "BENCH_IMAGE_SGLANG" in caught.value.hint
