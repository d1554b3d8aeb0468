"""Figures that only an imported file has."""

from typing import Any

from msgspec.structs import replace

from harness.metrics.distribution import samples_needed
from harness.metrics.reason import OfServer, OfTimes
from harness.model import CellResult, Imported, LatencyStats, Requests
from harness.model.exchanged import KEY
from harness.model.numbers import counted

_NONE = LatencyStats(mean=None, p50=None, p90=None, p95=None, p99=None)
_ONLY_SUMMED = "only what the file says is known"
_LACKING = "the file does not have it"
_LATENCIES = ("ttft_ms", "ttft_service_ms", "itl_ms", "tpot_ms", "e2e_ms")


def with_reported(cell: CellResult, file: Imported | None) -> CellResult:
    """The cell with the figures of the file, and the reasons for the others."""
    if file is None:
        return cell
    unknown = ("output_chars_per_s", "standstill", "prefix_cache_ideal", "tokens_after_hang_up")
    nulls = cell.null_reasons | dict.fromkeys(("requests.resent", *unknown), _LACKING)
    foreign = OfServer if "times" in file.facts else (OfServer, OfTimes)
    nulls |= {path: _LACKING for path, why in nulls.items() if isinstance(why, foreign)}
    figures: dict[str, Any] = dict.fromkeys(unknown) | {"imported": file}
    if "arrivals" not in file.facts:
        nulls |= {path: _LACKING for path in nulls if path.startswith("itl_ms.")}
    if nulls.get("state") == _LACKING:
        figures["state_why"] = _LACKING
    if "times" not in file.facts:
        steady = replace(cell.steady_state, why=_LACKING)
        figures |= {"sample": None, "makespan_s": None, "steady_state": steady}
        if cell.load.slots is not None:
            figures |= {"state": "saturated", "state_why": "each slot sends again at once, as the tool says"}
            nulls.pop("state", None)
    summed = {path.partition(".")[0] for path in file.reported if "." in path}
    answered: int | None = cell.requests.ok
    if file.level == "summary":
        summed, answered = summed.union(_LATENCIES), file.answered
        figures["requests"] = counts = file.requests or _counts(cell, file)
        if counts.resent is not None:
            nulls.pop("requests.resent")
    nulls |= {path: _ONLY_SUMMED for path in nulls if path.partition(".")[0] in summed}
    for path, value in file.reported.items():
        metric, _, statistic = path.partition(".")
        samples = _gaps(file, answered) if metric == "itl_ms" else answered
        if file.tool != KEY and (why := _too_few(statistic, samples)):  # bench exports none of too few
            nulls[path] = why
            continue
        nulls.pop(path, None)
        if statistic:
            figures[metric] = replace(figures.get(metric) or _NONE, **{statistic: value})
        else:
            figures[metric] = value
    return replace(cell, **figures, null_reasons=nulls)


def _gaps(file: Imported, answered: int | None) -> int | None:
    """The most gaps between tokens that its answers may have; None: not known."""
    tokens_per_s, requests_per_s = (
        file.reported.get(rate) for rate in ("output_tokens_per_s", "requests_per_s")
    )
    if answered is None or not tokens_per_s or not requests_per_s:
        return None
    return max(round(answered * (tokens_per_s / requests_per_s - 1)), 0)


def _too_few(statistic: str, samples: int | None) -> str:
    """The reason a percentile of a tool is not shown: here, too, it would need more samples."""
    if not statistic.startswith("p") or samples is None:
        return ""
    needed = samples_needed(int(statistic[1:]))
    return "" if samples >= needed else f"{counted(samples, 'sample')}; {statistic} needs {needed}"


def _counts(cell: CellResult, file: Imported) -> Requests:
    ok, failed = file.answered or 0, file.failed or 0
    outcomes = {name: count for name, count in (("ok", ok), ("http_error", failed)) if count}
    return replace(cell.requests, sent=ok + failed, ok=ok, failed=failed, resent=None, outcomes=outcomes)
