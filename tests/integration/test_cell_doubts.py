"""Doubts about a cell from the wire to the printed word: bursts, events sent together, too few answers."""

import time

import pytest

from harness.host.access import Access
from harness.load import run_load
from harness.load.job import ClosedLoop, LoadJob
from harness.metrics.latency import first_tokens
from harness.metrics.view import RequestView
from harness.model import CellFacts
from harness.records.layout import UNKNOWN
from harness.validity import Evidence, judge
from tests.factories import documents
from tests.integration.load_server import END, HEAD, event, serve, text
from tests.integration.scripted import MEASURED, SMALL, bench, define, run_folder, striking, summary

EIGHT = ("--no-probe", "--no-report", "--requests", "32", "--concurrency", "8", "--output-tokens", "8")
GAP_MS = 40  # with much less, a busy machine reads events together, and a cell is INVALID
NOT_WARMED_UP = ("--set", "load.warmup_requests=0")  # so the slots begin together


def reasons(cell):
    return {reason["code"]: reason for reason in cell["validity"]["reasons"]}


def test_equal_answers_from_a_common_start_are_bursts_and_told_so(here):
    define("calm", ttft_ms=200, gap_ms=GAP_MS)
    scenario = ("run", "--scenario", "fixed-length", "--backends", "calm", *EIGHT, *NOT_WARMED_UP)
    done = bench(*scenario, "-v")
    (cell,) = summary()["cells"]
    assert cell["synchrony"]["index"] > 0.9
    assert (cell["synchrony"]["waves"], cell["synchrony"]["burst"]) == (3, 8)
    assert cell["load"]["start"] == "together"
    assert reasons(cell)["lockstep"]["verdict"] == "SUSPECT"
    assert "sends come in bursts of about 8" in " ".join(done.stdout.split())
    assert ("slot-idle" in reasons(cell)) == (cell["slot_idle_share"] > 0.02)


def test_a_server_that_gives_its_prompts_back_is_not_compared(here):
    """A library that streams the prompt before its answer has a first token that it need not compute."""
    define("calm")
    define("parrot", *striking(["echo:every=2"]))
    few = ("--no-agreement", "--repeats", "1", *SMALL, "--output-tokens", "32")
    done = bench("run", "--scenario", "fixed-length", "--backends", "calm,parrot", *few, code=MEASURED)
    calm, parrot = summary()["cells"]
    assert "prompt-echoed" not in reasons(calm)
    assert reasons(parrot)["prompt-echoed"]["measured"] == "8 of 16 answers hold their own prompt"
    assert "answers of parrot that hold their prompts" in " ".join(done.stdout.split())


def test_a_declared_burst_is_a_label(here):
    define("calm", ttft_ms=200, gap_ms=GAP_MS)
    scenario = ("run", "--scenario", "fixed-length", "--backends", "calm", *EIGHT)
    done = bench(*scenario, *NOT_WARMED_UP, "--set", "load.start=together", "-v")
    (cell,) = summary()["cells"]
    assert cell["synchrony"]["in_bursts"]
    assert "lockstep" not in reasons(cell)
    assert 'bursts of 8, as declared (start = "together"): calm c8 r0' in " ".join(done.stdout.split())


def test_rates_end_where_no_chat_is_left_for_an_empty_slot(here):
    """Three chats of four answers in two slots: for a third of the time the last of them is alone."""
    define("calm", ttft_ms=390, gap_ms=GAP_MS)
    bench(
        "run", "--scenario", "shared-prefix", "--backends", "calm", "--no-probe", "--no-report",
        "--requests", "12", "--concurrency", "2", "--output-tokens", "8", *NOT_WARMED_UP,
        "--set", "prompts.turns=4", "--set", "prompts.prefix_tokens=64", "--set", "load.think_time_s=0",
    )  # fmt: skip
    (cell,) = summary()["cells"]
    assert cell["window_kind"] == "steady"
    assert cell["in_flight_mean"] == pytest.approx(2, rel=0.06)
    assert cell["requests_per_s"] == pytest.approx(2 / (cell["e2e_ms"]["mean"] / 1e3), rel=0.06)
    assert "does-not-add-up" not in reasons(cell)


