"""Whether answers are right: labels, structured output, tool calls."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from harness.metrics.answer_check import TRUNCATED, UNJUDGED, VALID, judge
from harness.metrics.latency import tpot_ms
from harness.metrics.reason import NO_ANSWER, OfServer
from harness.metrics.view import CellView, Figures, Floats, Mask, RequestView, Rows
from harness.model import Answers, Constraint, Counts
from harness.model.numbers import most_first
from harness.records.layout import UNKNOWN, Outcome, Records, content
from harness.records.request_table import FREE, Expected, RequestTable

REFUSED = "refused"  # a status from 400 to 499, or an error in the stream before any text
FAILED = "failed"  # no whole answer for another reason
# By check: its rate, and the reason it is null where no request has the check.
_RATES = {
    "label": ("label_accuracy", "no label is expected"),
    "structured": ("structured_valid_rate", "no structured output is requested"),
    "tool_call": ("tool_call_valid_rate", "no tool call is expected"),
}
_COUNTED_APART = (TRUNCATED, UNJUDGED, REFUSED, FAILED)  # these enter no rate
SHAPES = ("json_schema", "json_object", "regex", "choice", "grammar")  # kinds of constrained requests
# Statuses that say who asks, where, when or how often, and nothing of the request's fields.
_NOT_FOR_FORM = (401, 403, 404, 408, 409, 425, 429)
_REASONS = 20  # of refusals, the most frequent
_MOST_ENDLESS = 4  # answers of a cell that take too long to judge; those after them stay unjudged
_VARYING = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|\{.*\}|\[.*\]|\d+""", re.DOTALL)


def compute(cell: CellView) -> Figures:
    found = quality(cell, cell.requested, left_out=cell.facts.request.unsupported)
    nulls = {
        rate: _why_unknown(check, cell.requested, found.answers)
        for check, (rate, _) in _RATES.items()
        if found.by_key[rate] is None
    }
    return Figures(nulls, **found.by_key)


def quality(view: RequestView, requested: RequestTable | None, left_out: Iterable[str] = ()) -> Figures:
    """The rates, None where nothing was expected, and `answers`: counts by check and kind of request.

    A rate is of the measured answers that were whole, not cut off and could be judged. `left_out` names as
    `structured.SHAPE` what the engine has no field for: such answers are counted, and enter no rate.
    """
    if requested is None or not requested.expectations:
        return Figures(answers=None, constraint=None, **dict.fromkeys(rate for rate, _ in _RATES.values()))
    free = {name.removeprefix("structured.") for name in left_out} | {FREE}
    counts: dict[str, dict[str, Counter[str]]] = {}
    refusals: Counter[str] = Counter()
    for check, kind, verdict, error in _judged(view, requested):
        counts.setdefault(check, {}).setdefault(kind, Counter())[verdict] += 1
        if verdict == REFUSED:
            refusals[_reason(error)] += 1
    rates = {
        check: _rate(sum((count for kind, count in kinds.items() if kind not in free), Counter[str]()))
        for check, kinds in counts.items()
    }
    by_check = {
        check: {kind: _as_json(count, constrained=kind not in free) for kind, count in sorted(kinds.items())}
        for check, kinds in counts.items()
    }
    return Figures(
        label_accuracy=rates.get("label"),
        structured_valid_rate=rates.get("structured"),
        tool_call_valid_rate=rates.get("tool_call"),
        answers=Answers(refusals=dict(most_first(refusals)[:_REASONS]), **by_check),
        constraint=_constraint(view, requested, free),
    )


def _why_unknown(check: str, requested: RequestTable | None, answers: Answers | None) -> str:
    """The reason that the rate of a check is null."""
    if requested is None:
        return OfServer("what was expected of the answers was not kept")
    if all(_check_of(expected) != check for expected in requested.expectations):
        return _RATES[check][1]
    kinds = answers.checks.get(check) if answers else None
    if not kinds:
        return NO_ANSWER
    constrained = [counts for counts in kinds.values() if counts["constrained"]]
    if not constrained:
        lacking = ", ".join(kind for kind in kinds if kind != FREE)
        return f"the engine has no field for {lacking}" if lacking else "no constrained request was measured"
    counted = {name: sum(int(counts.get(name) or 0) for counts in constrained) for name in _COUNTED_APART}
    apart = ", ".join(f"{count} {name}" for name, count in counted.items() if count)
    return f"no answer came whole and could be judged: {apart}"


def unanswered(requests: Rows, requested: RequestTable | None) -> Mask:
    """Requests that the server owes an answer: those that failed or were dropped, without `form_refused` and
    without those that the load generator had no socket for.
    """
    ended = np.isin(requests["outcome"], (Outcome.OK, Outcome.NO_SOCKET))
    mask: Mask = ~ended & ~form_refused(requests, requested)
    return mask


