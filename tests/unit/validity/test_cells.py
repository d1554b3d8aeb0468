from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from harness.conditions.cache_in_effect import OF_FILE
from harness.metrics.view import RequestView
from harness.model import Ending, EndKind
from harness.records.layout import UNKNOWN, Outcome
from harness.validity import Evidence, blame, judge
from tests.factories.recorded import facts, load, records, summarise_cell

GOOD = [
    {"intended": 10 * i, "sent": 10 * i, "texts": [10 * i + 5, 10 * i + 6, 10 * i + 7], "prompt": 100}
    for i in range(10)
]
OPEN = load("rate", 100)


def codes(made=None, hit_rate=None, **changes):
    verdict = judge(Evidence(RequestView(made or records(*GOOD)), facts(**changes), hit_rate))
    for reason in verdict.reasons:
        assert reason.measured
        assert reason.limit
        assert reason.hint
    return verdict.verdict, [reason.code for reason in verdict.reasons]


def only(made=None, **changes):
    (reason,) = judge(Evidence(RequestView(made or records(*GOOD)), facts(**changes))).reasons
    return reason


def shown(made=None, **changes):
    """Of the only reason: what was measured, and its limit."""
    reason = only(made, **changes)
    return reason.measured, reason.limit


def test_a_cell_that_nothing_is_wrong_with_is_valid():
    assert codes() == ("VALID", [])


def lag(p99):
    return {"samples": 1000, "p50": 0.0, "p90": 0.0, "p95": 0.0, "p99": p99, "max": p99}


@pytest.mark.parametrize(
    ("changes", "verdict", "code"),
    [
        ({"client__lost_workers": 1}, "INVALID", "worker-lost"),
        ({"client__busy_share": 0.75}, "SUSPECT", "client-busy"),
        ({"client__busy_share": 0.9}, "SUSPECT", "client-busy"),
        ({"client__busy_share": 0.95}, "INVALID", "client-busy"),
        ({"client__loop_lag_ms": lag(9.0)}, "SUSPECT", "loop-lag"),
        ({"client__stamp_uncertainty_ms": 0.2}, "SUSPECT", "stamp-uncertainty"),
        ({"engine_exited": "killed by SIGKILL"}, "INVALID", "engine-died"),
        ({"workload__output_tokens": 4}, "SUSPECT", "output-length"),
    ],
)
def test_each_rule_has_its_limit(changes, verdict, code):
    assert codes(**changes) == (verdict, [code])


def test_requests_without_a_socket_are_no_failures_of_the_engine():
    made = records(*GOOD, {"outcome": Outcome.NO_SOCKET})
    assert shown(made) == ("1 of 11", "0")
    made = replace(made, errors=[""] * 10 + ["[Errno 24] no more open files"])
    assert codes(made) == ("INVALID", ["no-sockets"])
    assert shown(made) == ("1 of 11: no more open files", "0")
    verdict = judge(Evidence(RequestView(made), facts()))
    assert blame(verdict) == ("client", "no-sockets")


def test_a_client_may_be_as_busy_as_its_limit_says():
    assert codes(client__busy_share=0.7) == ("VALID", [])


def test_a_slow_server_forgives_a_lag_that_is_small_beside_its_ttft():
    slow = records(*({**row, "texts": [t + 200 for t in row["texts"]]} for row in GOOD))
    assert codes(slow, load=OPEN, client__send_lag_ms=lag(6.0)) == ("VALID", [])
    assert codes(slow, load=OPEN, client__send_lag_ms=lag(11.0)) == ("INVALID", ["schedule-lag"])
    assert shown(slow, load=OPEN, client__send_lag_ms=lag(11.0)) == ("p99 11.0 ms", "10.2 ms")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"lost_workers": 1}, ["worker-lost"]),
        ({"lost_workers": 0}, ["too-few-samples"]),
        ({"lost_workers": 1, "busy_share": 0.95}, ["worker-lost", "client-busy"]),
        ({"suspended_ms": 900.0, "stamp_uncertainty_ms": 900.0, "clock_step_ms": 900.0}, ["suspended"]),
        ({"stamp_uncertainty_ms": 3.0, "clock_step_ms": 3.0}, ["clock-step"]),
        ({"stamp_uncertainty_ms": 3.0}, ["stamp-uncertainty"]),
    ],
)
def test_what_follows_from_another_reason_is_no_second_one(changes, expected):
    few = records(*GOOD[: 3 if "lost_workers" in changes else None])
    assert codes(few, **{f"client__{name}": value for name, value in changes.items()})[1] == expected


