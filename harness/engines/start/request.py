"""An engine that is wanted, and how it is to be started or attached to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.engines.start.command import HOST
from harness.engines.start.launch_choice import LaunchChoice
from harness.spec.backend import BackendRef, Value
from harness.spec.models import Model


@dataclass(frozen=True, slots=True)
class Planned:
    """What is known of an engine before its start."""

    ref: BackendRef
    choice: LaunchChoice
    model_name: str
    model: Model
    values: Mapping[str, Value] = field(default_factory=dict)  # instead of [engine.values], port and threads


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest(Planned):
    """One start of it."""

    log_path: Path
    gpus: tuple[str, ...] = ()  # it may use; (): $CUDA_VISIBLE_DEVICES, else all
    cores: tuple[int, ...] = ()  # it is held to; (): any
    gpu_wait_s: float = 0.0  # for a GPU in use
    host: str = HOST  # address that a process listens on
    answer_s: float = 300.0  # for its first answer: it may load the model
    served_before: bool = False  # a running server that may be starting again is waited for
    named_before: str = ""  # model of a running server, by an earlier start of the run
    keep: bool = False  # a container stays when the block is left without an error
