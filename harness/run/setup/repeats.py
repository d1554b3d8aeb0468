"""Decides how many repeats a run has, and what happens to an engine between two of them."""

from collections.abc import Sequence
from typing import Literal

from harness.engines.start.launch_choice import LaunchChoice
from harness.errors import SpecError
from harness.model.choices import SERVER_BLOCKS, BetweenRepeats
from harness.run.setup.backends import ChosenBackend
from harness.run.setup.options import RunOptions
from harness.run.setup.pairing import Together
from harness.spec.backend import BackendRef
from harness.spec.scenario import Scenario
from harness.verdicts.sequential import looks_between

SEARCHES = 3  # of a capacity, each in its own life of the engine
NOISE_REPEATS = 5  # of a backend against itself: a floor is an interval, no decision
_FLAG = "--repeats"


def repeats_of(
    options: RunOptions, scenario: Scenario, backends: int, together: Together | None = None
) -> tuple[int, tuple[int, ...]]:
    """Most repeats, and those after which verdicts are looked at; without looks the number is fixed.

    For engines that are up together, the numbers asked for are starts, and each of their blocks is a repeat.
    """
    blocks = together.blocks if together else 1
    wanted = _wanted(options, scenario, backends)
    if wanted != "auto":
        _refuse_limits(options)
        return wanted * blocks, ()
    for flag, given in (("--find-capacity", options.find_capacity), ("--aa", options.aa)):
        if given:
            raise SpecError(f"{flag} needs a number of repeats, not auto", where=_FLAG)
    if backends < 2:
        raise SpecError("auto needs two backends: a single one has no verdict to decide", where=_FLAG)
    if options.budget_s is not None and options.budget_s <= 0:
        raise SpecError("must be above 0", where="--budget")
    least, most = scenario.verdict.min_repeats, scenario.verdict.max_repeats
    if together is not None and together.attached:
        if "verdict.min_repeats" not in options.overrides:
            least = min(SERVER_BLOCKS[0], most)
        if "verdict.max_repeats" not in options.overrides:
            most = SERVER_BLOCKS[1]
    looks = tuple(look * blocks for look in looks_between(least, most))
    return looks[-1], looks


def _wanted(options: RunOptions, scenario: Scenario, backends: int) -> int | Literal["auto"]:
    declared = scenario.verdict.repeats
    if options.repeats is not None:
        return options.repeats
    if "verdict.repeats" in options.overrides:
        return declared
    if options.find_capacity:
        return SEARCHES
    if backends < 2:
        return 1
    return NOISE_REPEATS if options.aa and declared == "auto" else declared


def _refuse_limits(options: RunOptions) -> None:
    """Raises SpecError for a limit without effect, which would look like one that has an effect."""
    flags = {
        "--budget": options.budget_s,
        "--max-repeats": options.overrides.get("verdict.max_repeats"),
        "--set verdict.min_repeats": options.overrides.get("verdict.min_repeats"),
    }
    for flag, given in flags.items():
        if given is not None:
            raise SpecError("only applies to --repeats auto with two backends or more", where=flag)


def between_of(
    options: RunOptions, scenario: Scenario, chosen: Sequence[ChosenBackend]
) -> tuple[BetweenRepeats, ...]:
    """What happens to each backend between two repeats. Raises SpecError if it cannot be as declared."""
    declared = scenario.verdict.between_repeats
    if declared in ("keep", "reset") and options.find_capacity and any(not ref.url for _, ref, _ in chosen):
        raise SpecError(
            "each search of a capacity has a start of its own",
            where="--between-repeats",
            hint="leave it out, or attach to servers that run",
        )
    alone = len(chosen) == 1 and not options.find_capacity
    key = "verdict.between_repeats"
    where = "--between-repeats" if key in options.overrides else f"{scenario.name}:{key}"
    return tuple(_between(declared, ref, launch, alone, where) for _, ref, launch in chosen)


def _between(declared: str, ref: BackendRef, launch: LaunchChoice, alone: bool, where: str) -> BetweenRepeats:
    attached = launch.mode == "attach"
    if declared in ("auto", "restart"):
        if declared == "restart" and attached:
            raise SpecError(
                f"bench did not start {ref.label} and cannot restart it",
                where=where,
                hint="--between-repeats keep measures it as it runs",
            )
        return "keep" if attached else "restart"
    if not (attached or alone):
        raise SpecError(
            f"{declared} leaves an engine running through all its repeats, so engines that take turns on one "
            "machine could only be measured one after the other: drift would look like a difference",
            where=where,
            hint="use restart, name a single backend, or attach to servers that all run",
        )
    if declared == "keep":
        return "keep"
    if ref.definition.prefix_cache.reset is None:
        raise SpecError(f"{ref.label} declares no prefix cache reset", where=where, hint="use keep")
    return "reset"