def test_a_server_that_never_answers_forgives_no_lag():
    silent = records(*({**row, "texts": [], "outcome": Outcome.RESET} for row in GOOD))
    assert "schedule-lag" in codes(silent, load=OPEN, client__send_lag_ms=lag(6.0))[1]


def test_a_late_send_is_late_for_a_schedule_only():
    assert codes(load=OPEN, client__send_lag_ms=lag(6.0)) == ("INVALID", ["schedule-lag"])
    assert codes(client__send_lag_ms=lag(6.0)) == ("VALID", [])  # in a closed loop nobody intended a time


@pytest.mark.parametrize(
    ("share", "late_ms", "tick_ms", "expected"),
    [
        (0.5, 0.1, 0.0, ("VALID", [])),  # read promptly: the server wrote them together
        (0.05, 0.7, 0.0, ("SUSPECT", ["merged-events"])),
        (0.5, 0.7, 0.0, ("INVALID", ["merged-events"])),
        (0.005, 0.7, 0.0, ("VALID", [])),
        (0.01, 0.7, 0.0, ("VALID", [])),
        (0.1, 0.7, 0.0, ("SUSPECT", ["merged-events"])),
        (0.05, 0.4, 0.05, ("VALID", [])),
        (0.05, 0.4, 0.2, ("SUSPECT", ["merged-events"])),  # it looks once a tick
    ],
)
def test_gaps_that_a_late_reader_lost(share, late_ms, tick_ms, expected):
    """Tokens come every millisecond."""
    client = {"client__loop_lag_ms": lag(late_ms), "client__tick_ms": tick_ms}
    assert codes(client__merged_share=share, **client) == expected


@pytest.mark.parametrize(
    ("merged", "late", "expected"),
    [
        (0.2, 0.0, ["itl-merged"]),
        (0.2, 0.012, ["itl-merged"]),  # what few late looks read came together anyway
        (0.2, 0.04, ["itl-merged"]),
        (0.03, 0.009, ["itl-merged"]),  # too few late looks to doubt the client, and a server that merges
        (0.2, 0.06, ["merged-events"]),
        (0.2, 0.2, ["merged-events"]),
        (0.01, 0.01, []),
        (0.2, None, ["itl-merged"]),  # the lag of the whole cell is small
    ],
)
def test_the_stamps_of_each_read_say_who_put_events_together(merged, late, expected):
    at = [60, 70, 80, 80, 100]
    made = records(*({"intended": 500 * n, "texts": [500 * n + ms for ms in at]} for n in range(40)))
    client = {"client__merged_share": merged, "client__late_share": late}
    if merged == 0.01:
        made = records(*GOOD)
    assert [code for code in codes(made, **client)[1] if code.endswith(("-events", "-merged"))] == expected


def test_the_doubt_of_a_server_says_how_many_a_late_look_explains():
    at = [60, 70, 80, 80, 100]
    made = records(*({"intended": 500 * n, "texts": [500 * n + ms for ms in at]} for n in range(40)))
    client = {"client__merged_share": 0.2, "client__late_share": 0.04}
    reasons = judge(Evidence(RequestView(made), facts(**client))).reasons
    (measured,) = (reason.measured for reason in reasons if reason.code == "itl-merged")
    assert measured.startswith("25% of the gaps are within one arrival, 20% of them by a late look, 1.25")


@pytest.mark.parametrize(("gap_us", "found"), [(40, "itl-merged"), (400, "merged-events")])
def test_no_look_is_in_time_for_events_that_are_written_at_once(gap_us, found):
    """64 events in 2.6 ms, three of four in one read, as of a buffering proxy; or in 26 ms."""
    after_ms = np.repeat(np.arange(16), 4) * 4 * gap_us / 1000
    made = records(*({"intended": 500 * n, "texts": (500 * n + 60 + after_ms).tolist()} for n in range(20)))
    client = {"client__loop_lag_ms": lag(1.0), "client__merged_share": 0.75}
    assert found in codes(made, **client)[1]


