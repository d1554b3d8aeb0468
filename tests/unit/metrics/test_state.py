"""Whether the load or the server set the pace, from records of made-up servers."""

import numpy as np
import pytest

from harness.metrics import pace
from harness.metrics.state import cell_state
from harness.metrics.view import CellView
from harness.records.layout import Outcome, empty_requests
from harness.records.request_table import RequestTable
from tests.factories.recorded import facts, load, requested, view_of

RATE = load("rate", 10.0)


def served(intended_s, took_s, *, failing=()):
    rows = empty_requests(len(intended_s))
    rows["outcome"] = Outcome.OK
    rows["intended_ns"] = rows["start_ns"] = rows["sent_ns"] = (np.asarray(intended_s) * 1e9).astype(np.int64)
    rows["end_ns"] = rows["sent_ns"] + (np.asarray(took_s) * 1e9).astype(np.int64)
    rows["outcome"][list(failing)] = Outcome.TIMEOUT
    return rows


def poisson(count, rate, seed=0):
    return np.cumsum(np.random.default_rng(seed).exponential(1 / rate, count))


def queued(intended_s, per_s, floor_s=0.2):
    """One server that takes its requests in order."""
    free, took = 0.0, []
    for due in intended_s:
        free = max(free, due) + 1 / per_s
        took.append(free - due + floor_s)
    return np.array(took)


@pytest.mark.parametrize("took_s", [0.05, 1.0, 5.0])
def test_constant_answers_are_under_load_however_long(took_s):
    """A long answer keeps more in flight; that it is still in flight at the last send is no backlog."""
    due = poisson(64, 10)
    assert cell_state(served(due, np.full(64, took_s)), RATE).state == "under load"


@pytest.mark.parametrize("seed", range(20))
def test_spread_of_answers_is_no_growth(seed):
    due, random = poisson(64, 10, seed), np.random.default_rng(seed)
    assert cell_state(served(due, random.lognormal(0, 0.8, 64)), RATE).state == "under load"


@pytest.mark.parametrize(("errors", "state"), [(3.0, "under load"), (3.2, "unstable")])
def test_growth_counts_where_chance_makes_it_once_in_a_thousand(errors, state):
    """Noise is scaled until the slope, by the line that NumPy fits, is so many of its standard errors."""
    due = np.arange(24) / 10
    noise = np.random.default_rng(2).normal(size=24)
    noise -= np.polyval(np.polyfit(due, noise, 1), due)
    error = np.polyfit(due, noise, 1, cov=True)[1][0, 0] ** 0.5
    took = 1.2 + 0.2 * due + noise * 0.2 / errors / error
    assert cell_state(served(due, took), RATE).state == state


@pytest.mark.parametrize(("errors", "state"), [(3.0, "under load"), (3.2, "unstable")])
def test_answers_that_are_alike_count_for_fewer(errors, state):
    """As above, of noise that lasts two answers: the next one is alike, the one after it is not."""
    due = np.arange(24) / 10
    noise = np.repeat(np.random.default_rng(2).normal(size=12), 2)
    noise -= np.polyval(np.polyfit(due, noise, 1), due)
    alike, after = (noise[lag:] @ noise[:-lag] / (noise @ noise) for lag in (1, 2))
    assert after < 0 < alike
    error = np.polyfit(due, noise, 1, cov=True)[1][0, 0] ** 0.5 * (1 + 2 * alike) ** 0.5
    took = 1.2 + 0.2 * due + noise * 0.2 / errors / error
    assert cell_state(served(due, took), RATE).state == state


OLDEST, NEWEST = 0, -1


def one_at_a_time(used, count, seed, next_of):
    """Requests at random times, of random lengths, at a server of one slot; `used` of its capacity is in use.

    `next_of`: which of those that wait is served next.
    """
    random = np.random.default_rng(seed)
    arrived, lasts = np.cumsum(random.exponential(0.1 / used, count)), random.exponential(0.1, count)
    due, needs = arrived.tolist(), lasts.tolist()  # single values of a list are read faster
    took, waiting, come, now = [0.0] * count, [], 0, 0.0
    for _ in range(count):
        if not waiting:
            now = max(now, due[come])
        while come < count and due[come] <= now:
            waiting.append(come)
            come += 1
        one = waiting.pop(next_of)
        now += needs[one]
        took[one] = now - due[one]
    return served(arrived, took)


