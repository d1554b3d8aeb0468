"""One made-up run of three engines at two loads, in copies that a test may change."""

import pytest

from harness.store import RunFolder
from tests.bench.audit.gates import mend
from tests.factories.runs import Engine, Shape, copy_of, make_run

ENGINES = (
    Engine("llamacpp", "llama.cpp", 14.0, 9.0, version="b11549"),
    Engine("vllm@eager", "vLLM", 80.0, 20.0),
    Engine("tgi", "TGI", 40.0, 9.0, failing=(7,)),
)


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory) -> RunFolder:
    shape = Shape(engines=ENGINES, concurrency=(1, 2), repeats=3, requests=6, output_tokens=4)
    folder = make_run(tmp_path_factory.mktemp("runs"), shape)
    mend(folder.path)
    return folder


@pytest.fixture
def copied(whole_run, tmp_path, monkeypatch) -> RunFolder:
    """In `results` of the working directory, with a cache in which nothing is known of it."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return copy_of(whole_run, tmp_path / "results")