@pytest.mark.parametrize(
    ("latest_ms", "wall_s", "doubted"),
    [
        (76.0, 20.0, True),  # ten such looks of a thousand may have merged 3.8% of the time
        (76.0, 200.0, False),
        (4.0, 0.2, False),  # below half a gap it merges nothing
    ],
)
def test_a_server_is_not_blamed_alone_where_few_late_looks_may_have_merged_as_much(
    latest_ms, wall_s, doubted
):
    """Tokens come every 10 ms, two of them at once."""
    at = [60, 70, 80, 80, 100]
    made = records(*({"intended": 500 * n, "texts": [500 * n + ms for ms in at]} for n in range(40)))
    client = {"client__loop_lag_ms": {**lag(1.0), "max": latest_ms}, "client__wall_s": wall_s}
    verdict = judge(Evidence(RequestView(made), facts(**client)))
    (reason,) = (found for found in verdict.reasons if found.code == "itl-merged")
    assert ("the load generator, which once looked 76 ms late" in reason.hint) == doubted


def test_failed_requests_widen_no_gap_that_a_late_reader_lost():
    made = records(*GOOD, *[{"outcome": Outcome.RESET}] * 11)
    client = {"client__loop_lag_ms": lag(0.7), "client__merged_share": 0.05}
    assert "merged-events" in codes(made, **client)[1]


@pytest.mark.parametrize(
    ("tokens", "late_ms", "found"),
    [
        (3, 0.4, False),
        (12, 0.4, False),  # four tokens in each event: a quarter of a gap is no gap
        (12, 0.7, True),
        (UNKNOWN, 0.4, False),
        (UNKNOWN, 0.7, True),  # nobody counted the tokens, but there are events
    ],
)
def test_a_late_reader_is_held_to_the_gaps_between_events(tokens, late_ms, found):
    made = records(*({**row, "tokens": tokens} for row in GOOD))
    client = {"client__loop_lag_ms": lag(late_ms), "client__merged_share": 0.05, "client__tick_ms": 0.0}
    assert ("merged-events" in codes(made, **client)[1]) == found


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"client__loop_lag_ms": lag(5.04)}, ("p99 5.04 ms", "5 ms")),
        ({"client__stamp_uncertainty_ms": 0.1004}, ("0.1004 ms", "0.1 ms")),
        ({"client__clock_step_ms": 0.1004}, ("0.1004 ms", "0.1 ms")),
        ({"client__suspended_ms": 1.2}, ("0.0012 s", "1 ms")),
        ({"client__send_lag_ms": lag(5.04), "load": OPEN}, ("p99 5.04 ms", "5.00 ms")),
        ({"minimum": {"seconds": 0.1, "answers": 1}}, ("10 answers in 0.097 s", "1 answer and 0.1 s")),
        (
            {"client__loop_lag_ms": lag(0.504), "client__merged_share": 0.05, "client__tick_ms": 0.0},
            (
                "5% of the events read together, up to 0.504 ms late (p99)",
                "1% suspect, 10% invalid, if more than 0.500 ms late",
            ),
        ),
        (
            {"minimum": {"seconds": 0, "answers": 1, "coverage": 0.95, "duration_s": 0.09705 / 0.95}},
            ("first tokens 93.0%, further ones 94.95% of 0.102158 s", "95%"),
        ),
        (
            {"hit_rate": 0.39991, "cache": {"requested": "warm"}},
            ("hit rate 39.99%", "40.00% from a warm cache"),
        ),
    ],
)
def test_what_is_beyond_a_limit_never_reads_as_the_limit(changes, expected):
    about = facts(workload__shared_share=0.5, **{key: changes[key] for key in changes.keys() - {"hit_rate"}})
    (reason,) = judge(Evidence(RequestView(records(*GOOD)), about, changes.get("hit_rate"))).reasons
    assert (reason.measured, reason.limit) == expected


def test_a_rate_that_was_missed_by_little_does_not_read_as_kept():
    rows = (
        {"intended": 10 * i, "sent": 10 * i, "texts": [10 * i + 5, 10 * i + 6, 10 * i + 7]} for i in range(20)
    )
    late = records(*rows)
    late.requests["sent_ns"] = np.rint(1.05267 * late.requests["sent_ns"])
    assert shown(late, load=OPEN) == ("94.997/s sent", "100.000/s ± 5%")


def test_one_late_send_among_few_does_not_decide():
    few = lag(70.0) | {"samples": 36}
    assert codes(load=OPEN, client__send_lag_ms=few) == ("VALID", [])
    assert codes(load=OPEN, client__send_lag_ms=few | {"p90": 6.0}) == ("INVALID", ["schedule-lag"])


