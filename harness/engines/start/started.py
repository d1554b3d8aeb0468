"""What every way of starting an engine hands to the session that waits for it and speaks to it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypedDict

from harness.engines.provide.weights import Weights
from harness.spec.backend import Value


class ContainerFacts(TypedDict):
    """Facts of an engine in a container: what Docker says, and what it was started with."""

    id: str
    name: str
    memory_bytes: int | None
    cpuset: str | None
    nano_cpus: int | None
    shm_bytes: int
    ipc: str
    runtime: str
    device_requests: object  # as Docker has them
    direct_address: str | None


class StartedContainer(ContainerFacts):
    image: dict[str, object]
    device: str
    gpus: list[str]
    docker: str
    compose: str
    compose_file: str
    project: str
    address: str


class EngineFacts(TypedDict, total=False):
    """The facts about an engine in the manifest: plain JSON, nothing secret."""

    backend: str
    variant: str | None
    about: dict[str, object]
    known: list[str]
    caveat: str | None  # what its figures do not show
    simulated: bool
    launch: dict[str, str]
    base_url: str
    served_name: str
    server_version: str | None
    info: dict[str, object]
    prefix_cache: dict[str, object]
    values: dict[str, Value]
    port: int
    startup_s: float
    start: dict[str, float | None]
    log: str
    model: dict[str, object] | None
    weights: dict[str, object] | None
    command: list[str]
    env: Mapping[str, str | None]  # None: Compose passes on what this process has
    files: Mapping[str, str]
    pid: int
    package_version: str | None
    packages: dict[str, str] | None
    torch_source: str | None
    gpus: list[str]
    gpu_pids: list[int]
    container: StartedContainer
    remarks: list[str]


class ProcessHandle(Protocol):
    """Handle of an engine that was started here."""

    def exited(self) -> str | None:
        """None while it lives, else one sentence."""


@dataclass(frozen=True, slots=True)
class Started:
    """An engine that was started and may still be loading."""

    life: ProcessHandle
    base_url: str
    weights: Weights | None  # None: it brings its own
    facts: Callable[[], EngineFacts]  # for the record, once it serves: plain JSON, nothing secret
    startup_timeout_s: float
    began_s: float  # monotonic clock, when it was started
    metrics_url: str = ""  # where they have a port of their own
    waited_s: float = 0.0  # for a free GPU, before `began_s`
