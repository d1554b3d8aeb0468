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

    hostname: Annotated[str | None, doc("Name of the host; a container has a new one each time.")] = None
    system: Annotated[str | None, doc("Operating system: Linux or Darwin.")] = None
    kernel: Annotated[str | None, doc("Release of the kernel.")] = None
    machine: Annotated[str | None, doc("Architecture of the machine, such as x86_64.")] = None
    python: Annotated[str | None, doc("Version of Python.")] = None
    cpu: Annotated[str | None, doc("Model name of the CPU.")] = None
    cpu_features: Annotated[
        tuple[str, ...] | None,
        doc("Vector and matrix instructions, as Linux names them: CPUs of one name may differ."),
    ] = None
    cpus: Annotated[int | None, doc("Hardware threads of the machine.")] = None
    cpus_usable: Annotated[
        int | None, doc("Hardware threads that bench may use, no more than its limit of CPU time is worth.")
    ] = None
    cpu_quota: Annotated[
        float | None, doc("Limit of CPU time of bench's cgroups, in CPUs; null: none, or not seen.")
    ] = None
    cpu_governor: Annotated[str | None, doc("Frequency governor of the first CPU.")] = None
    memory_bytes: Annotated[int | None, doc("Memory of the machine.")] = None
    load_average_1min: Annotated[float | None, doc("Load average of one minute before the run.")] = None
    gpus: Annotated[
        tuple[str, ...] | None, doc("Names of the GPUs, through NVML; null: there is no driver.")
    ] = None
    gpu_driver: Annotated[str | None, doc("Version of NVIDIA's driver.")] = None

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

    revision: Annotated[str, doc("Commit of bench.")]
    dirty: Annotated[bool, doc("Whether the checkout had uncommitted changes.")]


class ScenarioHeader(Record, frozen=True, kw_only=True):
    """Name, purpose and rules of the scenario."""

    name: Annotated[str, doc("Name of the scenario, as --scenario takes it.")]
    purpose: Annotated[str, doc("Purpose of the scenario, for people.")]
    rules: Annotated[str, doc("Standard whose rules the scenario keeps; empty: none.")] = ""


class DeclaredVerdict(Record, frozen=True, kw_only=True):
    """[verdict] of the scenario: what is to be decided."""

    primary: Annotated[str, doc("Primary metric, which the rank line is about.")]
    metrics: Annotated[tuple[str, ...], doc("Metrics that get verdicts.")]
    repeats: Annotated[
        int | str | UnsetType, doc("Number of repeats; auto: until the primary metric is decided.")
    ] = UNSET
    min_repeats: Annotated[int | UnsetType, doc("Fewest repeats where `repeats` is auto.")] = UNSET
    max_repeats: Annotated[int | UnsetType, doc("Most repeats where `repeats` is auto.")] = UNSET
    between_repeats: Annotated[
        str | UnsetType, doc("Treatment of the engine between repeats: auto, restart, reset or keep.")
    ] = UNSET
    cool_down_s: Annotated[Number | UnsetType, doc("Pause between two engines.")] = UNSET


class ScenarioTables(Record, frozen=True, kw_only=True):
    """The whole definition, with what the command line replaced; comments in workloads/ explain its keys.

    Tables whose keys differ by version and generator are kept as they were.
    """

    scenario: Annotated[ScenarioHeader, doc("Name, purpose and rules of the scenario.")]
    prompts: Annotated[dict[str, Any] | UnsetType, doc("Generator of the prompts, with its settings.")] = (
        UNSET
    )
    text: Annotated[dict[str, Any] | UnsetType, doc("Text that prompts are made of.")] = UNSET
    load: Annotated[dict[str, Any] | UnsetType, doc("Number of requests, and how fast they are sent.")] = (
        UNSET
    )
    request: Annotated[
        dict[str, Any] | UnsetType, doc("Settings of each request: sampling, output length, time limit.")
    ] = UNSET
    cache: Annotated[dict[str, Any] | UnsetType, doc("State of the prefix cache at the start of a cell.")] = (
        UNSET
    )
    verdict: Annotated[DeclaredVerdict | UnsetType, doc("Metrics and repeats of the verdicts.")] = UNSET
    slo: Annotated[
        dict[str, dict[str, Number]] | UnsetType, doc("Limits in ms by latency and share of requests.")
    ] = UNSET
    lora: Annotated[dict[str, Any] | UnsetType, doc("LoRA adapters, and which request names which.")] = UNSET
    images: Annotated[dict[str, Any] | UnsetType, doc("Images that go with the prompts.")] = UNSET
    engine_values: Annotated[
        dict[str, Value] | UnsetType, doc("Values of [engine.values] for all backends that have them.")
    ] = UNSET
    profile: Annotated[str | UnsetType, doc("Profile of the sizes: gpu, cpu, or empty for none.")] = UNSET