def test_one_failure_in_a_hundred_is_the_limit():
    rows = GOOD * 20
    assert codes(records(*rows[:199], {"outcome": Outcome.RESET})) == ("SUSPECT", ["failed-requests"])
    assert codes(records(*rows[:10], {"outcome": Outcome.RESET})) == ("INVALID", ["failed-requests"])
    lost = [{"outcome": Outcome.RESET}] * 3
    assert codes(records(*rows[:198], *lost[:2])) == ("SUSPECT", ["failed-requests"]), "1% is the limit"
    assert codes(records(*rows[:197], *lost)) == ("INVALID", ["failed-requests"])


def test_drops_invalidate():
    dropped = {"sent": None, "intended": 5, "outcome": Outcome.DROPPED}
    assert codes(records(*GOOD, dropped)) == ("INVALID", ["dropped-requests"])


def test_too_few_answers():
    assert codes(records(*GOOD[:4])) == ("SUSPECT", ["too-few-samples"])
    assert codes(records({"sent": None, "outcome": Outcome.CANCELLED})) == ("INVALID", ["too-few-samples"])


def test_failed_requests_say_why():
    """Of the most frequent status or outcome, the most frequent text; a server's is cut and made plain."""
    made = records(
        *GOOD, *({"outcome": Outcome.HTTP_ERROR} for _ in range(3)), *({"outcome": Outcome.RESET},) * 2
    )
    made.requests["http_status"][10:13] = 429
    made.errors[10:] = ["busy\x1b[2J " + 100 * "x", "slow down", "slow down", "gone", "gone"]
    assert shown(made)[0] == "5 of 15, 3 of them: HTTP 429, slow down"
    made.errors[11:13] = 2 * ["try\x1b[2J\nlater " + 100 * "x"]
    said = shown(made)[0]
    assert "\x1b" not in said
    assert "\n" not in said
    assert len(said) < 120
    made = records(*GOOD, {"outcome": Outcome.HTTP_ERROR})
    made.requests["http_status"][10] = 503
    made.errors[10] = "HTTP 503"
    assert shown(made)[0] == "1 of 11: HTTP 503"
    assert only(made).failure == "HTTP 503"
    made.requests["http_status"][10], made.errors[10] = UNKNOWN, "busy"  # as in a file of another tool
    assert shown(made)[0] == "1 of 11: http error, busy"
    assert shown(records(*GOOD, {"outcome": Outcome.RESET}))[0] == "1 of 11: reset"


@pytest.mark.parametrize(
    ("status", "first"),
    [(429, "the server refuses"), (503, "the server refuses"), (529, "the server refuses"), (500, "see all")],
)
def test_a_server_that_refuses_what_is_too_much_needs_a_lower_load(status, first):
    """Of one that was running before there is no log to look at."""
    made = records(*({"intended": 10 * i, "texts": [10 * i + 5]} for i in range(20)))
    made.requests["outcome"][10:] = Outcome.HTTP_ERROR
    made.requests["http_status"][10:] = status
    (reason,) = [
        one for one in judge(Evidence(RequestView(made), facts())).reasons if one.code == "failed-requests"
    ]
    assert reason.hint.startswith(first)


@pytest.mark.parametrize(
    ("outcome", "status", "asks_for"),
    [
        (Outcome.TIMEOUT, UNKNOWN, "request.timeout_s"),
        (Outcome.CONNECT_FAILED, UNKNOWN, "restarted"),
        (Outcome.LOST, UNKNOWN, "no fault of the engine"),
        (Outcome.RESET, UNKNOWN, "time limits of the proxy"),
        (Outcome.TRUNCATED, 200, "time limits of the proxy"),
        (Outcome.UNFINISHED, 200, "time limits of the proxy"),
        (Outcome.MALFORMED, 200, "login page"),
        (Outcome.HTTP_ERROR, 302, "address"),
        (Outcome.HTTP_ERROR, 403, "--api-key-env"),
        (Outcome.HTTP_ERROR, 504, "the logs of both"),
    ],
)
def test_what_to_do_about_failed_requests_depends_on_how_they_failed(outcome, status, asks_for):
    made = records(*GOOD, {"outcome": outcome})
    made.requests["http_status"][10] = status
    assert asks_for in only(made).hint


