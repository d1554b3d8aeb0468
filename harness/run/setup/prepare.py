"""Turns names and flags into checked definitions before anything is started: a typo costs nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec

from harness.apis import APIS
from harness.engines.provide.models import find_model
from harness.engines.start.launch_choice import LaunchChoice, track_of
from harness.engines.start.request import Planned
from harness.errors import SetupError, SpecError, extra_hint
from harness.model.choices import BetweenRepeats
from harness.plan import (
    Block,
    Cell,
    ProbeSizes,
    in_one_life,
    make_paired_plan,
    make_plan,
    one_cell_each,
    together,
)
from harness.run.setup.backends import ChosenBackend, chosen_backends
from harness.run.setup.capacity_search import probe_sizes, searched
from harness.run.setup.engine_values import engine_values
from harness.run.setup.mismatches import check_adapters, check_images
from harness.run.setup.options import RunOptions
from harness.run.setup.pairing import BLOCKS, Together, sized, together_of
from harness.run.setup.profile import profile_of
from harness.run.setup.prompt_source import checked_source
from harness.run.setup.repeats import between_of, repeats_of
from harness.run.setup.sending import check_sending
from harness.run.setup.warm_cache import check_warm_ahead
from harness.sampling.job import LEAST_HZ, MOST_HZ
from harness.spec.backend import BackendRef
from harness.spec.models import Model
from harness.spec.prices import check_priced
from harness.spec.scenario import Profile, Scenario, check_api, load_scenario
from harness.spec.scenario.limits import MOST_REPEATS, at_most
from harness.untrusted import LIMIT
from harness.workload.prompts.content import pieces_of
from harness.workload.traces import Dataset, Trace

_RESTARTED = "; again for every cell, since it has no cache reset"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendPlan:
    """One backend of a run: what it is, how it is started, and what happens to it between repeats."""

    label: str  # unique in the run
    ref: BackendRef
    launch: LaunchChoice
    track: str | None  # of the weights; None where the server brings its own model
    engine_values: dict[str, str]  # those of its own among the values asked for
    between: BetweenRepeats


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    options: RunOptions
    scenario: Scenario
    backends: tuple[BackendPlan, ...]  # in the order of the plan's positions
    model_name: str
    model: Model
    repeats: int  # at most, where there are looks
    plan: tuple[Block, ...]
    source: Trace | Dataset | None = None  # of prompts that come from a file
    probe_sizes: ProbeSizes | None = None  # of a capacity search
    looks: tuple[int, ...] = ()  # repeats after which verdicts may be decided; empty: a fixed number
    together: Together | None = None  # of engines that are up together; None: they take turns

    def of(self, part: Block | Cell) -> BackendPlan:
        """The backend that this part of the plan measures."""
        return self.backends[part.backend]

    @property
    def lives(self) -> list[Block]:
        """The first block of each life of an engine."""
        return [
            block
            for group in together(self.plan)
            for block in {block.backend: block for block in reversed(group)}.values()
        ]

    def cores_of(self, part: Block | Cell) -> tuple[int, ...]:
        """Cores that the engine is held to; (): any."""
        start = part.start
        return () if self.together is None or start is None else self.together.cores_of(part.backend, start)

    def gpus_of(self, block: Block) -> tuple[str, ...]:
        """GPUs that the engine may use; (): $CUDA_VISIBLE_DEVICES, else all."""
        paired, start = self.together, block.start
        if paired is None or start is None or not paired.gpus:
            return self.options.gpus
        return paired.gpus_of(block.backend, start)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(backend.label for backend in self.backends)

    @property
    def engines(self) -> dict[str, Planned]:
        """Engines by label, for the checks of this machine."""
        return {
            backend.label: Planned(
                backend.ref, backend.launch, self.model_name, self.model, backend.engine_values
            )
            for backend in self.backends
        }

    @property
    def cells(self) -> int:
        return sum(len(block.cells) for block in self.plan)


def prepare(options: RunOptions) -> Prepared:
    """Checks the options and everything that they name.

    Raises SpecError for whatever a user can get wrong on the command line or in a definition.
    """
    _check_flags(options)
    profile = profile_of(options)
    scenario = _asked_scenario(options, profile)
    options = replace(options, profile=profile)
    chosen = chosen_backends(options, scenario)
    check_priced(options.prices, [backend.label for backend in chosen])
    sizes = probe_sizes(options, scenario)
    source = _checked_prompts(options, scenario, sizes)
    between = between_of(options, scenario, chosen)
    each_cell = [
        not options.find_capacity and how == "restart" and _starts_for_each_cell(scenario, backend)
        for backend, how in zip(chosen, between, strict=True)
    ]
    paired = together_of(options, chosen, each_cell)
    if paired is not None:
        scenario = sized(scenario, options, BLOCKS if paired.attached else paired.blocks)
    model_name, model = _chosen_model(options, scenario)
    check_images(scenario, chosen)
    values = engine_values(chosen, model, _asked_values(scenario, paired), options.engine_values)
    if scenario.lora.adapters:
        check_adapters(chosen, values, model_name, model)
    repeats, looks = repeats_of(options, scenario, len(chosen), paired)
    backends = tuple(
        BackendPlan(
            label=label,
            ref=ref,
            launch=replace(launch, why=f"{launch.why}{_RESTARTED}") if each else launch,
            track=track_of(ref, launch, model_name, model),
            engine_values=own,
            between=how,
        )
        for (label, ref, launch), own, how, each in zip(chosen, values, between, each_cell, strict=True)
    )
    blocks = _blocks([backend.label for backend in backends], scenario, repeats, paired)
    plan = tuple(
        part for block in blocks for part in (one_cell_each(block) if each_cell[block.backend] else (block,))
    )
    # A search needs a block for each of its searches, also where the server stays up between them.
    if between != ("restart",) and len(backends) == 1 and not options.find_capacity:
        plan = in_one_life(plan)
    return Prepared(
        options=options,
        scenario=scenario,
        backends=backends,
        model_name=model_name,
        model=model,
        repeats=repeats,
        plan=plan,
        source=source,
        probe_sizes=sizes,
        looks=looks,
        together=paired,
    )


def _check_flags(options: RunOptions) -> None:
    """Raises SpecError for flags that are wrong whatever the scenario and the backends are."""
    if isinstance(options.repeats, int):
        if options.repeats < 1:
            raise SpecError(f"must be at least 1, not {options.repeats}", where="--repeats")
        at_most(options.repeats, "--repeats", MOST_REPEATS)
    if abs(options.seed) >= LIMIT:  # it could not be read from the manifest
        raise SpecError(f"must be a number of 64 bits, not {options.seed}", where="--seed")
    if options.workers is not None and options.workers < 1:
        raise SpecError(f"must be at least 1, not {options.workers}", where="--workers")
    if options.accuracy and (options.find_capacity or options.agreement is False):
        other = "--find-capacity" if options.find_capacity else "--no-agreement"
        raise SpecError(f"does not go with {other}", where="--accuracy", hint=f"leave {other} out")
    if options.sample_hz != 0 and not LEAST_HZ <= options.sample_hz <= MOST_HZ:
        wanted = f"must be from {LEAST_HZ:g} to {MOST_HZ:g}, or 0 for none, not {options.sample_hz:g}"
        raise SpecError(wanted, where="--sample-hz")
    if options.http2 and find_spec("h2") is None:
        raise SetupError("HTTP/2 needs the package h2", where="--http2", hint=extra_hint("http2"))


def _asked_scenario(options: RunOptions, profile: Profile) -> Scenario:
    """The scenario with the changes of the command line. A capacity search brings its own loads."""
    scenario = load_scenario(options.scenario, options.overrides, profile)
    for api in options.apis:
        check_api(scenario, api, f"--api {api}")
    return searched(scenario) if options.find_capacity else scenario


def _checked_prompts(
    options: RunOptions, scenario: Scenario, sizes: ProbeSizes | None
) -> Trace | Dataset | None:
    """Checks what is known of the prompts before an engine runs. Returns the file that they come from."""
    pieces_of(scenario.text)  # raises for a file that cannot be read
    source = checked_source(scenario, sizes, options.overrides)
    check_sending(scenario, sizes, source)
    check_warm_ahead(scenario, options.seed, sizes)
    return source


def _chosen_model(options: RunOptions, scenario: Scenario) -> tuple[str, Model]:
    gives = APIS[scenario.request.api].gives
    name, model = find_model(options.model, gives, images=bool(scenario.images.counts))
    if gives in ("vectors", "scores") and options.accuracy:
        raise SpecError(f"questions are answered by text, and these answers are {gives}", where="--accuracy")
    if gives == "transcripts" and (options.agreement or options.accuracy):
        asked_for = "--accuracy" if options.accuracy else "--agreement"
        raise SpecError("transcripts are not compared: what recordings say is not known", where=asked_for)
    return name, model


def _asked_values(scenario: Scenario, paired: Together | None) -> dict[str, object]:
    """Engine values that follow from the scenario, and from the share of the machine that each engine has."""
    asked: dict[str, object] = dict(scenario.engine_values)
    if paired is not None and paired.cores:
        asked["threads"] = len(paired.cores[0])
    if scenario.lora.adapters:
        asked["lora_adapters"] = scenario.lora.adapters
    return asked


def _blocks(
    labels: Sequence[str], scenario: Scenario, repeats: int, paired: Together | None
) -> tuple[Block, ...]:
    if paired is None:
        return make_plan(labels, scenario.load, repeats)
    starts = 1 if paired.attached else repeats // paired.blocks
    return make_paired_plan(labels, scenario.load, starts, repeats // starts)


def _starts_for_each_cell(scenario: Scenario, backend: ChosenBackend) -> bool:
    """Whether only a restart gives each cell the cache state that the scenario declares."""
    cache = backend.ref.definition.prefix_cache
    declared = scenario.cache.state != "any"
    return declared and cache.enabled is True and cache.reset is None and backend.launch.mode != "attach"
