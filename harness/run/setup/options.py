"""Everything that `bench run` can be asked for, as plain data, and the interface to the screen."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Literal, Protocol

from harness.apis import ApiName
from harness.cluster.options import ClusterOptions
from harness.errors import SpecError
from harness.load.job import Progress
from harness.model import Manifest, Prices, from_json
from harness.model.choices import Balance, Device, LaunchMode, Pairing, SizeProfile
from harness.plan import Cell
from harness.sampling.job import DEFAULT_HZ
from harness.spec.reach import ReachFlags


@dataclass(frozen=True, slots=True)
class RunOptions:
    scenario: str
    backends: str
    variants: Mapping[str, str] = field(default_factory=dict)  # of this command line: name -> words
    apis: tuple[ApiName, ...] = ()  # that every backend is measured with; (): as the scenario says
    model: str | None = None
    served_name: str | None = None  # [BACKEND=]NAME,… of their model, as running servers call it
    launch: LaunchMode = "auto"
    simulate_faults: tuple[str, ...] = ()  # BACKEND=FAULT of the scripted servers
    device: Device = "auto"  # of engines that are started
    gpus: tuple[str, ...] = ()  # that they may use, indices or UUIDs; (): $CUDA_VISIBLE_DEVICES, else all
    gpu_wait_s: float = 0.0  # for a GPU that another process uses
    overrides: Mapping[str, object] = field(default_factory=dict)  # scenario keys, dotted
    engine_values: Mapping[str, str] = field(default_factory=dict)  # [engine.values] keys
    profile: SizeProfile = "auto"  # of the scenario's sizes
    accuracy: int = 0  # more questions, made from a seed: enough of them that a small loss is seen
    agreement: bool | None = None  # put the agreement questions; None: where engines are compared
    # None: as the scenario's verdict says, one for a single backend. "auto": until all pairs are decided.
    repeats: int | Literal["auto"] | None = None
    pairing: Pairing = "starts"
    blocks: int | None = None  # of each engine in one start, of engines that are up together
    budget_s: float | None = None  # of "auto": no step is begun that would end later
    aa: bool = False  # each backend twice, under two labels: how far apart equal engines come out
    find_capacity: bool = False  # the highest load that keeps the scenario's limits
    probe_seconds: float | None = None  # least time of its long probes; None: the default
    seed: int = 0
    workers: int | None = None
    load_from: ClusterOptions | None = None  # nodes of a cluster; None: this machine
    http2: bool = False
    balance: Balance | None = None  # of backends with several URLs; None: round-robin
    metrics_urls: tuple[str, ...] = ()  # [BACKEND=]URL of the metrics of attached servers; (): their own
    out: Path = Path("results")
    api_key_env: str | None = None  # [BACKEND=]VAR,… of running servers; those below are theirs too
    headers: tuple[str, ...] = ()  # [BACKEND=]NAME=VALUE|ENV:VAR
    query: tuple[str, ...] = ()  # the same of the query of each URL
    ca_cert: tuple[str, ...] = ()  # [BACKEND=]FILE
    client_cert: tuple[str, ...] = ()
    client_key: tuple[str, ...] = ()
    probe: bool = True  # before the first cell of each backend
    sample_hz: float = DEFAULT_HZ  # of the GPUs; 0: nothing is sampled during the load
    prices: Prices | None = None
    command: tuple[str, ...] = ()  # as typed, for the manifest

    @property
    def reach(self) -> ReachFlags:
        return ReachFlags(**{name.name: getattr(self, name.name) for name in fields(ReachFlags)})

    @property
    def all_workers(self) -> int | None:
        """Number of load processes over all nodes; None: not given."""
        return self.workers if self.load_from is None else self.load_from.workers


def stored_options(manifest: Manifest, where: str) -> RunOptions:
    """Options that a run was begun with. Raises SpecError, since the manifest may come from anywhere."""
    given = manifest.options
    hint = "start a new run with `bench run`"
    if not isinstance(given.get("out"), str):
        raise SpecError("does not say with which options it was begun", where=where, hint=hint)
    if unknown := given.keys() - {field.name for field in fields(RunOptions)}:
        what = f"was begun with options of another version: {', '.join(sorted(unknown))}"
        raise SpecError(what, where=where, hint=hint)
    try:
        options = from_json({name: option for name, option in given.items() if name != "out"}, RunOptions)
    except ValueError as error:
        raise SpecError(f"options: {error}", where=where, hint=hint) from None
    return replace(options, out=Path(given["out"]))


class Ui(Protocol):
    """The screen of a person who watches a run. It is never a source of results."""

    def stage(self, text: str) -> None:
        """Shows what is being done or waited for, in place of the previous stage."""

    def note(self, text: str) -> None:
        """Prints a line that stays."""

    def detail(self, text: str) -> None:
        """Prints a line about the internals of an engine, for those who ask for it with -v."""

    def load(self, cell: Cell, progress: Progress) -> None:
        """Shows the progress of a cell; called a few times a second while it is measured."""
