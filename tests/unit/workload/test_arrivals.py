import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.spec.scenario import Segment
from harness.workload.arrivals import Profile, arrivals, due_within, seconds_for, think_times

S = 1_000_000_000
PINNED = [0, 45605807, 200000000]  # nanoseconds


def gaps_s(*arguments, **options):
    return np.diff(arrivals(*arguments, **options)) / S


def test_constant_gaps_are_all_equal_and_do_not_drift():
    offsets = arrivals("constant", 3.0, 3001, seed=0)
    assert offsets[0] == 0
    assert offsets[3000] == 1000 * S
    assert np.diff(offsets).max() - np.diff(offsets).min() <= 1


def test_poisson_has_the_mean_and_the_spread_of_a_poisson_process():
    gaps = gaps_s("poisson", 50.0, 20_001, seed=7)
    assert gaps.mean() == pytest.approx(1 / 50, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(1.0, abs=0.03)


def test_poisson_counts_are_dispersed_like_poisson_counts():
    offsets = arrivals("poisson", 40.0, 40_000, seed=3) / S
    counts = np.bincount(offsets.astype(int))[:-1]
    # 95% band of the dispersion index of n counts: 1 ± 1.96 sqrt(2 / n)
    assert abs(counts.var(ddof=1) / counts.mean() - 1) < 1.96 * np.sqrt(2 / len(counts))


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 4.0])
def test_gamma_has_the_spread_that_burstiness_asks_for(burstiness):
    gaps = gaps_s("gamma", 20.0, 40_001, seed=2, burstiness=burstiness)
    assert gaps.mean() == pytest.approx(1 / 20, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(burstiness**-0.5, rel=0.03)


def test_a_seed_is_one_schedule_everywhere():
    first = arrivals("poisson", 10.0, 3, seed=42)
    assert first.tolist() == PINNED
    assert arrivals("poisson", 10.0, 3, seed=43).tolist() != PINNED


def per_second(offsets):
    return np.bincount((offsets // S).astype(int)).tolist()


def test_a_ramp_rises_evenly():
    # From 0 to 10 per second in 10 s: 50 requests, 2 t of them by second t squared over 2.
    offsets = arrivals("constant", 10.0, 50, 0, profile=Profile([Segment(10, 0, 1)]))
    expected = np.sqrt(2 * np.arange(50))
    assert offsets / S == pytest.approx(expected, abs=1e-6)


def test_a_step_changes_the_rate_at_once_and_the_last_rate_goes_on():
    offsets = arrivals("constant", 10.0, 65, 0, profile=Profile([Segment(2, 0.5, 0.5), Segment(2, 2, 2)]))
    assert per_second(offsets) == [5, 5, 20, 20, 15]


def test_bursts_go_on_and_off():
    on_off = [Segment(1, 2, 2), Segment(1, 0, 0)]
    offsets = arrivals("constant", 5.0, 29, 0, profile=Profile(on_off, repeated=True))
    assert per_second(offsets) == [10, 0, 10, 0, 9]


segments = st.builds(Segment, seconds=st.floats(0.1, 20), start=st.floats(0.0, 5), end=st.floats(0.01, 5))


@given(
    process=st.sampled_from(["constant", "poisson", "gamma"]),
    rate=st.floats(0.1, 1000),
    count=st.integers(0, 300),
    profile=st.lists(segments, max_size=4),
    repeat=st.booleans(),
)
def test_any_profile_gives_every_arrival_in_order(process, rate, count, profile, repeat):
    offsets = arrivals(process, rate, count, 1, profile=Profile(profile, repeat))
    assert len(offsets) == count
    assert (offsets >= 0).all()
    assert (np.diff(offsets) >= 0).all()


@given(rate=st.floats(1, 50), profile=st.lists(segments, min_size=1, max_size=4))
def test_no_profile_ever_sends_more_than_its_area(rate, profile):
    offsets = arrivals("constant", rate, 200, 0, profile=Profile(profile)) / S
    area = rate * sum(part.seconds * (part.start + part.end) / 2 for part in profile)
    inside = int((offsets < sum(part.seconds for part in profile)).sum())
    assert abs(inside - min(200, np.ceil(area))) <= 1


def test_think_times_have_the_mean_that_was_asked_for():
    assert think_times(0.5, False, 3, 0).tolist() == [S // 2] * 3
    drawn = think_times(2.0, True, 20_000, 1) / S
    assert drawn.mean() == pytest.approx(2.0, rel=0.03)
    assert drawn.std() == pytest.approx(2.0, rel=0.03)


PROCESSES = st.sampled_from(["constant", "poisson", "gamma"])


@given(
    process=PROCESSES,
    rate=st.floats(0.05, 2000),
    count=st.integers(2, 400),
    warmup=st.integers(0, 400),
    seed=st.integers(0, 2**63),
)
def test_every_part_has_the_asked_rate_for_every_seed_and_length(process, rate, count, warmup, seed):
    offsets = arrivals(process, rate, count, seed, parts=[warmup])
    assert len(offsets) == count
    assert offsets[-1] == pytest.approx((count - 1) / rate * S, abs=1)
    if warmup < count:
        assert offsets[warmup] == pytest.approx(warmup / rate * S, abs=1)
    assert (np.diff(offsets) >= 0).all()


@given(
    rate=st.floats(0.5, 200), seconds=st.floats(0.5, 30), warmup=st.integers(0, 9), seed=st.integers(0, 2**63)
)
def test_what_a_duration_ends_had_the_asked_rate(rate, seconds, warmup, seed):
    count = int(2 * rate * seconds) + warmup + 2  # more than the duration lets leave
    due = due_within(rate, count, seconds, after=warmup)
    offsets = arrivals("poisson", rate, count, seed, parts=[warmup, due])
    seconds += warmup / rate
    # Arrival number `due` comes at its nominal time, the first one that the duration does not contain.
    assert offsets[due] == pytest.approx(due / rate * S, abs=1)
    assert seconds * S - 1 <= offsets[due] <= (seconds + 1 / rate) * S + 1


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("count", [1, 10, 57, 200])
def test_the_time_of_a_number_of_arrivals_is_when_the_next_is_due(count, repeated):
    profile = Profile([Segment(2, 0.05, 1), Segment(3, 0, 0), Segment(1, 1, 0.5)], repeated)
    offsets = arrivals("constant", 4.0, count + 1, 0, profile=profile)
    assert seconds_for(4.0, count, profile) == pytest.approx(offsets[-1] / S, abs=1e-6)


def test_rounds_of_a_profile_are_not_gone_through():
    assert seconds_for(0.001, 10_000_000, Profile([Segment(0.001, 1e-9, 1e-9)], True)) == pytest.approx(1e19)


def test_a_ramp_given_its_count_keeps_its_area():
    ramp = Profile([Segment(10, 0, 1)])
    for seed in range(20):
        offsets = arrivals("poisson", 10.0, 51, seed, profile=ramp)
        assert offsets[-1] == pytest.approx(10 * S, abs=S / 100)


def test_a_draw_given_its_count_is_the_same_pattern():
    drawn = np.cumsum(-np.log1p(-np.random.Generator(np.random.PCG64(3)).random(600)))
    gaps = np.diff(arrivals("poisson", 20, 600, seed=3)) / S
    assert gaps == pytest.approx(np.diff(drawn) * 599 / (drawn[-1] - drawn[0]) / 20, rel=1e-3, abs=1e-8)


def test_gaps_too_small_for_a_number_are_sent_at_once():
    assert arrivals("gamma", 1.0, 3, 0, burstiness=1e-9).tolist() == [0, 0, 0]