def unstable(used, count, next_of=OLDEST, seeds=100):
    """How many of the seeds are unstable; docs/verdict-rules.md has those of 1,000."""
    cells = (one_at_a_time(used, count, seed, next_of) for seed in range(seeds))
    return sum(cell_state(cell, RATE).state == "unstable" for cell in cells)


@pytest.mark.parametrize(("next_of", "most"), [(OLDEST, 6), (NEWEST, 3)])
def test_a_queue_with_capacity_to_spare_seldom_looks_unstable(next_of, most):
    """Its waits are alike for longer than 32 requests last."""
    assert unstable(0.7, 32, next_of) <= most
    assert unstable(0.7, 100, next_of) <= most
    assert unstable(0.9, 300, next_of) <= most


@pytest.mark.parametrize(("next_of", "of_many"), [(OLDEST, 85), (NEWEST, 70)])
def test_a_queue_of_one_slot_that_is_overloaded_is_unstable(next_of, of_many):
    assert unstable(1.5, 100, next_of) >= 90
    assert unstable(1.25, 300, next_of) >= 90
    assert unstable(1.1, 1000, next_of) >= of_many


@pytest.mark.parametrize("per_s", [5, 6, 7.5])
def test_a_queue_that_grows_is_unstable(per_s):
    due = poisson(200, 10)
    found = cell_state(served(due, queued(due, per_s)), RATE)
    assert found.state == "unstable"
    assert "each second of sending adds" in found.why


@pytest.mark.parametrize("seed", range(10))
def test_half_of_the_capacity_is_under_load(seed):
    due = poisson(200, 10, seed)
    assert cell_state(served(due, queued(due, 20)), RATE).state == "under load"


def test_the_oldest_left_waiting_is_a_backlog_though_answers_do_not_grow():
    """Newest first: what is served is served fast, the rest comes at the end."""
    due = np.arange(200) / 10
    took = np.where(np.arange(200) % 3, 0.2, 25 - due)
    found = cell_state(served(due, took), RATE)
    assert found.state == "unstable"
    assert "answers to" in found.why


def test_a_backlog_is_counted_after_the_first_usual_answer_time():
    """Of 200 requests, eight a second, the first is answered as that time ends, two of three as fast."""
    due = np.arange(200) / 8
    took = np.where(np.arange(200) % 3 == 1, 30 - due, 0.25)
    found = cell_state(served(due, took), RATE)
    assert found.why == "131 answers to 197 requests in 24.6 s"


@pytest.mark.parametrize(("usual_s", "state"), [(1.0, "unstable"), (1.05, "under load")])
def test_a_backlog_is_told_from_one_usual_answer_time_on(usual_s, state):
    """Sixty requests in 2 s, of which 20 are answered at once: of the 30 due after a usual time, none."""
    due = np.linspace(0, 2, 60)
    took = np.full(60, usual_s)
    took[:20], took[20:30] = 0.01, 10
    assert cell_state(served(due, took), RATE).state == state


@pytest.mark.parametrize(("took_s", "state"), [(1.9, "under load"), (2.1, None), (20.0, None)])
def test_whether_answers_longer_than_the_sending_would_keep_up_is_not_known(took_s, state):
    """A server that works at many more requests at once than it can keep up with looks like this."""
    found = cell_state(served(np.linspace(0, 2, 60), np.full(60, took_s)), RATE)
    assert found.state == state
    words = f"requests came for 2 s and answers take {took_s:g} s: a backlog would not show"
    assert state or found.why == words


def test_more_unanswered_than_chance_is_unstable():
    due = poisson(100, 10)
    assert cell_state(served(due, np.full(100, 0.1), failing=range(3)), RATE).state == "under load"
    found = cell_state(served(due, np.full(100, 0.1), failing=range(10)), RATE)
    assert (found.state, found.why) == ("unstable", "10 of 100 requests were not answered")


def test_answers_without_any_time_are_under_load():
    """Damaged records may hold one moment for all."""
    assert cell_state(served(np.zeros(30), np.zeros(30)), RATE).state == "under load"


