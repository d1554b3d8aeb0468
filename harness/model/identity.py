"""The keys that identify a cell."""

from typing import Annotated, Literal

from harness.model.record import UNSET, Record, UnsetType, doc

Division = Literal["default", "tuned", "custom"]


class Identity(Record, frozen=True, kw_only=True):
    """What was measured: backend, version, launch and repeat, before any figure."""

    cell: Annotated[str, doc("Name, and folder below cells/: number, label, load point, repeat.")]
    backend: Annotated[str, doc("Name of its definition.")]
    variant: Annotated[str | None, doc("Of the definition.")]
    label: Annotated[str, doc("Backend as the run names it; cells of one label and load are repeats.")]
    title: Annotated[str, doc("For people.")]
    simulated: Annotated[bool, doc("A scripted server: the figures are of no engine.")]
    track: Annotated[str | None, doc("Weights: file format and quantisation.")]
    quantisation: Annotated[str | None, doc("For people.")]
    engine_version: Annotated[str | None, doc("As the engine or its package says.")]
    launch: Annotated[str, doc("process, compose, simulate or attach.")]
    division: Annotated[
        Division | UnsetType | None,
        doc(
            "As shipped; as `bench tune` found; changed by --engine-set or a variant; null: attached servers."
        ),
    ] = UNSET
    repeat: Annotated[int, doc("From 0.")]
    start_number: Annotated[
        int | UnsetType, doc("Start of all engines that it is a block of, from 0; absent: they took turns.")
    ] = UNSET
    cores: Annotated[tuple[int, ...] | UnsetType, doc("That the engine was held to; absent: any.")] = UNSET
