"""A load point, and how its requests arrive."""

from typing import Annotated, Literal

from harness.model.record import UNSET, Record, UnsetType, doc

LoadKind = Literal["concurrency", "rate", "trace"]


class LoadPoint(Record, frozen=True, order=True):
    """Requests in flight, requests per second, or times the trace's own pace."""

    kind: Annotated[LoadKind, doc("Closed loop, open loop, or the replay of a trace.")]
    value: Annotated[int | float, doc("Requests in flight, requests per second, or times the trace's pace.")]

    @property
    def label(self) -> str:
        """`c8`, `r2.5` or `t1`: in cell names."""
        return f"{self.kind[0]}{self.value:g}"


class RateSegment(Record, frozen=True, kw_only=True):
    """A stretch of the rate profile; factors of the load point's rate, linear in between."""

    seconds: Annotated[int | float, doc("Its length.")]
    start: Annotated[int | float, doc("Factor at its start.")]
    end: Annotated[int | float, doc("Factor at its end.")]


class Load(Record, frozen=True, kw_only=True):
    """The load point, and how its requests arrive."""

    kind: Annotated[LoadKind, doc("Closed loop, open loop, or the replay of a trace.")]
    value: Annotated[int | float, doc("Requests in flight, requests per second, or times the trace's pace.")]
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

    @property
    def point(self) -> LoadPoint:
        return LoadPoint(self.kind, self.value)

    @property
    def slots(self) -> int | None:
        """Of a closed loop; None for an open one."""
        return int(self.value) if self.kind == "concurrency" else None
