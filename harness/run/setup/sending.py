"""How much load points send and for how long, as far as that is planned and not up to the server."""

from harness.errors import SpecError
from harness.model import LoadPoint
from harness.model.numbers import as_given
from harness.plan import ProbeSizes, all_requests, load_points, warmup_requests
from harness.spec.scenario import Scenario
from harness.spec.scenario.limits import LONGEST_S, MOST
from harness.spec.scenario.synthetic import Victim
from harness.untrusted import LIMIT
from harness.workload.arrivals import NS, Profile, seconds_for
from harness.workload.prompts.victim import stretch_s
from harness.workload.traces import Dataset, Trace, window

_CLOCKS_S = LIMIT / NS
KEYS = {  # of a scenario, by kind of load
    "concurrency": "load.concurrency",
    "rate": "load.rate",
    "trace": "load.replay_speed",
    "working-set": "load.working_set",
}


def sending_s(
    scenario: Scenario, point: LoadPoint, count: int, source: Trace | Dataset | None
) -> float | None:
    """Time until the request after the last would be due, of a trace the last; None of a closed loop."""
    load = scenario.load
    if point.kind == "rate":
        return seconds_for(point.value, count, Profile(load.profile, load.repeat_profile))
    if point.kind != "trace":
        return None
    if isinstance(source, Trace):
        return window(source, max_requests=count).span_s / point.value
    assert isinstance(scenario.prompts, Victim)
    return 4 * stretch_s(scenario.prompts, count) / point.value


def check_sending(scenario: Scenario, sizes: ProbeSizes | None, source: Trace | Dataset | None) -> None:
    """Raises SpecError for a load with more warm-up than can be made, or that takes longer than a year.

    One that --duration ends may be planned for as long as clocks count, since every request is planned. Of a
    search the lowest load stands for all.
    """
    most_s, limit = (LONGEST_S, "a year") if scenario.load.duration_s is None else (_CLOCKS_S, "292 years")
    for point in load_points(scenario.load)[: 1 if sizes else None]:
        key, load = KEYS[point.kind], as_given(point.value)
        if (warmup := warmup_requests(scenario, point)) > MOST:
            raise SpecError(f"{load} has {warmup:,} requests of warm-up, and {MOST:,} is the most", where=key)
        count = all_requests(scenario, point, sizes.long(point) if sizes else None)
        seconds = sending_s(scenario, point, count, source)
        if seconds is not None and seconds > most_s:
            raise SpecError(
                f"{count:,} requests at {load} take more than {limit} to send",
                where=key,
                hint="fewer requests, or a higher load",
            )