def test_a_certificate_that_expired_in_the_run_is_named_without_the_marks_of_openssl():
    made = records(*GOOD, {"outcome": Outcome.CONNECT_FAILED})
    words = "certificate verify failed: certificate has expired"
    made.errors[10] = f"[SSL: CERTIFICATE_VERIFY_FAILED] {words} (_ssl.c:992)"
    reason = only(made)
    assert reason.measured == f"1 of 11: connect failed, {words}"
    assert reason.hint.startswith("the server's certificate expired or was replaced")


def test_a_connection_that_was_refused_is_named_without_the_number_of_the_system():
    made = records(*GOOD, {"outcome": Outcome.CONNECT_FAILED})
    made.errors[10] = "[Errno 111] Connection refused"
    assert only(made).measured == "1 of 11: connect failed, Connection refused"


@pytest.mark.parametrize(("last", "lower"), [(Outcome.TIMEOUT, True), (Outcome.RESET, False)])
@pytest.mark.parametrize("log", [None, "logs/a.log"])
def test_an_engine_that_let_its_last_requests_wait_may_be_too_slow_for_the_load(last, lower, log):
    made = records(*GOOD, {"outcome": Outcome.TIMEOUT}, {"outcome": last}, {"outcome": Outcome.CANCELLED})
    made.requests["end_ns"][10:] = made.requests["end_ns"][:10].max() + np.array([1, 2, 3])
    evidence = Evidence(RequestView(made), facts(engine_exited="why", engine_log=log))
    (hint,) = [one.hint for one in judge(evidence).reasons if one.code == "engine-died"]
    assert hint.startswith("lower the load") == lower
    assert hint.endswith(f"see {log or 'the engine log'}")


@pytest.mark.parametrize("kind", get_args(EndKind))
def test_the_hint_on_an_end_follows_from_its_kind_where_that_was_kept(kind):
    """The last request may have timed out though the engine died."""
    evidence = Evidence(
        RequestView(records(*GOOD, {"outcome": Outcome.TIMEOUT})),
        facts(engine_exited="why", engine_end=kind, engine_log="x.log"),
    )
    (reason,) = [reason for reason in judge(evidence).reasons if reason.code == "engine-died"]
    assert (reason.measured, reason.hint) == ("why", Ending(kind, "why").hint("see x.log"))


@pytest.mark.parametrize("order", [1, -1])
def test_failures_that_are_equally_frequent_are_named_alike_in_any_order_of_the_requests(order):
    failed = [
        (Outcome.TIMEOUT, "late"),
        (Outcome.RESET, "gone"),
        (Outcome.RESET, "cut"),
        (Outcome.TIMEOUT, "late"),
    ]
    made = records(*GOOD, *({"outcome": outcome} for outcome, _ in failed[::order]))
    made.errors[10:] = [text for _, text in failed[::order]]
    assert shown(made)[0] == "4 of 14, 2 of them: reset, cut"


def test_a_rate_the_client_did_not_keep():
    late = records(*({**row, "sent": 2 * row["sent"]} for row in GOOD))
    assert codes(late, load=OPEN) == ("INVALID", ["rate-missed"])
    assert shown(late, load=OPEN) == ("50.00/s sent", "100.00/s ± 5%")
    assert codes(load=OPEN) == ("VALID", [])


@pytest.mark.parametrize(("hit_rate", "verdict"), [(0.29, "VALID"), (0.34, "SUSPECT")])
def test_more_hits_than_a_cold_cache_can_give(hit_rate, verdict):
    # 120 prompt tokens: 100 of ours, a part of them shared, and 20 of the chat template, which may be.
    made = records(*({**row, "prompt": 120} for row in GOOD))
    found = codes(made, hit_rate, workload__ideal_hit_rate=0.2 * 0.8)
    assert found[0] == verdict


@pytest.mark.parametrize(
    ("cache", "hit_rate", "found"),
    [
        ({"requested": "cold", "method": "none"}, None, ["cache-not-cold"]),
        ({"requested": "cold", "method": "none"}, 0.0, []),
        ({"requested": "cold", "method": "salt"}, None, []),
        ({"requested": "cold"}, None, []),
        ({"requested": "any", "method": "none"}, None, []),
    ],
)
def test_a_cold_cache_that_nothing_vouches_for(cache, hit_rate, found):
    assert codes(hit_rate=hit_rate, cache=cache)[1] == found


