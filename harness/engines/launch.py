"""How a backend comes to run: found running, or started here as a process."""

from dataclasses import dataclass
from typing import Literal

from harness.errors import SpecError
from harness.spec.backend import BackendRef

Mode = Literal["auto", "compose", "process", "attach"]


@dataclass(frozen=True, slots=True)
class LaunchChoice:
    mode: Literal["process", "attach"]
    why: str  # one sentence, printed and stored


def resolve_launch(ref: BackendRef, mode: Mode) -> LaunchChoice:
    """Raises SpecError where the mode contradicts the entry of --backends or the definition."""
    name, where = ref.label, f"--launch {mode}"
    if mode == "compose":
        raise SpecError(
            f"backend '{name}' has no Compose profile",
            where=where,
            hint=f"use --launch process, or start the container and attach with {name}=URL",
        )
    if mode == "process" and ref.url:
        raise SpecError(
            f"backend '{name}' is given with a URL, which means attach",
            where=where,
            hint=f"leave out '={ref.url}' or --launch process",
        )
    if mode == "attach" and not ref.url:
        raise SpecError(
            f"backend '{name}' has no URL to attach to",
            where=where,
            hint=f"write {name}=http://HOST:PORT in --backends",
        )
    if ref.url:
        return LaunchChoice(
            "attach", f"{name} is measured where it runs, at {ref.url}, because a URL was given"
        )
    if ref.definition.process is None:
        raise SpecError(
            f"backend '{name}' cannot be started here: its definition has no [process]",
            where="--backends",
            hint=f"attach to a running server with {name}=http://HOST:PORT",
        )
    if mode == "process":
        return LaunchChoice("process", f"{name} is started as a process because --launch process was given")
    return LaunchChoice(
        "process", f"{name} is started as a process: its definition has [process] and no Compose profile"
    )
