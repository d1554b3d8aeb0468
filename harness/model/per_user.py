"""Parts of summary.json about what backends carry at equal speed per user."""

from typing import Annotated, Literal

from harness.model.comparison import Interval
from harness.model.load import LoadKind, LoadPoint
from harness.model.record import Record, doc

SpeedVerdict = Literal["more", "fewer", "same", "undecided", "not comparable"]
Reach = Literal["within", "never so fast", "faster at every load", "not in every repeat"]


class SpeedFigure(Record, frozen=True, kw_only=True):
    """Output tokens/s of one backend at one speed per user, interpolated between its loads."""

    label: Annotated[str, doc("Label of the backend.")]
    reach: Annotated[Reach, doc("Position of the speed on the curve of this backend.")]
    loads: Annotated[
        tuple[LoadPoint, ...], doc("Loads that the figure is read between; empty: outside the curve.")
    ] = ()
    tokens_per_s: Annotated[
        float | None, doc("Output tokens/s, geometric mean of the repeats; null: outside the curve.")
    ] = None
    interval: Annotated[
        Interval | None,
        doc("95% interval with the error of interpolation; null: too few repeats, or outside the curve."),
    ] = None


class SpeedPair(Record, frozen=True, kw_only=True):
    """Verdict about `a` against `b` in output tokens/s at one speed per user."""

    a: Annotated[str, doc("Label of the backend that the verdict is about.")]
    b: Annotated[str, doc("Label of the backend that a is compared with.")]
    verdict: Annotated[SpeedVerdict, doc("Whether a carries more or fewer tokens/s than b at this speed.")]
    ratio: Annotated[
        Interval | None,
        doc("Ratio a / b, the error of interpolation included: low, estimate, high; null: not computed."),
    ] = None
    p_holm: Annotated[
        float | None, doc("Holm-adjusted p of the hypothesis: difference within the floor; null: not tested.")
    ] = None
    why: Annotated[str, doc("Reason why there is no verdict, in words; empty: there is one.")] = ""


class SpeedLevel(Record, frozen=True, kw_only=True):
    """What each backend carries at one speed per user, over the loads of a run."""

    kind: Annotated[LoadKind, doc("Kind of the loads: concurrency or rate.")]
    tokens_per_s_per_user: Annotated[
        float, doc("Speed per user: output tokens/s of one stream, 1000 / TPOT p50 in ms.")
    ]
    per: Annotated[
        Literal["GPU", "machine"],
        doc("Owner of the tokens/s: GPU where the GPUs of every backend are known, else machine."),
    ]
    figures: Annotated[tuple[SpeedFigure, ...], doc("Figures, one per backend.")]
    pairs: Annotated[tuple[SpeedPair, ...], doc("Verdicts, one per pair whose curves hold this speed.")]
