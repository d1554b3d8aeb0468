"""manifest.json: under which conditions the figures of a run hold."""

from typing import Annotated, Any, Literal

import msgspec

from harness.model.cell_facts import Value
from harness.model.choices import Pairing
from harness.model.comparison import Looks
from harness.model.identity import Division
from harness.model.record import UNSET, Record, UnsetType, doc
from harness.model.summary import ModelName, RunWarning

Number = int | float
Floors = dict[str, dict[str, dict[str, float]]]


class HostFacts(Record, frozen=True, kw_only=True):
    """The machine that `bench` ran on. Null: could not be read."""

    hostname: Annotated[str | None, doc("A container has a new one each time.")] = None
    system: Annotated[str | None, doc("Linux or Darwin.")] = None
    kernel: Annotated[str | None, doc("Its release.")] = None
    machine: Annotated[str | None, doc("Architecture.")] = None
    python: Annotated[str | None, doc("Version.")] = None
    cpu: Annotated[str | None, doc("Model name.")] = None
    cpu_features: Annotated[
        tuple[str, ...] | None,
        doc("Vector and matrix instructions, as Linux names them: CPUs of one name may differ."),
    ] = None
    cpus: Annotated[int | None, doc("Hardware threads of the machine.")] = None
    cpus_usable: Annotated[int | None, doc("Hardware threads that this process may use.")] = None
    cpu_governor: Annotated[str | None, doc("Of the first CPU.")] = None
    memory_bytes: Annotated[int | None, doc("Of the machine.")] = None
    load_average_1min: Annotated[float | None, doc("Before the run.")] = None
    gpus: Annotated[tuple[str, ...] | None, doc("Names, through NVML; null: there is no driver.")] = None
    gpu_driver: Annotated[str | None, doc("Version of NVIDIA's.")] = None

    @property
    def hardware(self) -> str | None:
        """The GPUs, or the CPU if there are none: `2× NVIDIA H100`, `AMD EPYC, 2 cores`.

        None if neither is known.
        """
        if self.gpus:
            return ", ".join(f"{self.gpus.count(name)}× {name}" for name in dict.fromkeys(self.gpus))
        cpus = self.cpus_usable or self.cpus
        cores = f"{cpus} core{'s' if cpus != 1 else ''}" if cpus else None
        return ", ".join(filter(None, (self.cpu or self.machine, cores))) or None


class GitRevision(Record, frozen=True, kw_only=True):
    """Revision of the checkout that the harness runs from."""

    revision: Annotated[str, doc("Of HEAD.")]
    dirty: Annotated[bool, doc("With changes that were not committed.")]


class ScenarioHeader(Record, frozen=True, kw_only=True):
    """Name, purpose and rules of the scenario."""

    name: Annotated[str, doc("As --scenario takes it.")]
    purpose: Annotated[str, doc("What the scenario is for.")]
    rules: Annotated[str, doc("Standard whose rules it keeps; empty: none.")] = ""


class DeclaredVerdict(Record, frozen=True, kw_only=True):
    """[verdict] of the scenario: what is to be decided."""

    primary: Annotated[str, doc("Metric that the rank line is about.")]
    metrics: Annotated[tuple[str, ...], doc("Those that get verdicts.")]
    repeats: Annotated[int | str | UnsetType, doc("auto: until the primary metric is decided.")] = UNSET
    min_repeats: Annotated[int | UnsetType, doc("Of auto.")] = UNSET
    max_repeats: Annotated[int | UnsetType, doc("Of auto.")] = UNSET
    between_repeats: Annotated[str | UnsetType, doc("auto, restart, reset or keep the engine.")] = UNSET
    cool_down_s: Annotated[Number | UnsetType, doc("Pause between two engines, s.")] = UNSET


class ScenarioTables(Record, frozen=True, kw_only=True):
    """The whole definition, with what the command line replaced; docs/scenarios.md says what its keys mean.

    Tables whose keys differ by version and generator are kept as they were.
    """

    scenario: Annotated[ScenarioHeader, doc("Which scenario it is.")]
    prompts: Annotated[dict[str, Any] | UnsetType, doc("What is asked.")] = UNSET
    text: Annotated[dict[str, Any] | UnsetType, doc("What prompts are written in.")] = UNSET
    load: Annotated[dict[str, Any] | UnsetType, doc("How many requests, how fast.")] = UNSET
    request: Annotated[dict[str, Any] | UnsetType, doc("Sampling, output lengths, time limit.")] = UNSET
    cache: Annotated[dict[str, Any] | UnsetType, doc("State of the prefix cache.")] = UNSET
    verdict: Annotated[DeclaredVerdict | UnsetType, doc("What is to be decided.")] = UNSET
    slo: Annotated[
        dict[str, dict[str, Number]] | UnsetType, doc("Limits in ms by latency and share of requests.")
    ] = UNSET
    lora: Annotated[dict[str, Any] | UnsetType, doc("Adapters, and which request names which.")] = UNSET
    images: Annotated[dict[str, Any] | UnsetType, doc("Images that go with the prompts.")] = UNSET
    engine_values: Annotated[dict[str, Value] | UnsetType, doc("[engine.values] of every backend.")] = UNSET
    profile: Annotated[str | UnsetType, doc("Of its sizes: gpu, cpu, or none.")] = UNSET


class LaunchChoice(Record, frozen=True, kw_only=True):
    """How a backend was started or reached, and why so."""

    mode: Annotated[str, doc("process, compose, simulate or attach.")]
    why: Annotated[str, doc("Why that one.")]


class ProbeCount(Record, frozen=True, kw_only=True):
    """Summary of `probe-LABEL.json`."""

    findings: Annotated[int, doc("How many.")]
    not_as_declared: Annotated[tuple[str, ...], doc("Topics in which the definition does not hold.")]
    prompt_tokens: Annotated[dict[str, int | None], doc("Of its test chats, as the server counts.")]


