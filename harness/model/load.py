"""A load point, and how its requests arrive."""

from typing import Annotated, Literal

from harness.model.record import UNSET, Record, UnsetType, doc

LoadKind = Literal["concurrency", "rate", "trace", "working-set"]
KIND = "Closed loop, open loop, the replay of a trace, or a closed loop over a working set."
VALUE = "Requests in flight, requests per second, times the trace's pace, or times the KV cache."


class LoadPoint(Record, frozen=True, order=True):
    """One setting of the load; its kind says what the value counts."""

    kind: Annotated[LoadKind, doc(KIND)]
    value: Annotated[int | float, doc(VALUE)]

    @property
    def label(self) -> str:
        """`c8`, `r2.5`, `t1` or `w0.5`: in cell names."""
        return f"{self.kind[0]}{self.value:g}"


class RateSegment(Record, frozen=True, kw_only=True):
    """A stretch of the rate profile; factors of the load point's rate, linear in between."""

    seconds: Annotated[int | float, doc("Its length.")]
    start: Annotated[int | float, doc("Factor at its start.")]
    end: Annotated[int | float, doc("Factor at its end.")]


class WorkingSet(Record, frozen=True, kw_only=True):
    """Prefixes that a closed loop asks for between two uses of the same one."""

    prefixes: Annotated[int, doc("That are asked for in turn, or drawn from; each with a tail of its own.")]
    held_tokens: Annotated[int, doc("That a request leaves in a cache, chat template left out.")]
    kv_tokens: Annotated[
        int | None, doc("That this engine's KV cache holds, as it reports; null: it does not.")
    ]
    in_flight: Annotated[int, doc("Requests at once.")]
    rest_s: Annotated[int | float, doc("For which nothing was sent before the measured part, s.")]


class Load(Record, frozen=True, kw_only=True):
    """The load point, and how its requests arrive."""

    kind: Annotated[LoadKind, doc(KIND)]
    value: Annotated[int | float, doc(VALUE)]
    arrival: Annotated[str | UnsetType | None, doc("Open loop: the arrival process.")] = UNSET
    burstiness: Annotated[float | UnsetType | None, doc("Shape of gamma arrivals; 1 is Poisson.")] = UNSET
    profile: Annotated[
        tuple[RateSegment, ...] | UnsetType, doc("Parts of the run with rates of their own.")
    ] = UNSET
    over_cap: Annotated[str | UnsetType | None, doc("Open loop: what becomes of requests over the cap.")] = (
        UNSET
    )
    think_time_s: Annotated[float | UnsetType, doc("Mean wait of a slot before it sends again, s.")] = UNSET
    start: Annotated[str | UnsetType | None, doc("Closed loop: slots began spread, or together.")] = UNSET
    start_declared: Annotated[str | UnsetType | None, doc("The scenario's [load] start.")] = UNSET
    working_set: Annotated[WorkingSet | UnsetType, doc("Of a load point that is one.")] = UNSET

    @property
    def point(self) -> LoadPoint:
        return LoadPoint(self.kind, self.value)

    @property
    def slots(self) -> int | None:
        """Number of slots of a closed loop; None for an open one."""
        if self.working_set:
            return self.working_set.in_flight
        return int(self.value) if self.kind == "concurrency" else None
