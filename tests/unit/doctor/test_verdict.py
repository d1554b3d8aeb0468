"""What measurements come to: the highest load that holds, the sentence, the limits."""

import pytest

from harness.doctor.loads import Load
from harness.doctor.verdict import conclude
from harness.model import IssueCode, Reach, Reason, ScriptedServer
from tests.factories.doctor import client, rate, streams


def test_an_exact_machine_says_so_in_one_sentence():
    verdict = conclude([streams(8), streams(256), streams(1024, tokens_per_s=20_123.4), rate(500)], [], [])
    assert verdict.sentence == (
        "exact to ±0.1 ms up to 1,024 streams and 20,123 tokens/s here (TTFT and ITL p99); "
        "Poisson arrivals leave within 0.30 ms (p99) at 500/s"
    )
    assert verdict.fit_to_measure
    assert (verdict.limits, verdict.hints) == ((), ())
    assert (verdict.exact_streams, verdict.tried_streams) == (1024, 1024)
    assert (verdict.on_time_per_s, verdict.tried_per_s) == (500, 500)


def test_a_tolerance_counts_as_far_as_every_lighter_load_keeps_to_it():
    verdict = conclude([streams(8), streams(64, 0.15), streams(256, 0.05), streams(512, 0.4)], [], [])
    assert verdict.reaches == (Reach(0.1, 8, 1000), Reach(0.2, 256, 1000), Reach(0.5, 512, 1000))
    assert "±0.1 ms up to 8 streams" in verdict.sentence
    assert "±0.5 ms up to 512 streams" in verdict.sentence


@pytest.mark.parametrize(
    "bad",
    [
        streams(256, 1.01),
        streams(256, verdict="SUSPECT"),
        streams(256, verdict="INVALID"),
        streams(256, None, verdict="INVALID"),
    ],
    ids=["not exact", "suspect", "invalid", "not comparable"],
)
def test_nothing_counts_beyond_a_load_that_does_not_hold(bad):
    verdict = conclude([streams(8), streams(64), bad, streams(512)], [], [])
    assert verdict.exact_streams == 64
    assert not verdict.fit_to_measure


def test_exact_at_256_streams_is_the_bar():
    assert conclude([streams(256, 1.0)], [], []).fit_to_measure
    assert not conclude([streams(255)], [], []).fit_to_measure


def test_a_machine_that_is_exact_nowhere_has_a_sentence_too():
    verdict = conclude([streams(8, 5.0), rate(200, lag_ms=3)], [], [])
    assert verdict.sentence == "not exact to 1 ms at any load here"
    assert verdict.limits == (
        "8 streams, gap 20 ms: VALID: 5.00 ms off at p99",
        "open loop, 200/s: VALID: sent 3.00 ms late at p99",
    )
    assert verdict.on_time_per_s == 0


def test_a_limit_never_reads_as_kept_or_as_without_end():
    """1.004 ms is beyond 1 ms, and of requests that never left no lateness is known."""
    verdict = conclude([streams(8, 1.004), rate(200, lag_ms=1.0004), rate(500, lag_ms=None)], [], [])
    assert verdict.limits == (
        "8 streams, gap 20 ms: VALID: 1.004 ms off at p99",
        "open loop, 200/s: VALID: sent 1.0004 ms late at p99",
        "open loop, 500/s: VALID: how late requests were sent is not known",
    )


def test_limits_name_the_reasons_and_hints_say_what_to_do():
    reason = Reason(IssueCode.CLIENT_BUSY, "SUSPECT", "80% of a core", "70%", "H")
    bad = streams(256, verdict="SUSPECT", reasons=(reason,), other_cores=1.5)
    verdict = conclude([streams(8, reasons=(reason,)), bad], [], ["set the governor", "H"])
    assert verdict.limits[1] == "256 streams, gap 20 ms: SUSPECT: client-busy 80% of a core (limit 70%)"
    assert verdict.hints[0] == "H"
    assert verdict.hints[1].startswith("other work kept up to 1.5 cores busy")
    assert verdict.hints[2:] == ("set the governor",)


@pytest.mark.parametrize(
    "server", [ScriptedServer(1, 5.1, 9, 0.5), ScriptedServer(0, 0.1, 1, 0.95)], ids=["late", "busy"]
)
def test_a_limit_of_the_server_is_told_apart(server):
    verdict = conclude([streams(8), streams(256, server=server)], [], [])
    assert verdict.fit_to_measure
    assert verdict.limits[0].startswith("the scripted server was late itself at 1 of 2 loads")


def test_loads_left_out_are_named():
    verdict = conclude([streams(8)], [Load("concurrency", 1024, gap_ms=50, tokens=8, requests=2048)], [])
    assert verdict.limits == ("1,024 streams, gap 50 ms: left out, the limit of open files is too low",)


def test_what_a_load_was_the_first_time_is_told_and_not_held_against_it():
    verdict = conclude([streams(8), streams(256)], [], [], repeated=[streams(8, 5.0)])
    assert verdict.exact_streams == 256
    (limit,) = verdict.limits
    assert limit == "8 streams, gap 20 ms: measured twice; the first time VALID: 5.00 ms off at p99"


def test_a_worker_carries_its_heaviest_good_load_as_often_as_fits_half_a_core():
    quarter = {"client": client(0.3, 0.25)}
    idle = {"client": client(0.3, 0.01)}
    verdict = conclude([streams(256), streams(1024, **quarter), rate(500, **idle)], [], [])
    assert verdict.streams_per_worker == 2048
    assert verdict.arrivals_per_worker == 2000  # no more than four times what was measured
    several = conclude([streams(1024, client=client(0.3, 0.25, workers=4))], [], [])
    assert several.streams_per_worker == 512
    nothing = conclude([streams(256, 5.0)], [], [])
    assert (nothing.streams_per_worker, nothing.arrivals_per_worker) == (0, 0)