class BackendEntry(Record, frozen=True, kw_only=True):
    """One backend of a run. Older versions kept fewer keys."""

    backend: Annotated[str | UnsetType, doc("Name of its definition.")] = UNSET
    variant: Annotated[str | UnsetType | None, doc("Of the definition.")] = UNSET
    url: Annotated[str | UnsetType | None, doc("Of a server that was running; null: bench started it.")] = (
        UNSET
    )
    definition_sha256: Annotated[str | UnsetType, doc("Of the definition that was used.")] = UNSET
    launch: Annotated[LaunchChoice | UnsetType, doc("How it was started, or reached.")] = UNSET
    track: Annotated[str | UnsetType | None, doc("Weights: file format and quantisation.")] = UNSET
    division: Annotated[Division | UnsetType | None, doc("As shipped, tuned or changed by hand.")] = UNSET
    # Written and read by harness.spec.tuned, with a provenance of its own.
    tuned: Annotated[
        dict[str, Any] | UnsetType | None, doc("The file that `bench tune` wrote, with its provenance.")
    ] = UNSET
    between_repeats: Annotated[str | UnsetType, doc("restart, reset or keep.")] = UNSET
    # Every way of starting an engine, and every engine, tells other things.
    engine: Annotated[
        dict[str, Any] | UnsetType | None,
        doc("As it started: command, environment, versions, hashes; null: it did not."),
    ] = UNSET
    noise_key: Annotated[str | UnsetType, doc("Under which noise floors of this backend are kept.")] = UNSET
    probe: Annotated[ProbeCount | UnsetType, doc("What was found before its first cell.")] = UNSET


class Seeds(Record, frozen=True, kw_only=True):
    """The seed of the run, and what is drawn from it."""

    run: Annotated[int, doc("--seed.")]
    dimensions: Annotated[tuple[str, ...], doc("Each has a seed of its own, drawn from it.")]


class Failure(Record, frozen=True, kw_only=True):
    """A backend that could not be measured."""

    backend: Annotated[str, doc("Its label.")]
    repeat: Annotated[int, doc("From 0.")]
    error: Annotated[str, doc("What it said.")]


class Manifest(Record, frozen=True, kw_only=True):
    """Conditions under which the figures hold. Written at every change of state."""

    run: Annotated[str, doc("Name of the run folder when it was made.")]
    state: Annotated[
        Literal["running", "complete", "interrupted", "failed"], doc("running as well where it was killed.")
    ]
    created_utc: Annotated[str, doc("ISO 8601.")]
    command: Annotated[tuple[str, ...], doc("As it was typed.")] = ()
    # harness.run reads it back into RunOptions.
    options: Annotated[
        dict[str, Any], doc("What the command line came to; what bench resume goes on with.")
    ] = msgspec.field(default_factory=dict)
    working_directory: Annotated[str | None, doc("Of the command; null: not kept.")] = None
    host: Annotated[HostFacts | None, doc("Machine: CPU, memory, kernel, GPUs, driver.")] = None
    packages: Annotated[dict[str, str], doc("Versions of the harness and its libraries.")] = msgspec.field(
        default_factory=dict
    )
    git: Annotated[GitRevision | None, doc("Of the harness; null: an installed package.")] = None
    scenario: Annotated[ScenarioTables, doc("What was to be measured.")]
    scenario_sha256: Annotated[str | None, doc("Of the definition; null: not kept.")] = None
    model: Annotated[ModelName | None, doc("Null where the servers bring their own.")]
    backends: Annotated[dict[str, BackendEntry], doc("By label.")]
    seeds: Annotated[Seeds | None, doc("What is drawn, and from what; null: not kept.")] = None
    repeats: Annotated[int, doc("At most, with `stopping`.")] = 1
    stopping: Annotated[Looks | None, doc("Of --repeats auto; null: a fixed number.")] = None
    pairing: Annotated[
        Pairing,
        doc(
            "starts: engines take turns, one up at a time; blocks: all are up and take turns at the load; "
            "duet: all are up and loaded at once."
        ),
    ] = "starts"
    blocks: Annotated[int, doc("Repeats of one start, of engines that are up together.")] = 1
    aa: Annotated[bool, doc("Each backend against itself.")] = False
    noise_floor: Annotated[
        Floors | None,
        doc(
            "By backend, load point and metric: outer end of the interval of an earlier run with --aa of the "
            "same engine, version, scenario values and machine."
        ),
    ] = None
    order: Annotated[
        tuple[str, ...], doc("Cells in the order of their measurement; empty for a search.")
    ] = ()
    plan_sha256: Annotated[str | None, doc("Of plan.json, before the first cell; null: not kept.")] = None
    kv_tokens: Annotated[
        int | None,
        doc("That the working sets are multiples of: the first engine's KV cache; null: there are none."),
    ] = None
    find_capacity: Annotated[bool, doc("A search for the highest load within the limits.")] = False
    # A trace and a dataset say other things.
    workload_source: Annotated[
        dict[str, Any] | None, doc("File that the prompts are from, with its hash and what was left out.")
    ] = None
    workload_sha256: Annotated[str | None, doc("Null where load points differ in their requests.")]
    exact_lengths: Annotated[bool | None, doc("Prompts were counted by the engine's own tokenizer.")] = None
    failures: Annotated[tuple[Failure, ...], doc("Backends that could not be measured.")] = ()
    warnings: Annotated[tuple[RunWarning, ...], doc("Of the whole run.")]
    resumed_utc: Annotated[tuple[str, ...], doc("ISO 8601.")] = ()
