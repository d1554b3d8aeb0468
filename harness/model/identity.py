"""The keys that identify a cell."""

from typing import Annotated, Literal

from harness.model.record import UNSET, Record, UnsetType, doc

Division = Literal["default", "tuned", "custom"]


class Identity(Record, frozen=True, kw_only=True):
    """What was measured: backend, version, launch and repeat, before any figure."""

    cell: Annotated[str, doc("Name of the cell and its folder in cells/: number, label, load point, repeat.")]
    backend: Annotated[str, doc("Name of the backend's definition.")]
    variant: Annotated[str | None, doc("Variant of the definition; null: none.")]
    label: Annotated[str, doc("Backend as the run names it; cells of one label and load are repeats.")]
    title: Annotated[str, doc("Name of the engine for people.")]
    simulated: Annotated[bool, doc("Whether a scripted server answered: the figures are of no engine.")]
    track: Annotated[str | None, doc("Weights: file format and quantisation; null: the server's own.")]
    quantisation: Annotated[str | None, doc("Quantisation of the weights for people; null: not known.")]
    engine_version: Annotated[str | None, doc("Version by the engine or its package; null: not known.")]
    launch: Annotated[str, doc("How it was started or reached: process, compose, simulate, attach, import.")]
    division: Annotated[
        Division | UnsetType | None,
        doc(
            "Settings of the engine: default (as shipped), tuned (by `bench tune`) or custom (by "
            "--engine-set or a variant); null: attached."
        ),
    ] = UNSET
    repeat: Annotated[int, doc("Number of the repeat, from 0.")]
    start_number: Annotated[
        int | UnsetType,
        doc("Number of the joint start that the cell is a block of, from 0; missing: engines took turns."),
    ] = UNSET
    cores: Annotated[
        tuple[int, ...] | UnsetType, doc("CPU cores that the engine was held to; missing: all.")
    ] = UNSET


class AnsweredModel(Record, frozen=True, kw_only=True):
    """A model that measured answers name, where one model was requested."""

    requested: Annotated[str, doc("Model, or LoRA adapter, that the requests name; empty: none is known.")]
    answered: Annotated[str, doc("Model that the answers name.")]
    requests: Annotated[int, doc("Number of these answers.")]
    first_s: Annotated[float, doc("Time of the first of their sends, s from the start of the cell.")]
