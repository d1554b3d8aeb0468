"""Turns names and flags into checked definitions before anything is started: a typo costs nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec

from harness.apis import APIS
from harness.engines.check.preflight import Planned
from harness.engines.provide.models import find_model
from harness.engines.simulate import parse_faults, simulated
from harness.engines.speak.access import access_of
from harness.engines.start.command import configured, settable
from harness.engines.start.launch_choice import LaunchChoice, as_launched, resolve_launch, track_of
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
from harness.run.setup.capacity_search import probe_sizes, searched
from harness.run.setup.mismatches import check_adapters, check_cluster, check_images, check_turns
from harness.run.setup.options import RunOptions
from harness.run.setup.pairing import BLOCKS, Together, sized, together_of
from harness.run.setup.profile import profile_of
from harness.run.setup.prompt_source import checked_source
from harness.run.setup.repeats import between_of, repeats_of
from harness.run.setup.sending import check_sending
from harness.run.setup.warm_cache import check_warm_ahead
from harness.sampling.job import MOST_HZ
from harness.spec.backend import BackendRef
from harness.spec.backend_refs import parse_backend_list
from harness.spec.models import Model
from harness.spec.reach import Reach, with_reach
from harness.spec.scenario import Scenario, check_api, load_scenario
from harness.spec.scenario.limits import MOST_REPEATS, at_most
from harness.spec.server_urls import with_metrics_urls
from harness.spec.strict import nearest
from harness.store.confined import fitting
from harness.untrusted import LIMIT
from harness.workload.prompts.content import pieces_of
from harness.workload.traces import Dataset, Trace

# Suffixes of the two labels of a backend that is measured against itself.
AA_LABELS = ("a", "b")


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
    def engines(self) -> tuple[Planned, ...]:
        """Engines in the form in which `check_machine` takes them."""
        return tuple(
            Planned(
                backend.ref,
                backend.label,
                backend.launch,
                self.model_name,
                self.model,
                dict(backend.engine_values),
            )
            for backend in self.backends
        )

    @property
    def cells(self) -> int:
        return sum(len(block.cells) for block in self.plan)


def prepare(options: RunOptions) -> Prepared:
    """Checks the options and everything that they name.

    Raises SpecError for whatever a user can get wrong on the command line or in a definition.
    """
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
    if not 0 <= options.sample_hz <= MOST_HZ:
        raise SpecError(f"must be from 0 to {MOST_HZ:g}, not {options.sample_hz:g}", where="--sample-hz")
    if options.http2 and find_spec("h2") is None:
        raise SetupError("HTTP/2 needs the package h2", where="--http2", hint=extra_hint("http2"))
    profile = profile_of(options)
    scenario = load_scenario(options.scenario, options.overrides, profile)
    options = replace(options, profile=profile)
    for api in options.apis:
        check_api(scenario, api, f"--api {api}")
    if options.find_capacity:
        scenario = searched(scenario)
    listed = tuple(parse_backend_list(options.backends, options.apis or (scenario.request.api,)))
    for ref in listed:
        check_api(scenario, ref.api, f"--backends {ref.label}")
        check_turns(scenario, ref)
    labels = tuple(_unique_label(ref, listed) for ref in listed)
    listed = with_metrics_urls(listed, labels, options.metrics_urls)
    listed = with_reach(listed, labels, options.reach)
    for ref in listed:
        if ref.urls or ref.reach != Reach():
            access_of(ref.reach)  # a variable that is named must be set, a file must be there
    if options.balance and all(len(ref.urls) < 2 for ref in listed):
        raise SpecError(
            "no backend has several URLs", where="--balance", hint="--backends NAME=URL+URL spreads over two"
        )
    backends = tuple(ref for ref in listed for _ in AA_LABELS) if options.aa else listed
    launches = tuple(resolve_launch(ref, options.launch, options.device, options.gpus) for ref in backends)
    backends = tuple(map(as_launched, backends, launches))
    check_cluster(options, backends, launches)
    backends = _simulated(backends, launches, options.simulate_faults)
    sizes = probe_sizes(options, scenario)
    pieces_of(scenario.text)  # a file that cannot be read is an error now, not when an engine runs
    source = checked_source(scenario, sizes)
    check_sending(scenario, sizes, source)
    check_warm_ahead(scenario, options.seed, sizes)
    started = tuple(zip(backends, launches, strict=True))
    between = between_of(options, scenario, started)
    each_cell = [
        not options.find_capacity and how == "restart" and _starts_for_each_cell(scenario, *pair)
        for pair, how in zip(started, between, strict=True)
    ]
    paired = together_of(options, started, each_cell)
    if paired is not None:
        scenario = sized(scenario, options, BLOCKS if paired.attached else paired.blocks)
    with_images = bool(scenario.images.counts)
    model_name, model = find_model(options.model, APIS[scenario.request.api].gives, images=with_images)
    if APIS[scenario.request.api].gives == "transcripts" and (options.agreement or options.accuracy):
        asked_for = "--accuracy" if options.accuracy else "--agreement"
        raise SpecError("transcripts are not compared: what recordings say is not known", where=asked_for)
    check_images(scenario, backends, launches)
    asked = dict(scenario.engine_values)
    if paired is not None and paired.cores:
        asked["threads"] = len(paired.cores[0])
    if scenario.lora.adapters:
        asked["lora_adapters"] = scenario.lora.adapters
    values = _engine_values(backends, launches, model, asked, options.engine_values)
    if scenario.lora.adapters:
        check_adapters(backends, launches, values, model_name, model)
    if options.aa:
        labels = tuple(f"{label}#{name}" for label in labels for name in AA_LABELS)
    planned = tuple(
        BackendPlan(
            label=label,
            ref=ref,
            launch=_with_restarts(launch) if each else launch,
            track=track_of(ref, launch, model_name, model),
            engine_values=own,
            between=how,
        )
        for label, (ref, launch), own, how, each in zip(
            labels, started, values, between, each_cell, strict=True
        )
    )
    repeats, looks = repeats_of(options, scenario, len(backends), paired)
    plan = tuple(
        part
        for block in _plan(labels, scenario, repeats, paired)
        for part in (one_cell_each(block) if each_cell[block.backend] else (block,))
    )
    # A search needs a block for each of its searches, also where the server stays up between them.
    if between != ("restart",) and len(backends) == 1 and not options.find_capacity:
        plan = in_one_life(plan)
    return Prepared(
        options=options,
        scenario=scenario,
        backends=planned,
        model_name=model_name,
        model=model,
        repeats=repeats,
        plan=plan,
        source=source,
        probe_sizes=sizes,
        looks=looks,
        together=paired,
    )


def _plan(
    labels: Sequence[str], scenario: Scenario, repeats: int, paired: Together | None
) -> tuple[Block, ...]:
    if paired is None:
        return make_plan(labels, scenario.load, repeats)
    starts = 1 if paired.attached else repeats // paired.blocks
    return make_paired_plan(labels, scenario.load, starts, repeats // starts)


def _with_restarts(launch: LaunchChoice) -> LaunchChoice:
    return replace(launch, why=f"{launch.why}; again for every cell, since it has no cache reset")


def _starts_for_each_cell(scenario: Scenario, ref: BackendRef, launch: LaunchChoice) -> bool:
    """Whether only a restart gives each cell the cache state that the scenario declares."""
    cache = ref.definition.prefix_cache
    declared = scenario.cache.state != "any"
    return declared and cache.enabled is True and cache.reset is None and launch.mode != "attach"


def _simulated(
    backends: tuple[BackendRef, ...], launches: tuple[LaunchChoice, ...], given: Sequence[str]
) -> tuple[BackendRef, ...]:
    faults = parse_faults(given, [ref.label for ref in backends])
    if faults and all(launch.mode != "simulate" for launch in launches):
        raise SpecError("only applies to --launch simulate", where="--simulate-fault")
    return tuple(
        simulated(ref, faults.get(ref.label, ())) if launch.mode == "simulate" else ref
        for ref, launch in zip(backends, launches, strict=True)
    )


def _engine_values(
    backends: tuple[BackendRef, ...],
    launches: tuple[LaunchChoice, ...],
    model: Model,
    asked: Mapping[str, object],
    given: Mapping[str, str],
) -> tuple[dict[str, str], ...]:
    """Engine values of each backend. Raises SpecError for a key of the command line that no backend takes.

    Tuned values replace those of the scenario, and the command line replaces both.
    """
    keys = [settable(ref.definition, launch) for ref, launch in zip(backends, launches, strict=True)]
    started = [own for own, launch in zip(keys, launches, strict=True) if launch.mode != "attach"]
    if given and not started:
        raise SpecError("a running server keeps the values that it was started with", where="--engine-set")
    for key in given:
        if not any(key in own for own in started):
            known = {name for own in started for name in own}
            also = any(key in settable(ref.definition) for ref in backends)
            lacks = f"takes '{key}' as it is started here" if also else f"has an engine value '{key}'"
            raise SpecError(f"no backend {lacks}", where="--engine-set", hint=nearest(key, known))
    wanted = {key: str(value) for key, value in asked.items()}
    values = tuple(
        {key: value for key, value in (wanted | _tuned(ref) | dict(given)).items() if key in own}
        for ref, own in zip(backends, keys, strict=True)
    )
    for ref, launch, own in zip(backends, launches, values, strict=True):
        serves_weights = ref.definition.backend.weights != "none"
        configured(ref.definition, model if serves_weights else None, own, launch, wanted.keys() - given)
    return values


def _tuned(ref: BackendRef) -> dict[str, str]:
    return {key: str(value) for key, value in (ref.tuned.values if ref.tuned else {}).items()}


def _unique_label(ref: BackendRef, backends: tuple[BackendRef, ...]) -> str:
    """The label of a backend, with the address if two servers are attached under one name."""
    same = [other for other in backends if other.label == ref.label]
    if len(same) == 1 or ref.url is None:
        return fitting(ref.label)
    addresses = [url.partition("://")[2].replace("/", "_").replace(":", "_") for url in ref.urls]
    return fitting(f"{ref.label}_{'+'.join(addresses)}")
