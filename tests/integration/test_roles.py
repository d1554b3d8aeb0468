"""A prefill and a decode engine behind one URL: what each did is told apart, and the first token is split."""

import pytest

from harness.mockserver import running
from harness.store import RunFolder
from tests.integration.router import in_roles, router
from tests.integration.scripted import MEASURED, bench, bench_here, only_cell, run_folder

PREFILL_MS, DECODE_MS, TRANSFER_MS = 120, 40, 60
GAP_MS = 40  # with much less, a busy machine reads events together, and the cell is INVALID
INPUT, OUTPUT = 64, 8


@pytest.fixture
def pools():
    """Of scripted servers, which tell of themselves as vLLM does."""
    same = {"dialect": "vllm", "gap_ms": GAP_MS}
    with (
        running(**same, ttft_ms=PREFILL_MS) as prefill,
        running(**same, ttft_ms=DECODE_MS, transfer_ms=TRANSFER_MS) as decode,
        router([prefill.url, decode.url], in_roles(prefill.url)) as url,
    ):
        yield url, prefill, decode


def first_token_ms(server, requests):
    """The mean of the last requests, by what the server knows of itself: on a busy machine it is late."""
    records = server.truth()["records"][-requests:]
    return sum(record["write_ns"][0] - record["received_ns"] for record in records) / requests / 1e6


def words(url, *places, requests):
    size = ("--input-tokens", str(INPUT), "--output-tokens", str(OUTPUT), "--requests", str(requests))
    where = [word for place in places for word in ("--metrics-url", place)]
    load = ("--scenario", "fixed-length", "--concurrency", "2", "--repeats", "1")
    return ("run", "--backends", f"vllm={url}", *load, "--no-probe", "--no-report", "-v", *size, *where)


def words_of(pools, requests):
    url, prefill, decode = pools
    return words(url, f"prefill@{prefill.url}", f"decode@{decode.url}", requests=requests)


def test_what_each_role_did_is_never_added_up(here, pools):
    bench(*words_of(pools, requests=8), code=MEASURED)
    cell = only_cell()
    prefill, decode = cell["roles"]["of"]["prefill"], cell["roles"]["of"]["decode"]
    sent = cell["requests"]["ok"] + cell["requests"]["warmup"]
    assert (prefill["output_tokens"], decode["output_tokens"]) == (sent, sent * OUTPUT)
    assert prefill["prompt_tokens"] == decode["prompt_tokens"] >= sent * INPUT
    # The counters of the cell are those of a request's way: its prompt once, its answer once.
    assert cell["server"]["prompt_tokens"] == prefill["prompt_tokens"]
    assert cell["server"]["output_tokens"] == decode["output_tokens"]
    assert cell["server"]["running"] is None
    laws = {law["law"]: law["holds"] for law in cell["conservation"]}
    assert laws["output tokens: by the engine's counters = in its answers"] is True


@pytest.mark.long
@pytest.mark.time
def test_the_first_token_is_split_with_the_transfer_inside(here, pools):
    done = bench(*words_of(pools, requests=24), code=MEASURED)
    cell, (_url, prefill, decode) = only_cell(), pools
    split, sent = cell["roles"]["ttft_split"], cell["requests"]["ok"] + cell["requests"]["warmup"]
    assert split["prefill_ms"] == pytest.approx(first_token_ms(prefill, sent), rel=1e-4)
    assert split["decode_ms"] == pytest.approx(first_token_ms(decode, sent), rel=1e-4)
    assert split["prefill_ms"] >= PREFILL_MS
    assert split["decode_ms"] >= DECODE_MS + TRANSFER_MS
    assert split["transfer_ms"] == pytest.approx(TRANSFER_MS)
    parts = split["prefill_ms"] + split["decode_ms"] + split["rest_ms"]
    assert parts == pytest.approx(split["client_ms"])
    (name,) = RunFolder(run_folder()).cells()
    rows = RunFolder(run_folder()).read_cell(name)[0].requests
    ttft_ns = rows["first_text_ns"] - rows["sent_ns"]
    assert split["client_ms"] == pytest.approx(ttft_ns.mean() / 1e6)
    assert split["rest_ms"] > 0
    assert "by role, as the engines count; never added up" in done.stdout
    assert "of it transfer" in done.stdout


def test_roles_that_do_not_fit_are_one_error_each(here):
    """Nobody listens at these addresses: the error comes before a request."""
    url, prefill, decode = (f"http://127.0.0.1:{port}" for port in (9, 10, 11))
    done = bench_here(*words(url, f"prefill@{prefill}", requests=8), code=2)
    assert "no engine has the role 'decode'" in done.stderr
    done = bench_here(*words(url, f"prefill@{prefill}", decode, requests=8), code=2)
    assert "some have a role, and some have none" in done.stderr
