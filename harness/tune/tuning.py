"""The whole of `bench tune`: search, comparison with the default, and the file that keeps what was better."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from harness.engines.start.command import configured, settable
from harness.errors import SetupError, SpecError, page_address
from harness.host.cpus import usable_cpus
from harness.model import VERDICT_METRICS, LoadPoint, Summary, better_of
from harness.model.measures import measure
from harness.model.numbers import as_given
from harness.plan import highest_load
from harness.run.execute import Run
from harness.run.interrupts import Interrupts
from harness.run.setup.division import Place
from harness.run.setup.mismatches import check_without_engine
from harness.run.setup.options import RunOptions, Ui
from harness.run.setup.prepare import Prepared, prepare
from harness.run.setup.provision import check_machine
from harness.run.setup.sending import KEYS
from harness.sampling import machine
from harness.spec.backend import BackendRef, Value
from harness.spec.backend_refs import candidates, parse_backend_list
from harness.spec.scenario import Load
from harness.spec.strict import nearest
from harness.spec.tuned import Provenance, Tuned, as_toml, tuned_path, values_text
from harness.store import RunFolder
from harness.store.atomic import write_bytes
from harness.store.confined import storage_error
from harness.tune.search import LEAST_GAIN, Search
from harness.tune.trial import Trial, Trials, least_requests

FEWEST_REPEATS = 3  # below it there is no verdict


@dataclass(frozen=True, slots=True)
class Settings:
    """`options`: one backend, and the scenario with what the command line changed."""

    options: RunOptions
    budget_s: float  # of the search; the comparison comes after it
    load: float | None = None  # None: the scenario's highest
    metric: str | None = None  # None: the scenario's primary
    repeats: int | None = None  # of the comparison; None: as many as the scenario's verdict needs
    out: Path | None = None  # None: where NAME@tuned is looked for


@dataclass(frozen=True, slots=True)
class Result:
    """`verdict` of tuned against default; None where the search kept the default or was interrupted."""

    folder: Path
    metric: str
    point: LoadPoint
    trials: Sequence[Trial]
    values: Mapping[str, Value]  # that differ from the default
    simulated: bool = False
    comparison: RunFolder | None = None
    verdict: str | None = None
    why: str = ""
    stored: Path | None = None
    interrupted: bool = False
    unfinished: str = ""  # a candidate that was better in a trial, when the budget ended; not in `why`


def tune(settings: Settings, ui: Ui) -> Result:
    """Raises SpecError and SetupError as a run does; a candidate that fails is a failed trial."""
    prepared, point, metric = _prepared(settings)
    tunable = _tunable(prepared)
    ui.stage("checking what the backend needs")
    check_machine(prepared, ui.stage)
    session = _Session(settings, prepared, point, metric, _folder(prepared), ui)
    with Interrupts():
        return session.conduct(tunable)


def comparison_repeats(declared: int | Literal["auto"]) -> int | Literal["auto"]:
    """Repeats of the default against the best values found: as declared, but enough for a verdict."""
    return declared if declared == "auto" else max(FEWEST_REPEATS, declared)


def compared(backend: str, candidate: Path) -> str:
    """The tuned backend and the default, as a list of backends: the same definition and version of both."""
    given = backend.strip(" ,")
    return f"{given.partition('@')[0]}@{candidate},{given}"


def why_default(
    trials: Sequence[Trial], *, spent: bool, unfinished: Mapping[str, Value] | None = None
) -> str:
    """Says why the search kept the default. `spent`: the budget ended, maybe with candidates left.

    `unfinished`: better in a trial, when it ended.
    """
    if unfinished:
        return _unfinished_words(unfinished)
    tried = [trial for trial in trials if trial.values]
    if not tried and not spent:
        return "there is no other value to try here"
    found = f"no candidate was {LEAST_GAIN:.0%} better in its trials"
    if all(trial.value is None for trial in tried):
        found = "no candidate could be measured"
    return f"{found} before the budget ended" if spent else found


def _unfinished_words(values: Mapping[str, Value]) -> str:
    return f"{values_text(values)} was better in a trial, and the budget ended before all others had one"


def _prepared(settings: Settings) -> tuple[Prepared, LoadPoint, str]:
    """Prepares trials at one load point, with the metric as the only one of the verdict."""
    if not 0 < settings.budget_s < float("inf"):
        raise SpecError("must be above 0", where="--budget")
    if settings.repeats is not None and settings.repeats < FEWEST_REPEATS:
        raise SpecError(f"must be at least {FEWEST_REPEATS}, not {settings.repeats}", where="--repeats")
    if settings.metric is not None and better_of(settings.metric) is None:
        raise SpecError(
            f"unknown metric '{settings.metric}'",
            where="--metric",
            hint=nearest(settings.metric, VERDICT_METRICS),
        )
    for ref in parse_backend_list(settings.options.backends):
        _check_starts(ref, settings.options)
    first = prepare(replace(settings.options, repeats=1))
    if len(first.backends) > 1:
        raise SpecError("one backend at a time", where="BACKEND")
    ref = first.backends[0].ref
    check_without_engine(settings.options, [ref])
    if ref.tuned is not None:
        raise SpecError("is tuned already", where="BACKEND", hint=f"tune {ref.definition.name}")
    scenario = first.scenario
    point = _point(scenario.load, settings.load)
    metric = settings.metric or scenario.verdict.primary
    if scenario.load.requests < (least := least_requests(metric)):
        raise SpecError(
            f"{measure(metric).name} needs {least} requests, and the scenario has {scenario.load.requests}",
            where="load.requests",
            hint=f"--set load.requests={least}, or another --metric",
        )
    value = int(point.value) if point.kind == "concurrency" else point.value
    overrides = {KEYS[point.kind]: [value], "verdict.primary": metric, "verdict.metrics": [metric]}
    changed = replace(settings.options, overrides={**settings.options.overrides, **overrides}, repeats=1)
    return prepare(changed), point, metric


def _check_starts(ref: BackendRef, options: RunOptions) -> None:
    """Raises SpecError for what bench does not start: each value needs a start."""
    if not ref.urls and (ref.definition.starts or options.launch == "simulate"):
        return
    name = ref.definition.name
    compared_by_hand = f"`bench run --backends {name}=URL,{name}=URL2` compares two that run"
    raise SpecError(
        f"bench does not start {'this server' if ref.urls else ref.label}, and other values need a start",
        where="BACKEND",
        hint=f"`bench tune {name}` starts one" if ref.definition.starts else compared_by_hand,
    )


def _point(load: Load, given: float | None) -> LoadPoint:
    highest = highest_load(load)
    if given is None:
        return highest
    if given <= 0 or (highest.kind == "concurrency" and given % 1):
        raise SpecError(
            f"not a load: {as_given(given)}",
            where="--load",
            hint=f"a {highest.kind}, such as {as_given(highest.value)}",
        )
    return LoadPoint(highest.kind, given)


def _tunable(prepared: Prepared) -> dict[str, tuple[Value, ...]]:
    """Candidates by key, without keys that the command line sets or that the engine does not take as it is
    started, and without threads that this machine lacks.
    """
    (backend,) = prepared.backends
    ref, takes = backend.ref, settable(backend.ref.definition, backend.launch)
    free = takes.keys() - prepared.options.engine_values.keys()
    declared = ref.definition.engine.tunable
    keys = {key: candidates(given) for key, given in declared.items() if key in free}
    if "threads" in keys:
        cpus = usable_cpus()
        keys["threads"] = tuple(value for value in keys["threads"] if int(value) <= cpus)
    if not keys:
        what = "declares no [engine.tunable]"
        hint = f"a table [engine.tunable] in its definition: {page_address('adding-an-engine')}"
        if declared:
            mode = backend.launch.mode
            what += f" but {', '.join(declared)}, which --engine-set holds or --launch {mode} does not take"
            hint = "hold fewer values, or launch it in another way"
        raise SpecError(what, where=f"backend {ref.label}", hint=hint)
    return keys


def _folder(prepared: Prepared) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    name = f"tune-{stamp}-{prepared.backends[0].ref.definition.name}-{prepared.scenario.name}"
    # The comparison names a file in it, and a list of backends is split at these.
    path = prepared.options.out / re.sub("[,=]", "_", name)
    try:
        path.mkdir(parents=True)
    except (OSError, ValueError) as error:
        raise storage_error(error, path) from error
    return path


class _Session:
    """One search and what follows from it."""

    def __init__(
        self, settings: Settings, prepared: Prepared, point: LoadPoint, metric: str, folder: Path, ui: Ui
    ) -> None:
        began = time.monotonic()
        self._settings, self._prepared = settings, prepared
        (backend,) = prepared.backends
        self._ref = backend.ref
        default = configured(self._ref.definition, None, backend.engine_values, backend.launch)
        self._trials = Trials(
            prepared.options,
            prepared.scenario,
            point,
            metric,
            default.engine.values,
            folder,
            ui,
            lambda: time.monotonic() - began,
        )

    def conduct(self, tunable: Mapping[str, Sequence[Value]]) -> Result:
        metric, trials = self._trials.metric, self._trials
        simulated = self._ref.definition.backend.simulated
        result = Result(trials.folder, metric, trials.point, trials.done, {}, simulated)
        better = better_of(metric)
        assert better is not None  # a scenario cannot name such a primary metric either
        try:
            search = Search(tunable, better, trials.measure, self._spent, trials.shares())
            best = search.best(trials.start)
        except KeyboardInterrupt:
            return replace(result, interrupted=True)
        if best is None:
            last = trials.done[-1] if trials.done else None
            reason = last.why if last else "the budget ended before the first trial"
            lack = f"the default has no {measure(metric).name}: {reason}"
            raise SetupError(lack, where=f"backend {self._ref.label}")
        values, unfinished = trials.changed(best), trials.changed(search.unfinished or {})
        if not values:
            why = why_default(trials.done, spent=self._spent(), unfinished=unfinished)
            return replace(result, why=why)
        words = _unfinished_words(unfinished) if unfinished and unfinished != values else ""
        return self._confirmed(replace(result, values=values, unfinished=words))

    def _spent(self) -> bool:
        return self._trials.seconds() >= self._settings.budget_s

    def _confirmed(self, result: Result) -> Result:
        """Stored only where the comparison with the default says faster."""
        spent_s = self._trials.seconds()
        tuned = Tuned(
            self._ref.definition.name, dict(result.values), self._provenance(spent_s), self._ref.variant or ""
        )
        candidate = self._trials.folder / "candidate.toml"
        write_bytes(candidate, as_toml(tuned).encode())
        self._trials.ui.note(f"comparing {values_text(tuned.values)} with the default")
        run = self._compare(candidate)
        if run.interrupted:
            return replace(result, comparison=run.folder, interrupted=True)
        verdict, why = self._verdict(run.summary)
        result = replace(result, comparison=run.folder, verdict=verdict, why=why)
        if verdict != "faster":
            return result
        target = self._settings.out or tuned_path(tuned.backend)
        origin = replace(
            tuned.provenance,
            verdict=f"faster: {why}",
            workload_sha256=run.manifest.document.workload_sha256 or "",
            runs=(*tuned.provenance.runs, str(run.folder.path)),
        )
        write_bytes(target, as_toml(replace(tuned, provenance=origin)).encode())
        return replace(result, stored=target)

    def _compare(self, candidate: Path) -> Run:
        settings, ref = self._settings, self._ref
        options = replace(
            self._prepared.options,
            backends=compared(self._prepared.options.backends, candidate),
            apis=(ref.api,),
            repeats=settings.repeats or comparison_repeats(self._prepared.scenario.verdict.repeats),
            agreement=False,
            out=self._trials.folder,
        )
        run = Run.start(prepare(options), self._trials.ui)
        with run.folder.held():
            run.execute()
        return run

    def _verdict(self, summary: Summary) -> tuple[str, str]:
        """The verdict of tuned against default, and its sentence."""
        for finding in summary.comparison:
            if finding.metric == self._trials.metric:
                return finding.verdict, finding.why
        return "not comparable", "one of both could not be measured"

    def _provenance(self, spent_s: float) -> Provenance:
        facts = machine.host_facts()
        here = Place.of(self._prepared, self._prepared.backends[0], facts)
        done = self._trials.done
        return Provenance(
            date_utc=datetime.now(UTC).isoformat(timespec="seconds"),
            scenario=here.scenario,
            scenario_key=here.scenario_key,
            workload_sha256="",
            load=self._trials.point.label,
            metric=self._trials.metric,
            model=here.model,
            launch=here.launch,
            host=facts.hardware or "a machine that is not known",
            host_key=here.host_key,
            engine_version=self._trials.engine_version,
            budget_s=self._settings.budget_s,
            spent_s=round(spent_s, 1),
            trials=len(done),
            failed_trials=sum(trial.value is None for trial in done),
            verdict="not compared yet",
            runs=tuple(trial.run for trial in done),
            held=values_text(self._prepared.options.engine_values),
        )
