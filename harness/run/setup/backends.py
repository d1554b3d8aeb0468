"""Turns the backends that a run names into definitions, labels and ways to start them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from harness.apis import APIS
from harness.cluster.options import require_ray
from harness.engines.simulate import parse_faults, simulated
from harness.engines.speak.access import access_of
from harness.engines.speak.dialect import set_otherwise
from harness.engines.start.launch_choice import LaunchChoice, as_launched, resolve_launch
from harness.errors import SpecError
from harness.host.address import address_of
from harness.run.setup.options import RunOptions
from harness.spec.backend import BackendRef
from harness.spec.backend_refs import check_engine_values, parse_backend_list
from harness.spec.reach import Reach, with_reach
from harness.spec.scenario import Scenario, check_api
from harness.spec.server_urls import with_metrics_urls
from harness.store.confined import fitting

# Suffixes of the two labels of a backend that is measured against itself.
_AA_LABELS = ("a", "b")


class ChosenBackend(NamedTuple):
    """A backend of the command line. Its label is unique in the run."""

    label: str
    ref: BackendRef
    launch: LaunchChoice


def chosen_backends(options: RunOptions, scenario: Scenario) -> tuple[ChosenBackend, ...]:
    """Backends in the order of the command line; each twice in a row with `--aa`.

    Raises SpecError for an unknown name, for what cannot serve the scenario, and for flags that do not apply.
    """
    apis = options.apis or (scenario.request.api,)
    listed = tuple(parse_backend_list(options.backends, apis, options.variants))
    check_variants(listed, options.variants, options.engine_values)
    if started := [ref.definition for ref in listed if not ref.urls]:
        check_engine_values(scenario.engine_values, started, f"{scenario.name}:engine_values")
    for ref in listed:
        check_api(scenario, ref.api, f"--backends {ref.label}")
        _check_turns(scenario, ref)
        _check_fields(scenario, ref)
    labels = tuple(_unique_label(ref, listed) for ref in listed)
    # What --backends calls them, whichever API --api adds: flags take a value for this name too.
    names = tuple(
        label.removesuffix(f"@{ref.api}") if ref.api in apis else label
        for ref, label in zip(listed, labels, strict=True)
    )
    listed = _reached(listed, labels, names, options)
    if options.aa:
        labels = tuple(f"{label}#{name}" for label in labels for name in _AA_LABELS)
        listed = tuple(ref for ref in listed for _ in _AA_LABELS)
        names = tuple(name for name in names for _ in _AA_LABELS)
    launches = tuple(resolve_launch(ref, options.launch, options.device, options.gpus) for ref in listed)
    _check_cluster(options, launches)
    launched = tuple(map(as_launched, listed, launches))
    refs = _simulated(launched, names, launches, options.simulate_faults)
    return tuple(map(ChosenBackend, labels, refs, launches))


def check_variants(listed: Sequence[BackendRef], variants: Collection[str], given: Mapping[str, str]) -> None:
    """Raises SpecError where --engine-set, which is for all backends, sets a value of --variant too."""
    for ref in listed:
        name = ref.variant or ""
        own = ref.definition.variants[name].values if name in variants else {}
        if both := own.keys() & given.keys():
            raise SpecError(
                "--engine-set sets it too, for all backends",
                where=f"--variant {name}: {min(both)}",
                hint="leave it out of --engine-set, and give it to each variant",
            )


def _reached(
    listed: tuple[BackendRef, ...], labels: tuple[str, ...], names: tuple[str, ...], options: RunOptions
) -> tuple[BackendRef, ...]:
    """Adds what running servers are reached with: addresses of metrics, keys, headers, certificates."""
    listed = with_metrics_urls(listed, labels, options.metrics_urls, names)
    listed = with_reach(listed, labels, options.reach, names)
    unnamed = [(replace(ref, alias="", url=None), set(map(address_of, ref.urls))) for ref in listed]
    for number, server in enumerate(unnamed):
        first = unnamed.index(server)
        if listed[number].url and first < number:
            hint = "--aa compares a server with itself: its noise"
            raise SpecError(
                f"is the same server as '{labels[first]}'", where=f"--backends {labels[number]}", hint=hint
            )
    for ref in listed:
        if ref.urls or ref.reach != Reach():
            access_of(ref.reach)  # a variable that is named must be set, a file must be there
    if options.balance and all(len(ref.urls) < 2 for ref in listed):
        raise SpecError(
            "no backend has several URLs", where="--balance", hint="--backends NAME=URL+URL spreads over two"
        )
    return listed


def _check_turns(scenario: Scenario, ref: BackendRef) -> None:
    if scenario.request.kept_turns and not ref.definition.dialect.keeps_turns:
        raise SpecError(
            f"{ref.definition.backend.title} keeps no turns in its {APIS[ref.api].title} API",
            where="request.kept_turns",
            hint=f"leave out backend '{ref.label}', or the setting: each turn then carries those before it",
        )


def _check_fields(scenario: Scenario, ref: BackendRef) -> None:
    if (path := set_otherwise(ref.definition, scenario.request)) is not None:
        raise SpecError(
            f"another setting of the scenario gives '{ref.label}' this field, or may give it",
            where=f"request.fields.{path}",
            hint="leave it out: length, sampling, thinking, constraints and tools have settings of their own",
        )


def _check_cluster(options: RunOptions, launches: Sequence[LaunchChoice]) -> None:
    if options.load_from is None:
        return
    if options.workers is not None:
        raise SpecError("is for one machine", where="--workers", hint="--workers-per-node with --cluster")
    if options.load_from.nodes > 1 and any(launch.mode != "attach" for launch in launches):
        raise SpecError(
            "other machines do not reach an engine that bench starts: it listens on 127.0.0.1",
            where="--load-nodes",
            hint="start it where every node reaches it, and give its address: --backends NAME=http://ADDRESS:PORT",
        )
    require_ray()


def _simulated(
    backends: tuple[BackendRef, ...],
    names: tuple[str, ...],
    launches: tuple[LaunchChoice, ...],
    given: Sequence[str],
) -> tuple[BackendRef, ...]:
    faults = parse_faults(given, {*names, *(ref.label for ref in backends)})
    if faults and all(launch.mode != "simulate" for launch in launches):
        raise SpecError("only applies to --launch simulate", where="--simulate-fault")
    return tuple(
        simulated(
            ref, [fault for called in dict.fromkeys((ref.label, name)) for fault in faults.get(called, ())]
        )
        if launch.mode == "simulate"
        else ref
        for ref, name, launch in zip(backends, names, launches, strict=True)
    )


def _unique_label(ref: BackendRef, backends: tuple[BackendRef, ...]) -> str:
    """The label of a backend, with the address if two servers are attached under one name. A name of the
    user's own stays.
    """
    same = [other for other in backends if other.label == ref.label]
    if len(same) == 1 or ref.url is None or ref.alias:
        return fitting(ref.label)
    addresses = [url.partition("://")[2].replace("/", "_").replace(":", "_") for url in ref.urls]
    return fitting(f"{ref.label}_{'+'.join(addresses)}")
