"""What a capacity search needs of a scenario: limits, a constant load, and how large its probes are."""

from dataclasses import replace

from harness.errors import SpecError
from harness.plan import MOST_LONGER, ProbeSizes, all_requests, capacity_grid, load_points
from harness.run.setup.options import RunOptions
from harness.spec.scenario import Scenario
from harness.spec.scenario.limits import LONGEST_S, MOST, at_most
from harness.verdicts.slo_check import answers_needed

# Least time of a long probe of a capacity search: a load above the capacity builds a queue meanwhile.
PROBE_SECONDS = 45.0


def searched(scenario: Scenario) -> Scenario:
    """The scenario with the loads of the search. Raises SpecError where none can be made."""
    load = scenario.load
    if load.working_set:
        raise SpecError("a working set is no load", where="--find-capacity", hint="use another scenario")
    if not scenario.slo:
        raise SpecError(
            "--find-capacity needs a limit to keep",
            where=f"{scenario.name}:slo",
            hint="--set slo.ttft_ms.p95=500, or a table [slo] in the scenario",
        )
    if not (load.concurrency or load.rate):
        raise SpecError(
            "a trace defines its own load", where="--find-capacity", hint="use --rate or --concurrency"
        )
    if load.profile:
        raise SpecError(
            "a rate that changes over time has no capacity",
            where=f"{scenario.name}:load.profile",
            hint="--find-capacity needs a constant rate",
        )
    return replace(scenario, load=capacity_grid(load))


def probe_sizes(options: RunOptions, scenario: Scenario) -> ProbeSizes | None:
    """Sizes of the probes; None if no capacity is searched for. Raises SpecError."""
    given, closes_s = options.probe_seconds, scenario.load.duration_s
    if not options.find_capacity:
        if given is not None:
            raise SpecError("only applies to --find-capacity", where="--probe-seconds")
        return None
    timed = bool(scenario.load.rate)
    if given is not None and not timed:
        raise SpecError(
            "only applies to --rate: in a closed loop a number of answers ends a probe",
            where="--probe-seconds",
        )
    seconds = PROBE_SECONDS if given is None else given
    if not 0 < seconds < float("inf"):
        raise SpecError(f"must be above 0, not {seconds:g}", where="--probe-seconds")
    if closes_s is not None and closes_s < MOST_LONGER * seconds:
        raise SpecError(
            f"ends a probe after {closes_s:g} s, and it may have to last {MOST_LONGER * seconds:g} s",
            where="load.duration_s",
            hint="leave it out, or lower --probe-seconds" if timed else "leave it out",
        )
    at_most(seconds, "--probe-seconds", LONGEST_S)
    sizes = ProbeSizes(seconds, answers_needed(scenario.slo), scenario.load.requests)
    lowest = load_points(scenario.load)[0]
    if all_requests(scenario, lowest, sizes.long(lowest)) > MOST:
        raise SpecError(
            f"a probe of the lowest load has more than {MOST:,} requests",
            where="--find-capacity",
            hint="lower --probe-seconds, or the lowest load",
        )
    return sizes