def test_prompts_of_a_file_in_a_cache_that_was_not_emptied():
    """Their hits may be of this cell or of another."""
    cache = {"requested": "cold", "method": "none"}
    about = facts(cache=cache, workload__content=OF_FILE)
    (reason,) = judge(Evidence(RequestView(records(*GOOD)), about, 0.9)).reasons
    assert reason.measured == "it was not emptied, and the hits (90.0%) may be among the prompts of the file"


def test_prompts_that_share_something_may_be_found_in_a_cache_that_is_left_alone():
    assert codes(hit_rate=0.9, cache={"requested": "any"}, workload__ideal_hit_rate=0.2)[1] == []


@pytest.mark.parametrize(
    ("wanted", "hit_rate", "found"),
    [
        ("warm", 0.39, ["cache-not-warm"]),
        ("warm", 0.41, []),
        ("primed", 0.79, ["cache-not-primed"]),
        ("primed", 0.81, []),
        ("any", 0.0, []),
        ("any", 0.9, ["cache-not-cold"]),
    ],
)
def test_fewer_hits_than_a_cache_in_the_declared_state_gives(wanted, hit_rate, found):
    """Half of each prompt is shared; whole blocks are reused, so four fifths of what could be are enough."""
    assert codes(hit_rate=hit_rate, cache={"requested": wanted}, workload__shared_share=0.5)[1] == found


@pytest.mark.parametrize(
    ("step_ms", "expected"),
    [
        (None, ("VALID", [])),  # stamps that do not use the clock, and old run folders
        (0.05, ("VALID", [])),
        (500.0, ("INVALID", ["clock-step"])),
    ],
)
def test_a_step_of_the_clock_inside_the_window(step_ms, expected):
    assert codes(client__clock_step_ms=step_ms) == expected


@pytest.mark.parametrize("column", ["retransmits", "out_of_order"])
def test_packet_loss_is_told_with_what_was_hit(column):
    made = records(*GOOD)
    assert (made.requests[column] == UNKNOWN).all()
    assert codes(made) == ("VALID", [])
    made.requests[column] = 0
    assert codes(made) == ("VALID", [])
    made.requests[column][3:5] = (1, 4)
    verdict = judge(Evidence(RequestView(made), facts()))
    (reason,) = verdict.reasons
    assert (verdict.verdict, reason.code) == ("SUSPECT", "packet-loss")
    assert "5 " in reason.measured
    assert "2 of 10 requests (20.0%)" in reason.measured


@pytest.mark.parametrize(("connecting_ms", "found"), [(1, []), (3, ["connecting"])])
def test_requests_that_wait_for_a_new_connection_are_named(connecting_ms, found):
    """Requests of 100 ms: their send is stamped after it, so neither TTFT from the send nor E2E has it."""
    made = records(*({**row, "texts": [row["sent"] + ms for ms in (5, 6, 100)]} for row in GOOD))
    made.requests["connect_ns"] = connecting_ms * 1_000_000
    assert codes(made)[1] == found
    made.requests["connect_ns"][1:] = UNKNOWN  # on connections that were open
    assert codes(made)[1] == []


def test_the_reason_of_connecting_says_for_how_many_requests():
    made = records(*GOOD)
    made.requests["connect_ns"][::2] = made.requests["end_ns"][::2] - made.requests["sent_ns"][::2]
    (reason,) = judge(Evidence(RequestView(made), facts())).reasons
    assert (reason.code, reason.verdict, reason.measured) == (
        "connecting",
        "SUSPECT",
        "33.3%, in 5 of 10 requests",
    )


def test_resent_requests_are_counted():
    made = records(*GOOD)
    made.requests["attempts"] = 1
    assert codes(made) == ("VALID", [])
    made.requests["attempts"][7] = 2
    verdict = judge(Evidence(RequestView(made), facts()))
    assert [(r.code, r.measured) for r in verdict.reasons] == [("requests-resent", "1 of 10")]
    cell = summarise_cell(made, facts(), None)
    assert cell.requests.resent == 1
    made.requests["attempts"] = UNKNOWN
    old = summarise_cell(made, facts(), None)
    assert old.requests.resent is None
    assert "requests.resent" in old.null_reasons


@pytest.mark.parametrize(("agrees", "expected"), [(None, []), (True, []), (False, ["ledger-mismatch"])])
def test_the_ledger_of_the_scripted_server_is_compared_where_there_is_any(agrees, expected):
    verdict = judge(Evidence(RequestView(records(*GOOD)), facts(), ledger_agrees=agrees))
    assert [reason.code for reason in verdict.reasons] == expected
