"""Chooses loads that take a given time, for servers of which only a first look is known."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.probe import Look

# Concurrency, output tokens and requests, the most informative first. Enough answers go before more loads
# and longer answers: 32 give a p90, and 8 only a median of a cell that is SUSPECT.
SIZES: tuple[tuple[tuple[int, ...], int, int], ...] = (
    ((1, 4, 16, 64), 64, 256),
    ((1, 4, 16, 32), 64, 128),
    ((1, 4, 16), 64, 64),
    ((1, 4, 8), 64, 32),
    ((1, 4, 8), 32, 32),
    ((1, 4, 8), 16, 32),
    ((1, 4), 16, 32),
    ((1, 4), 8, 32),
    ((1,), 16, 32),
    ((4,), 16, 32),  # costs less than one user where the server batches
    ((1,), 8, 32),
    ((4,), 8, 32),
    ((1, 2), 8, 8),
    ((1,), 8, 8),
)
_COMPARED = 3  # repeats: a verdict needs as many

# Seconds that a run takes in addition to its load.
_REPORT_S = 10.0
_CELL_S = 2.5  # processes, counters, files: on two slow cores
_PROMPT_S = 0.005  # written and counted by the server
_COOL_DOWN_S = 2.0
# Answers and tokens that follow one another in the conformance probe.
_PROBE_ANSWERS, _PROBE_TOKENS = 8, 80
_PROBE_SHARE = 0.15  # of the time: above it the probe is left out
_LATE = 1.5  # a cell whose measured part takes so many times the longest expected cell stops sending
_MOST_MINUTES = 180  # that anybody is asked to wait
_LEAST_TIMEOUT_S, _SCENARIO_TIMEOUT_S = 60, 300


@dataclass(frozen=True, slots=True)
class Loads:
    concurrency: tuple[int, ...]
    requests: int
    output_tokens: int
    repeats: int
    probe: bool
    cell_limit_s: int
    expected_s: float  # of the whole run

    @property
    def timeout_s(self) -> int | None:
        """The limit of one answer; None: the scenario's own. One as long as its cell may be does not come."""
        limit_s = max(_LEAST_TIMEOUT_S, self.cell_limit_s)
        return limit_s if limit_s < _SCENARIO_TIMEOUT_S else None


def fit(looks: Sequence[Look], budget_s: float) -> Loads:
    """The largest loads that are expected to fit into the budget, or the smallest if none fit.

    Several looks are servers to be compared, so each load is repeated.
    """
    repeats = _COMPARED if len(looks) > 1 else 1
    probe_s = sum(_PROBE_ANSWERS * look.ttft_s + _PROBE_TOKENS * look.tpot_s for look in looks)
    probe = probe_s <= _PROBE_SHARE * budget_s
    starts = repeats * len(looks)
    fixed_s = _REPORT_S + (probe_s if probe else 0.0) + (starts - 1) * _COOL_DOWN_S
    loads = None
    for points, output_tokens, requests in SIZES:
        cells = [
            _cell_s(look, concurrency, output_tokens, requests) for look in looks for concurrency in points
        ]
        expected_s = fixed_s + repeats * (sum(cells) + len(points) * requests * _PROMPT_S)
        limit_s = round(_LATE * max(cells)) + 1
        loads = Loads(points, requests, output_tokens, repeats, probe, limit_s, expected_s)
        if expected_s <= budget_s:
            break
    assert loads is not None
    return loads


def short_answers(loads: Loads, looks: Sequence[Look], spent_s: float) -> str:
    """What answers that were cut to fit the time leave open; "" if they are as long as the largest size's.

    `spent_s`: of the time that is given, before the run.
    """
    wanted = SIZES[0][1]
    if loads.output_tokens == wanted:
        return ""
    enough = (m for m in range(1, _MOST_MINUTES + 1) if fit(looks, 60 * m - spent_s).output_tokens == wanted)
    minutes = next(enough, None)
    longer = "" if minutes is None else f"; --minutes {minutes} gives {wanted}"
    return (
        f"answers have {loads.output_tokens} tokens, to fit the time: tokens/s and whole answers of longer "
        f"ones differ{longer}"
    )


def _cell_s(look: Look, concurrency: int, output_tokens: int, requests: int) -> float:
    """Expected time of a cell: warm-up (three waves of several slots), requests, and the last wave."""
    waves = requests / concurrency + (4 if concurrency > 1 else 2)
    return _CELL_S + waves * look.answer_s(output_tokens, concurrency)
