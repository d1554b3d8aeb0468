"""Whole runs of embeddings and rerank against the scripted server: from the wire to the verdict."""

from contextlib import contextmanager

import pytest

from harness.mockserver.process import running
from tests.integration.conftest import inside
from tests.integration.scripted import MEASURED, bench_in, define, only_cell, striking, summary

LOAD = (
    *("--requests", "30", "--concurrency", "2"),
    *("--set", "load.min_seconds=0", "--set", "verdict.cool_down_s=0"),
)
SIMULATED = ("--launch", "simulate", "--agreement", "--no-report")


@contextmanager
def embedding(here, ttft_ms, **arguments):
    """Backends that give vectors, by name with more arguments of `bench truth`, for runs in `here`."""
    with inside(here):
        for name, more in arguments.items():
            file = define(name, *more, ttft_ms=ttft_ms)
            text = file.read_text().replace("[prefix_cache]", "[dialect.apis.embeddings]\n[prefix_cache]")
            file.write_text(text)
        yield


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    """(summary, what the terminal shows) of two backends that give the same vectors."""
    here = tmp_path_factory.mktemp("embedded")
    with embedding(here, ttft_ms=100, one=(), other=()):
        done = bench_in(
            here, "run", "--scenario", "embed-documents", "--backends", "one,other", *LOAD, "--repeats", "1",
            "--requests", "16", "--agreement", "--no-probe", "--no-report",
            "--set", "prompts.items=4", "--set", "prompts.item_tokens=32",
        )  # fmt: skip
    return summary(here), done.stdout


def test_items_are_counted_and_tokens_of_text_are_not(embedded):
    found, _ = embedded
    for cell in found["cells"]:
        assert cell["requests"]["outcomes"] == {"ok": 16}
        assert cell["items_per_s"] == pytest.approx(4 * cell["requests_per_s"])
        # Each text has 32 tokens and one on either side.
        assert cell["input_tokens_per_s"] == pytest.approx(34 * cell["items_per_s"])
        assert cell["e2e_ms"]["p50"] > 20
        assert cell["ttft_ms"]["p50"] is None
        assert cell["output_tokens_per_s"] is None
        assert "come whole" in cell["null_reasons"]["ttft_ms.p50"]
        assert not [one for one in cell["validity"]["reasons"] if one["code"] == "usage-missing"]


def test_the_vectors_agree_and_the_verdict_is_about_items(embedded):
    found, shown = embedded
    assert all(pair["alike"] for pair in found["agreement"]["values"]["pairs"])
    assert len(found["agreement"]["values"]["pairs"]) == 3
    (first,) = [one for one in found["comparison"] if one["metric"] == "items_per_s"]
    assert first["verdict"] != "not comparable", first["why"]
    assert "items" in shown
    assert "TTFT" not in shown.split("verdict")[0]


@pytest.mark.long
@pytest.mark.parametrize(("scenario", "api"), [("embed-queries", "embeddings"), ("rerank-top-100", "rerank")])
def test_values_of_another_model_refuse_the_verdict(tmp_path, scenario, api):
    done = bench_in(
        tmp_path, "run", "--scenario", scenario, "--backends", "vllm,llamacpp", *SIMULATED, *LOAD,
        "--repeats", "1", "--simulate-fault", f"llamacpp@{api}=wrong-values", code=MEASURED,
    )  # fmt: skip
    assert f"answers disagree: vllm@{api} and llamacpp@{api}:" in " ".join(done.stdout.split())
    found = summary(tmp_path)
    assert {one["verdict"] for one in found["comparison"]} == {"not comparable"}
    assert any(one["code"] == "answers-differ" for one in found["warnings"])


# Outcome -> fault, the rarer first: of two faults the first strikes.
FAULTS = {
    "nans": {"malformed": "nan-values:every=3"},
    "mixed": {
        "truncated": "truncation:every=7",
        "http_error": "503:every=5",
        "stream_error": "error-event:every=4",
        "malformed": "malformed:every=3",
    },
}


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """Cells by backend, of one run of two that fail in different ways."""
    here = tmp_path_factory.mktemp("failing")
    words = {name: striking(faults.values()) for name, faults in FAULTS.items()}
    with embedding(here, ttft_ms=100, **words):
        bench_in(
            here, "run", "--scenario", "embed-queries", "--backends", ",".join(FAULTS), *LOAD,
            "--repeats", "1", "--no-probe", "--no-report", code=4,
        )  # fmt: skip
    return {cell["label"].partition("@")[0]: cell for cell in summary(here)["cells"]}


@pytest.mark.parametrize(("name", "outcomes"), FAULTS.items())
def test_what_is_no_vector_is_a_failure(failing, name, outcomes):
    cell = failing[name]
    assert cell["requests"]["outcomes"].keys() == {"ok", *outcomes}
    assert cell["validity"]["verdict"] == "INVALID"


def test_dimensions_that_a_server_ignores_are_a_failure(tmp_path):
    bench_in(
        tmp_path, "run", "--scenario", "embed-queries", "--backends", "llamacpp", "--launch", "simulate",
        *LOAD, "--no-probe", "--no-report", "--set", "request.dimensions=64", code=4,
    )  # fmt: skip
    assert only_cell(tmp_path)["requests"]["outcomes"] == {"malformed": 30}


def test_a_server_without_embeddings_is_one_line(tmp_path):
    with running(ttft_ms=1, gap_ms=1, dialect="ollama") as server:
        what = ("--scenario", "embed-queries", "--backends", f"openai={server.url}")
        done = bench_in(tmp_path, "run", *what, *LOAD, code=3)
    assert "no Embeddings API: POST /v1/embeddings answered 404" in done.stderr


def test_a_backend_without_embeddings_is_one_line(tmp_path):
    done = bench_in(tmp_path, "run", "--scenario", "embed-queries", "--backends", "tgi", "--dry-run", code=2)
    assert "backend 'tgi' has no Embeddings API" in done.stderr