class LaunchChoice(Record, frozen=True, kw_only=True):
    """How a backend was started or reached, and why so."""

    mode: Annotated[
        str, doc("How the backend is started or reached: process, compose, simulate, attach or import.")
    ]
    why: Annotated[str, doc("Reason for this choice, for people.")]


class ProbeCount(Record, frozen=True, kw_only=True):
    """Summary of `probe-LABEL.json`."""

    findings: Annotated[int, doc("Number of findings.")]
    not_as_declared: Annotated[tuple[str, ...], doc("Topics in which the definition does not hold.")]
    prompt_tokens: Annotated[
        dict[str, int | None],
        doc("Prompt tokens of two test chats, as the server counts them; null: it does not."),
    ]


class BackendEntry(Record, frozen=True, kw_only=True):
    """One backend of a run. Older versions kept fewer keys."""

    backend: Annotated[str | UnsetType, doc("Name of the backend's definition.")] = UNSET
    variant: Annotated[str | UnsetType | None, doc("Variant of the definition; null: none.")] = UNSET
    url: Annotated[
        str | UnsetType | None, doc("Address of a server that was running; null: bench started it.")
    ] = UNSET
    definition_sha256: Annotated[str | UnsetType, doc("SHA-256 of the definition that was used.")] = UNSET
    launch: Annotated[LaunchChoice | UnsetType, doc("How the backend was started or reached.")] = UNSET
    track: Annotated[
        str | UnsetType | None, doc("Weights: file format and quantisation; null: the server's own.")
    ] = UNSET
    division: Annotated[
        Division | UnsetType | None, doc("Settings: as shipped, tuned or changed by hand; null: attached.")
    ] = UNSET
    # Written and read by harness.spec.tuned, with a provenance of its own.
    tuned: Annotated[
        dict[str, Any] | UnsetType | None,
        doc("File that `bench tune` wrote, with its provenance; null: none."),
    ] = UNSET
    between_repeats: Annotated[
        str | UnsetType, doc("Treatment of the engine between repeats: restart, reset or keep.")
    ] = UNSET
    # Every way of starting an engine, and every engine, tells other things.
    engine: Annotated[
        dict[str, Any] | UnsetType | None,
        doc(
            "Facts of the engine at its last start: command, environment, versions, hashes; null: it did not "
            "start. `cell.json` has what may differ from start to start."
        ),
    ] = UNSET
    noise_key: Annotated[
        str | UnsetType, doc("Key of the noise floors of this backend in the user's cache.")
    ] = UNSET
    probe: Annotated[ProbeCount | UnsetType, doc("Summary of the probe before the first cell.")] = UNSET


class Seeds(Record, frozen=True, kw_only=True):
    """The seed of the run, and what is drawn from it."""

    run: Annotated[int, doc("Seed of the run: --seed.")]
    dimensions: Annotated[tuple[str, ...], doc("Names of what is drawn, each with a seed made of the run's.")]


class Failure(Record, frozen=True, kw_only=True):
    """A backend that could not be measured."""

    backend: Annotated[str, doc("Label of the backend.")]
    repeat: Annotated[int, doc("Number of the repeat, from 0.")]
    error: Annotated[str, doc("Error message.")]


