"""HTTP/2, where it is asked for: through httpx, and nothing else is spoken instead."""

from dataclasses import replace

import numpy as np
import pytest

from harness.errors import SetupError
from harness.load import run_load
from harness.load.job import ClosedLoop, LoadJob
from harness.mockserver import running
from harness.records.layout import Outcome
from harness.run import prepare
from harness.run.options import RunOptions
from tests.integration.h2_server import TOKENS, running_h2

BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":4,"stream":true}'


def job(url):
    return LoadJob(
        url=f"{url}/v1/chat/completions",
        headers={"content-type": "application/json"},
        bodies=[BODY] * 12,
        schedule=ClosedLoop(4),
        request_timeout_s=10,
        drain_timeout_s=10,
        workers=1,
        http2=True,
    )


def test_answers_are_read_and_the_way_is_recorded():
    with running_h2() as url:
        result = run_load(job(url))
    rows = result.records.requests
    assert (rows["outcome"] == Outcome.OK).all()
    assert (rows["output_tokens"] == TOKENS).all()
    assert (rows["text_events"] == TOKENS).all()
    assert result.client.stamp_source == "user"
    assert any(note.startswith("HTTP/2") for note in result.client.notes)


@pytest.mark.parametrize("dealt", [True, False])
def test_requests_go_to_the_url_that_their_record_names(dealt):
    """One URL answers, at the other nobody listens."""
    with running_h2() as url:
        two = replace(job(url), other_urls=("http://127.0.0.1:9/v1/chat/completions",))
        rows = run_load(replace(two, replicas=np.arange(12) % 2) if dealt else two).records.requests
    assert (rows["outcome"][rows["replica"] == 0] == Outcome.OK).all()
    assert (rows["outcome"][rows["replica"] == 1] == Outcome.CONNECT_FAILED).all()
    assert set(rows["replica"]) == {0, 1}
    if dealt:
        assert (rows["replica"] == rows["seq"] % 2).all()


def test_a_server_without_it_fails_the_requests_and_is_not_asked_in_another_way():
    with running(ttft_ms=1, gap_ms=0) as server:
        result = run_load(job(server.url))
        assert server.truth()["records"] == []
    assert not (result.records.requests["outcome"] == Outcome.OK).any()


def test_without_its_package_it_is_refused_before_anything_is_started(monkeypatch):
    monkeypatch.setattr(prepare, "find_spec", lambda name: None)
    with pytest.raises(SetupError, match="h2") as error:
        prepare.prepare(RunOptions("fixed-length", "truth", http2=True))
    assert "llm-servebench[http2]" in error.value.hint
