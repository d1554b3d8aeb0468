"""Against a URL bench works without Linux: the loop polls, and arrivals are stamped in user space."""

from pathlib import Path

import pytest

from harness.mockserver import running
from tests.integration.scripted import SMALL, bench, summary
from tests.long import others_long

IMITATED = str(Path(__file__).parent / "not_linux")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", IMITATED)


@pytest.mark.long
def test_a_url_is_measured_and_the_output_says_how_it_was_stamped():
    with running(ttft_ms=100, gap_ms=10) as server:
        done = bench(server.url, "--minutes", "0.2", "-v", code=(0, 4))
    said = " ".join((done.stdout + done.stderr).split())
    assert "stamps are taken in user space, after poll" in said
    for cell in summary()["cells"]:
        assert cell["client"]["stamp_source"] == "user"
        assert cell["ttft_ms"]["p50"] >= 100


@pytest.mark.time
def test_stamps_of_user_space_give_the_time_of_the_server():
    with running(ttft_ms=100, gap_ms=10) as server:
        bench("run", "--scenario", "fixed-length", "--backends", f"openai={server.url}", *SMALL, code=(0, 4))
    (cell,) = summary()["cells"]
    assert cell["client"]["stamp_source"] == "user"
    assert cell["ttft_ms"]["p50"] == pytest.approx(100, abs=10)


@pytest.mark.parametrize("backend", [*others_long(["truth", "llamacpp"], lambda name: name == "llamacpp")])
def test_an_engine_is_not_started_and_one_line_says_what_to_do(backend):
    done = bench("run", "--scenario", "fixed-length", "--backends", backend, code=3)
    said = " ".join(done.stderr.split())
    assert "bench starts engines on Linux only" in said
    assert f"attach with {backend}=http://HOST:PORT" in said
    assert not list(Path().glob("results/*"))
