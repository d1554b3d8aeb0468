"""Rates over the steady part of a cell: after warm-up, before the drain."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.record import GENERATED, UNKNOWN, Outcome, Phase, Records

# The steady window must hold at least this share of the measured answers, else the whole run is taken.
MIN_STEADY_SHARE = 0.5


RATES = ("output_tokens_per_s", "input_tokens_per_s", "requests_per_s", "output_chars_per_s")


@dataclass(frozen=True, slots=True)
class Window:
    start_ns: int
    end_ns: int
    kind: Literal["steady", "whole"]  # whole: too short for a steady part, ramp and drain are mixed in

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.start_ns) / 1e9


def measured_window(requests: NDArray[np.void]) -> Window | None:
    """First measured send to last send: from then on the load drains. None when nothing was answered."""
    sent = requests[requests["sent_ns"] != UNKNOWN]
    answered = sent[(sent["phase"] == Phase.MEASURE) & (sent["outcome"] == Outcome.OK)]
    if not len(answered):
        return None
    start = int(sent["sent_ns"][sent["phase"] == Phase.MEASURE].min())
    last_send = int(sent["sent_ns"].max())
    inside = np.count_nonzero((answered["end_ns"] > start) & (answered["end_ns"] <= last_send))
    if inside >= MIN_STEADY_SHARE * len(answered):
        return Window(start, last_send, "steady")
    return Window(start, int(answered["end_ns"].max()), "whole")


def makespan_s(requests: NDArray[np.void]) -> float | None:
    """From the first measured send to the end of the last measured answer; None where one failed."""
    rows = requests[requests["phase"] == Phase.MEASURE]
    if not len(rows) or (rows["outcome"] != Outcome.OK).any():
        return None
    return float(rows["end_ns"].max() - rows["sent_ns"].min()) / 1e9


def rates(records: Records, window: Window) -> dict[str, float | None]:
    """Everything the server did inside the window, whichever phase the request belonged to.

    An answer's tokens are spread over its text events; input tokens count when the first token comes out.
    """
    requests, events = records.requests, records.events

    def inside(stamps: NDArray[np.int64]) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = (stamps > window.start_ns) & (stamps <= window.end_ns)
        return mask

    good = requests[requests["outcome"] == Outcome.OK]
    text = events[
        np.isin(events["kind"], GENERATED) & inside(events["stamp_ns"]) & np.isin(events["seq"], good["seq"])
    ]
    events_inside = np.bincount(text["seq"], minlength=records.seq_count)[good["seq"]]
    share = events_inside / np.maximum(good["text_events"], 1)
    ended, started = good[inside(good["end_ns"])], good[inside(good["first_text_ns"])]

    def per_second(amount: float) -> float | None:
        return float(amount) / window.seconds if window.seconds > 0 else None

    reported = bool(len(good)) and bool((good["output_tokens"] != UNKNOWN).all())
    prompts_reported = bool(len(started)) and bool((started["prompt_tokens"] != UNKNOWN).all())
    return {
        "output_tokens_per_s": per_second((share * good["output_tokens"]).sum()) if reported else None,
        "input_tokens_per_s": per_second(started["prompt_tokens"].sum()) if prompts_reported else None,
        "requests_per_s": per_second(len(ended)),
        "output_chars_per_s": per_second(text["text_chars"].sum()),
    }