@pytest.mark.time
def test_events_that_are_written_together_are_one_arrival(here):
    """A token every 20 ms, written in pairs."""
    define("pairs", "--events-per-write", "2", ttft_ms=100, gap_ms=20)
    done = bench(
        "run", "--scenario", "fixed-length", "--backends", "pairs", "--no-probe", "--no-report",
        "--requests", "16", "--concurrency", "4", "--output-tokens", "17",
    )  # fmt: skip
    (cell,) = summary()["cells"]
    assert cell["itl_ms"]["p50"] == pytest.approx(40, abs=5)
    assert cell["tpot_ms"]["p50"] == pytest.approx(20, abs=2)
    assert cell["events_per_arrival"] == pytest.approx(17 / 9, abs=0.01)
    assert reasons(cell)["itl-merged"]["verdict"] == "SUSPECT"
    assert "itl-merged" in done.stdout


def test_too_few_answers_say_how_many_would_do(here):
    define("calm", ttft_ms=100, gap_ms=GAP_MS)
    done = bench(
        "run", "--scenario", "fixed-length", "--backends", "calm", "--no-probe", "--requests", "10",
        "--concurrency", "1", "--output-tokens", "4", "--set", "load.min_answers=50", "-v",
    )  # fmt: skip
    (cell,) = summary()["cells"]
    assert cell["sample"]["answers"] == 10
    assert reasons(cell)["too-short"]["hint"] == "measure longer: --requests 50"
    said = " ".join(done.stdout.split())
    assert "too-short, 10 answers in" in said
    assert "measure longer: --requests 50" in said
    assert "a first look: cells of 10 answers and" in said
    report = (run_folder() / "report.html").read_text()
    assert "slots idle, of 1" in report
    assert "upper bounds of 95% confidence" in report


def test_a_first_event_of_six_tokens_is_told_where_nobody_counted_them():
    """Then 20 tokens, one every 40 ms: by 25 gaps it would be 32 ms."""

    def script(peer):
        peer.say(HEAD, text("abcdef"))
        for _ in range(20):
            time.sleep(0.04)
            peer.say(text("g"))
        usage = {"prompt_tokens": 3, "completion_tokens": 26}
        peer.say(event(choices=[{"index": 0, "delta": {}, "finish_reason": "length"}]))
        peer.say(event(choices=[], usage=usage), END)

    with serve(script) as server:
        bodies = [b'{"stream":true}'] * 4
        load = LoadJob(server.url, Access(), bodies, ClosedLoop(1), workers=1)
        result = run_load(load)
    assert (first_tokens(result.records.requests) == UNKNOWN).all()
    facts = documents.made(
        CellFacts,
        client=result.client,
        load={"kind": "concurrency", "value": 1},
        minimum={"seconds": 0.0, "answers": 1},
        workload={"output_tokens": 26, "exact_output": True},
    )
    found = {reason.code: reason for reason in judge(Evidence(RequestView(result.records), facts)).reasons}
    assert found["first-event-tokens"].measured.startswith("about 6.0 tokens in first arrivals")


WORTHLESS = {
    "error-text:every=5": ("errors-as-answers", '"CUDA out of memory. Tried to allocate 2.00 GiB."'),
    "same-text": ("answers-same", "16 of 16 answers are the same text"),
    "one-token": ("one-token-repeated", '16 of 16 answers: "!!!!!!!!'),
    "no-text": ("tokens-without-text", "16 of 16 answers: 48.0 tokens in 2.0 bytes of text"),
}


@pytest.mark.parametrize("fault", WORTHLESS)
def test_answers_that_are_worth_nothing_are_named_next_to_their_speed(here, fault):
    """The server with the fault needs half the time: that alone must not be said of it."""
    define("right", ttft_ms=400)
    define("worthless", "--fault", fault, ttft_ms=200)
    done = bench(
        *("run", "--scenario", "fixed-length", "--backends", "right,worthless", *SMALL),
        *("--output-tokens", "48", "--repeats", "1", "-v"),
    )
    code, measured = WORTHLESS[fault]
    right, worthless = summary()["cells"]
    assert measured in reasons(worthless)[code]["measured"]
    assert not {code for code, _ in WORTHLESS.values()} & reasons(right).keys()
    printed = " ".join(done.stdout.split())
    assert measured in printed
    _, _, doubt = printed.partition("in doubt")
    assert code in doubt.partition("p50")[0]  # above the table
