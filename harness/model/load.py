"""A load point, and how its requests arrive."""

from typing import Annotated, Literal

from harness.model.numbers import as_given
from harness.model.record import UNSET, Record, UnsetType, doc

LoadKind = Literal["concurrency", "rate", "trace", "working-set", "unknown"]
KIND = (
    "Kind of load: closed loop, open loop, replay of a trace, or closed loop over a working set; unknown: "
    "the file of another tool does not name it."
)
VALUE = (
    "Amount of load: requests in flight, requests/s, or a multiple of the trace's pace or the KV cache; 1 of "
    "an unknown kind."
)


class LoadPoint(Record, frozen=True, order=True):
    """One setting of the load; its kind says what the value counts."""

    kind: Annotated[LoadKind, doc(KIND)]
    value: Annotated[int | float, doc(VALUE)]

    @property
    def label(self) -> str:
        """`c8`, `r2.5`, `t1`, `w0.5` or `u1`: in cell names."""
        return f"{self.kind[0]}{as_given(self.value)}"

    def cell_name(self, label: str, repeat: int, number: int, cells: int) -> str:
        """`003-llamacpp-c8-r0`: names of as many `cells` sort by their number."""
        digits = max(3, len(str(cells - 1)))
        return f"{number:0{digits}d}-{label}-{self.label}-r{repeat}"


class RateSegment(Record, frozen=True, kw_only=True):
    """A stretch of the rate profile; factors of the load point's rate, linear in between."""

    seconds: Annotated[int | float, doc("Length of the stretch.")]
    start: Annotated[int | float, doc("Factor of the rate at its start.")]
    end: Annotated[int | float, doc("Factor of the rate at its end.")]


class WorkingSet(Record, frozen=True, kw_only=True):
    """Prefixes that a closed loop asks for between two uses of the same one."""

    prefixes: Annotated[int, doc("Prefixes that requests take in turn or draw, each with a tail of its own.")]
    held_tokens: Annotated[int, doc("Tokens that a request leaves in a cache, chat template left out.")]
    kv_tokens: Annotated[
        int | None,
        doc("Tokens that this engine's KV cache holds, as it reports; null: not, or its replicas differ."),
    ]
    in_flight: Annotated[int, doc("Requests in flight at once.")]
    rest_s: Annotated[int | float, doc("Pause without requests before the measured part.")]


class Abandonment(Record, frozen=True, kw_only=True):
    """Users who hang up, unless their answer ends before."""

    share: Annotated[float, doc("Share of the requests, each drawn.")]
    after_s: Annotated[float, doc("Time from the send until the user hangs up.")]


class Load(Record, frozen=True, kw_only=True):
    """The load point, and how its requests arrive."""

    kind: Annotated[LoadKind, doc(KIND)]
    value: Annotated[int | float, doc(VALUE)]
    arrival: Annotated[str | UnsetType | None, doc("Arrival process of an open loop; null: closed loop.")] = (
        UNSET
    )
    burstiness: Annotated[
        float | UnsetType | None, doc("Shape of gamma arrivals, 1 is Poisson; null: none are drawn.")
    ] = UNSET
    profile: Annotated[
        tuple[RateSegment, ...] | UnsetType,
        doc("Stretches of an open loop with rates of their own; empty: none."),
    ] = UNSET
    over_cap: Annotated[
        str | UnsetType | None, doc("Treatment of requests over the cap of an open loop: wait or drop.")
    ] = UNSET
    think_time_s: Annotated[float | UnsetType, doc("Mean wait before a slot or a chat sends again.")] = UNSET
    abandonment: Annotated[Abandonment | UnsetType, doc("Users who hang up; missing: nobody does.")] = UNSET
    start: Annotated[
        str | UnsetType | None,
        doc("How the slots of a closed loop began: spread or together; null: no slots."),
    ] = UNSET
    start_declared: Annotated[
        str | UnsetType | None, doc("Start that the scenario declares in [load]; null: no slots.")
    ] = UNSET
    working_set: Annotated[
        WorkingSet | UnsetType, doc("Working set; missing: another kind of load point.")
    ] = UNSET

    @property
    def point(self) -> LoadPoint:
        return LoadPoint(self.kind, self.value)

    @property
    def slots(self) -> int | None:
        """Number of slots of a closed loop; None for an open one, and where the load is not known."""
        if self.working_set:
            return self.working_set.in_flight
        return int(self.value) if self.kind == "concurrency" else None