def form_refused(requests: Rows, requested: RequestTable | None) -> Mask:
    """Requests that the engine refused for their constraint or another field."""
    if requested is None:
        return np.zeros(len(requests), bool)
    shaped = np.isin(requested.kinds_of(requests["seq"]), SHAPES)
    for_form = ~np.isin(requests["http_status"], _NOT_FOR_FORM)
    mask: Mask = shaped & _refused(requests) & for_form
    return mask


def _refused(requests: Rows) -> Mask:
    at_once = (requests["outcome"] == Outcome.STREAM_ERROR) & (requests["first_text_ns"] == UNKNOWN)
    status = requests["http_status"]
    mask: Mask = at_once | ((status >= 400) & (status < 500))
    return mask


def _judged(view: RequestView, requested: RequestTable) -> Iterator[tuple[str, str, str, str]]:
    """Check, kind, verdict and error of every measured request that an answer is expected of."""
    records, rows, events = view.records, view.requests, view.records.events
    refused = _refused(rows)
    endless = 0
    bounds = np.searchsorted(events["seq"], [rows["seq"], rows["seq"] + 1])
    for row in np.flatnonzero(view.measured).tolist():
        seq = rows["seq"][row]
        which = requested.numbers["expected"][seq]
        if which < 0:
            continue
        expected: Expected = requested.expectations[which]
        check = _check_of(expected)
        kind = requested.kinds[seq] if check == "structured" else check
        verdict = REFUSED if refused[row] else FAILED
        if rows["outcome"][row] == Outcome.OK or _only_called(records, row):
            answer = content(events[slice(*bounds[:, row])], records.texts[row])
            calls = records.tool_calls[row] if records.tool_calls else ""
            given_up = endless == _MOST_ENDLESS and expected.check not in ("label", "choice")
            try:
                verdict = (
                    UNJUDGED if given_up else judge(expected, answer, calls, _end(records, requested, row))
                )
            except TimeoutError:
                endless += 1
                verdict = UNJUDGED
        yield check, kind, verdict, records.errors[row]


def _end(records: Records, requested: RequestTable, row: int) -> str:
    """The finish reason. Where the server sent none, an answer as long as was allowed was cut off.

    The status `completed` of responses is none: llama.cpp has it for answers that their limit cut, too.
    """
    answer, reason = records.requests[row], records.finish_reasons[row]
    allowed = requested.numbers["max_tokens"][answer["seq"]]
    cut = 0 < allowed <= answer["output_tokens"]
    return "length" if cut and reason in ("", "completed") else reason


def _check_of(expected: Expected) -> str:
    return expected.check if expected.check in _RATES else "structured"


def _only_called(records: Records, row: int) -> bool:
    """A call without arguments is a whole answer, though no text."""
    called = bool(records.tool_calls) and bool(records.tool_calls[row])
    return called and bool(records.requests["outcome"][row] == Outcome.EMPTY)


def _rate(count: "Counter[str]") -> float | None:
    judged = count.total() - sum(count[verdict] for verdict in _COUNTED_APART)
    return count[VALID] / judged if judged else None


def _as_json(count: "Counter[str]", *, constrained: bool) -> Counts:
    known = {"constrained": constrained, "asked": count.total(), "rate": _rate(count)}
    return {**known, **dict(sorted(count.items()))}


def _reason(error: str) -> str:
    """The error text without what differs from request to request."""
    return " ".join(_VARYING.sub("…", error).split())[:120]


def _constraint(view: RequestView, requested: RequestTable, free: set[str]) -> Constraint | None:
    """The cost of constraining: the first answer to each schema against later ones, and TPOT against free
    answers."""
    rows = view.answers
    kinds = requested.kinds_of(rows["seq"])
    constrained = ~np.isin(kinds, [*free, ""])
    if not constrained.any() or not (kinds == FREE).any():
        return None
    schemas = rows[constrained & (kinds == "json_schema")]
    schemas = schemas[np.argsort(schemas["sent_ns"])]
    waits_ms = (schemas["first_text_ns"] - schemas["sent_ns"]) / 1e6
    waits_ms[schemas["first_text_ns"] == UNKNOWN] = np.inf
    first = np.zeros(len(schemas), bool)
    first[np.unique(requested.numbers["expected"][schemas["seq"]], return_index=True)[1]] = True
    tpot = {
        name: _median(tpot_ms(view.without_events(np.isin(view.requests["seq"], rows["seq"][mask]))))
        for name, mask in (("free", kinds == FREE), ("on", constrained))
    }
    return Constraint(
        first_use_ttft_ms=_median(waits_ms[first]),
        later_ttft_ms=_median(waits_ms[~first]),
        first_uses=int(first.sum()),
        later_uses=int((~first).sum()),
        tpot_ratio=tpot["on"] / tpot["free"] if tpot["on"] and tpot["free"] else None,
    )


def _median(values: Floats) -> float | None:
    return float(np.median(values)) if len(values) and np.isfinite(np.median(values)) else None