def test_few_answers_tell_nothing():
    found = cell_state(served(poisson(12, 10), np.full(12, 0.1)), RATE)
    assert found.state is None
    assert found.why.startswith("12 answers; 20 are needed")
    found = cell_state(served(poisson(20, 10), np.full(20, 0.1), failing=[7]), RATE)
    assert (found.state, found.why[:10]) == (None, "19 answers"), "the end of a failure is no answer"


def closed(slots, rounds, took_s, think_s):
    sent = np.repeat(np.arange(rounds) * (took_s + think_s), slots)
    return served(sent, np.full(slots * rounds, took_s))


@pytest.mark.parametrize(
    ("think_s", "state"), [(0.0, "saturated"), (0.05, "saturated"), (1.0, "under load"), (20.0, "under load")]
)
def test_a_closed_loop_is_saturated_while_its_slots_are_in_use(think_s, state):
    assert cell_state(closed(4, 8, 1.0, think_s), load("concurrency", 4)).state == state
    at_once = load("concurrency", 4, think_time_s=0.0)
    assert cell_state(closed(4, 8, 1.0, think_s), at_once).state == "saturated"


def test_a_share_of_busy_slots_below_the_limit_does_not_read_as_the_limit():
    found = cell_state(closed(4, 8, 1.0, 0.116), load("concurrency", 4))
    assert (found.state, found.why) == ("under load", "slots hold a request 89.6% of the time")


@pytest.mark.parametrize(
    ("spread_over_s", "state", "percent"),
    [(0, "under load", 57), (6, "saturated", 94), (11.8, "saturated", 91), (11.9, "under load", 57)],
)
def test_slots_that_wait_for_their_turn_to_begin_do_not_think(spread_over_s, state, percent):
    """Eight rounds of 1 s, 50 ms apart, the second one 5 s late, as a start is spread. Little may be left."""
    rows = closed(4, 8, 1.0, 0.05)
    for name in ("intended_ns", "sent_ns", "start_ns", "end_ns"):
        rows[name][4:] += 5 * 10**9
    pauses = {"load": {"kind": "concurrency", "value": 4, "think_time_s": 0.05}}
    given = facts(**pauses, client__spread_over_ms=spread_over_s * 1e3)
    found = pace.compute(CellView(view_of(rows).records, given))
    assert (found.state, found.state_why) == (state, f"slots hold a request {percent}% of the time")


@pytest.mark.parametrize(("turns", "percent"), [(4, 99), (5, 77)])
def test_a_slot_that_has_no_chat_to_begin_does_not_wait(turns, percent):
    """Three chats of four turns of 1 s, 20 ms apart, in two slots: the second is empty for half of the time.

    With a turn left to send, its chat keeps the slot.
    """
    chat = np.arange(4) * 1.02
    rows = served(np.concatenate([chat, chat + 4.08, chat]), np.ones(12))
    rows["seq"] = [number * turns + turn for number in range(3) for turn in range(4)]
    numbers = [{"session": number, "turn": turn} for number in range(3) for turn in range(turns)]
    chats = requested(*(("", each) for each in numbers))
    found = cell_state(rows, load("concurrency", 2, think_time_s=0.02), chats)
    assert found.why == f"slots hold a request {percent}% of the time"


@pytest.mark.parametrize(("wait_s", "state"), [(0.0, "saturated"), (3.0, "under load")])
def test_recorded_sessions_are_saturated_only_while_calls_and_not_tools_take_their_time(wait_s, state):
    """Two sessions of four calls of 1 s in two slots, which send nothing while a tool works."""
    rows = closed(2, 4, 1.0, wait_s)
    calls = (((9, 5, n % 2, n // 2, 0, -1, -1, round(wait_s * 1e9), 0), "", ()) for n in range(8))
    found = cell_state(rows, load("concurrency", 2, think_time_s=0.0), RequestTable.of(calls, []))
    assert (found.state, found.why) == (
        state,
        f"a call of a session is in flight {4 / (4 + 3 * wait_s):.0%} of the time",
    )


def test_all_sent_at_once_is_saturated_and_nothing_sent_is_unknown():
    eight = load("concurrency", 8)
    assert cell_state(closed(8, 1, 1.0, 0.0), eight).state == "saturated"
    assert cell_state(empty_requests(4), eight).state is None