class Manifest(Record, frozen=True, kw_only=True):
    """Conditions under which the figures hold. Written at every change of state."""

    run: Annotated[str, doc("Name of the run folder when it was made.")]
    state: Annotated[
        Literal["running", "complete", "interrupted", "failed"],
        doc("State of the run; running as well where it was killed."),
    ]
    created_utc: Annotated[str, doc("Time at which the run began, UTC, ISO 8601.")]
    command: Annotated[tuple[str, ...], doc("Command line as it was typed.")] = ()
    # harness.run reads it back into RunOptions.
    options: Annotated[
        dict[str, Any], doc("Options that the command line came to; bench resume goes on with them.")
    ] = msgspec.field(default_factory=dict)
    working_directory: Annotated[str | None, doc("Working directory of the command; null: not kept.")] = None
    host: Annotated[HostFacts | None, doc("Machine that ran bench; null: not known.")] = None
    packages: Annotated[dict[str, str], doc("Versions of bench and its libraries by package.")] = (
        msgspec.field(default_factory=dict)
    )
    git: Annotated[GitRevision | None, doc("Git revision of bench; null: not known.")] = None
    scenario: Annotated[ScenarioTables, doc("Scenario, with what the command line replaced.")]
    scenario_sha256: Annotated[str | None, doc("SHA-256 of the scenario; null: not kept.")] = None
    model: Annotated[ModelName | None, doc("Model that was served; null: the servers bring their own.")]
    backends: Annotated[dict[str, BackendEntry], doc("Backends of the run by label.")]
    seeds: Annotated[Seeds | None, doc("Seed of the run, and what is drawn from it; null: not kept.")] = None
    repeats: Annotated[int, doc("Number of repeats; with `stopping` the most of them.")] = 1
    stopping: Annotated[Looks | None, doc("Looks of --repeats auto; null: a fixed number of repeats.")] = None
    pairing: Annotated[
        Pairing,
        doc(
            "How engines share the machine. starts: they take turns, one up at a time. blocks: all are "
            "up and take turns at the load. duet: all are up and loaded at once."
        ),
    ] = "starts"
    blocks: Annotated[int, doc("Repeats in one start of engines that are up together.")] = 1
    aa: Annotated[bool, doc("Whether each backend is measured against itself.")] = False
    noise_floor: Annotated[
        Floors | None,
        doc(
            "Noise floors by backend, load point and metric, as a share: outer end of the interval of an "
            "earlier run with --aa of the same engine, version, scenario values and machine."
        ),
    ] = None
    order: Annotated[
        tuple[str, ...], doc("Cells in the order of their measurement; empty for a search.")
    ] = ()
    plan_sha256: Annotated[str | None, doc("SHA-256 of plan.json before the first cell; null: not kept.")] = (
        None
    )
    kv_tokens: Annotated[
        int | None,
        doc("Tokens of the KV cache that the working sets are multiples of; null: there are none."),
    ] = None
    find_capacity: Annotated[bool, doc("Whether the run searches the highest load within the limits.")] = (
        False
    )
    # A trace and a dataset say other things.
    workload_source: Annotated[
        dict[str, Any] | None,
        doc("File that the prompts are from, with its hash and what was left out; null: none."),
    ] = None
    workload_sha256: Annotated[
        str | None, doc("SHA-256 of the requests of all load points in the first repeat; null: not known.")
    ]
    exact_lengths: Annotated[
        bool | None, doc("Whether the engine's own tokenizer counted the prompts; null: not known.")
    ] = None
    counted_by: Annotated[
        str | None,
        doc("Backend whose tokenizer counted the prompts, or that was asked and has none; null: not known."),
    ] = None
    failures: Annotated[tuple[Failure, ...], doc("Backends that could not be measured.")] = ()
    warnings: Annotated[tuple[RunWarning, ...], doc("Warnings of the whole run.")]
    resumed_utc: Annotated[tuple[str, ...], doc("Times at which the run was resumed, UTC, ISO 8601.")] = ()
