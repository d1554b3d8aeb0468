"""One trial: a run of one backend, one load point, one repeat, in a run folder of its own."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from harness.errors import BenchError, SetupError, StorageError
from harness.load.job import Progress
from harness.metrics.distribution import samples_needed
from harness.model import CellResult, ClassStats, LoadPoint
from harness.model.figures import share_of
from harness.model.json_path import number_at, value_at
from harness.model.measures import measure
from harness.model.numbers import counted
from harness.plan import Cell
from harness.run.execute import Run
from harness.run.setup.options import RunOptions, Ui
from harness.run.setup.prepare import prepare
from harness.spec.backend import Value
from harness.spec.scenario import Scenario
from harness.spec.tuned import values_text
from harness.store.atomic import write_json
from harness.tune.search import SHARES, Values
from harness.validity import decisive

FEWEST_WAVES = 2  # of a closed loop: a trial in which the slots are filled but once shows its ramp alone


@dataclass(frozen=True, slots=True)
class Trial:
    """An entry of trials.json. `value` None: `why` says what went wrong."""

    values: Mapping[str, Value]
    share: float  # of the scenario's requests
    value: float | None
    why: str
    run: str
    seconds: float


def least_requests(metric: str) -> int:
    """The fewest requests with which the metric can have a figure.

    A percentile needs so many samples, and a request is one of them at most. Gaps between tokens are more.
    """
    family, _, statistic = metric.rpartition(".")
    if "." in family or family == "itl_ms" or not statistic.startswith("p"):
        return 1
    return samples_needed(100 * share_of(statistic))


def lack(cell: CellResult, metric: str) -> str:
    """The reason why a cell has no figure of the metric."""
    reason, of_class = cell.null_reasons.get(metric), value_at(cell, metric.rsplit(".", 2)[0])
    if reason is None and isinstance(of_class, ClassStats):  # a class has no reason of its own
        return f"{counted(of_class.ok, 'sample')} of this class"
    return reason or "no figure"


def _check_engine(cell: CellResult, run: str) -> None:
    """Raises SetupError where the cell is INVALID and its engine is to blame."""
    found = decisive(cell.validity)
    if found is not None and found[0] == "engine":
        reason = found[1]
        raise SetupError(
            f"the default cannot be measured: {reason.code}, {reason.measured}",
            where=f"backend {cell.label}",
            hint=f"{reason.hint}; its run is {run}",
        )


class OneLine:
    """The current stage alone, for many runs in a row."""

    def __init__(self, ui: Ui) -> None:
        self._ui = ui

    def stage(self, text: str) -> None:
        self._ui.stage(text)

    def note(self, text: str) -> None: ...

    def detail(self, text: str) -> None: ...

    def load(self, cell: Cell, progress: Progress) -> None:
        self._ui.load(cell, progress)


@dataclass
class Trials:
    """`options`: of the whole scenario at one load point, for this backend; `start`: the default values."""

    options: RunOptions
    scenario: Scenario
    point: LoadPoint
    metric: str
    start: Values
    folder: Path
    ui: Ui
    seconds: Callable[[], float]  # since the search began
    done: list[Trial] = field(default_factory=list)
    engine_version: str = ""  # as the last measured engine reported it

    def shares(self) -> tuple[float, ...]:
        """The shares of different length that suffice for the metric.

        Where few requests make two of them alike, the larger stands.
        """
        least = least_requests(self.metric)
        long = (share for share in SHARES if self._requests(share) >= least)
        return tuple({str(self._size(share)): share for share in long}.values())

    def measure(self, values: Values, share: float) -> float | None:
        """The metric; None where the engine did not start, failed or the cell is INVALID.

        Raises what a run raises where it is not the candidate's fault: for the default, and for a full disk.
        Raises SetupError where the default's engine fails: it would in a longer trial too.
        """
        began, changed = self.seconds(), self.changed(values)
        run: Run | None = None
        value: float | None = None
        try:
            run = Run.start(prepare(self._options(changed, share)), OneLine(self.ui))
            value, why = self._run(run)
        except BenchError as error:
            if not changed or isinstance(error, StorageError):
                raise
            why = str(error)
        name = str(run.folder.path) if run else ""
        sent = self._requests(share) / self.scenario.load.requests
        self._keep(Trial(changed, sent, value, why, name, round(self.seconds() - began, 1)))
        if value is None and not changed and run and run.cells:
            _check_engine(run.cells[0], name)
        return value

    def changed(self, values: Values) -> dict[str, Value]:
        """Values that differ from the default."""
        return {key: value for key, value in values.items() if value != self.start[key]}

    def _options(self, changed: Values, share: float) -> RunOptions:
        texts = {key: str(value) for key, value in changed.items()}
        return replace(
            self.options,
            engine_values={**self.options.engine_values, **texts},
            overrides={**self.options.overrides, **self._size(share)},
            repeats=1,
            agreement=False,
            probe=False,
            out=self.folder,
        )

    def _size(self, share: float) -> dict[str, object]:
        """A profile of the rate gets shorter too, or a short trial would be its beginning alone."""
        load = self.scenario.load
        size: dict[str, object] = {"load.requests": self._requests(share)}
        if load.duration_s is not None:
            size["load.duration_s"] = load.duration_s * share
        if load.profile and not load.repeat_profile:
            part = self._requests(share) / load.requests
            size["load.profile"] = [
                asdict(replace(each, seconds=each.seconds * part)) for each in load.profile
            ]
        return size

    def _requests(self, share: float) -> int:
        whole, slots = (
            self.scenario.load.requests,
            self.point.value if self.point.kind == "concurrency" else 1,
        )
        return max(min(whole, FEWEST_WAVES * int(slots)), round(whole * share), 1)

    def _run(self, run: Run) -> tuple[float | None, str]:
        """The figure, or why there is none."""
        with run.folder.held():
            run.execute()
        if run.interrupted:
            raise KeyboardInterrupt
        if not run.cells:
            return None, run.failures[0].error
        cell = run.cells[0]
        self.engine_version = cell.engine_version or ""
        if (found := decisive(cell.validity)) is not None:
            return None, f"INVALID: {found[1].code}, {found[1].measured}"
        value = number_at(cell, self.metric)
        return value, "" if value is not None else lack(cell, self.metric)

    def _keep(self, trial: Trial) -> None:
        self.done.append(trial)
        write_json(self.folder / "trials.json", {"trials": [asdict(finished) for finished in self.done]})
        set_to = values_text(trial.values) or "default"
        outcome = (
            f"failed: {trial.why.partition(chr(10))[0]}"
            if trial.value is None
            else measure(self.metric).words(trial.value)
        )
        self.ui.note(f"trial {len(self.done)}, {trial.share:.0%} of the requests: {set_to}: {outcome}")
