"""A rule: one way in which the figures of a cell may not be the server's."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

from harness.metrics.sample_size import sample
from harness.metrics.view import Figures, RequestView
from harness.model import (
    UNSET,
    Answers,
    Cause,
    CellFacts,
    ClientStats,
    Doubt,
    IssueCode,
    Law,
    Load,
    Reason,
    State,
    SteadyState,
    UnsetType,
    known,
)
from harness.model.change import DURATION, LONGER, REQUESTS, Flags, advised
from harness.model.numbers import counted
from harness.records.layout import Phase, Records
from harness.records.request_table import RequestTable

_ROOM = 1.2  # times the duration that would have been enough: the next cell may be slower
LONGEST_AGAIN_S = 1_800.0  # of a cell that is measured again: a soak of hours is its user's to begin again


@dataclass(frozen=True, slots=True)
class Evidence:
    """The input of the rules; what is None is not judged.

    watched: what was measured of machine and engine during the load. answers: what the answers were worth.
    laws: those of metrics/conservation.py. ledger_agrees: of `bench doctor`, whether the scripted server
    tells of the same requests.
    """

    view: RequestView
    facts: CellFacts
    hit_rate: float | None = None
    requested: RequestTable | None = None
    watched: Figures | None = None
    steady: SteadyState | None = None
    state: State | None = None
    answers: Answers | None = None
    laws: Sequence[Law] = ()
    ledger_agrees: bool | None = None

    @property
    def records(self) -> Records:
        return self.view.records

    @property
    def client(self) -> ClientStats:
        return self.facts.client

    @property
    def load(self) -> Load:
        return self.facts.load

    def longer(self, violation: "Violation", requests: int | None, times: float | None = None) -> "Violation":
        """Adds the advice to measure more, after the own hint if there is one: what ended this cell decides.

        So many measured `requests` would do, or `times` as long a cell; None: not known.
        """
        facts, asked = self.facts, self.facts.minimum
        needed: int | UnsetType = UNSET
        change: Flags | UnsetType = UNSET
        phases = Counter(self.view.requests["phase"].tolist())
        sent = phases[Phase.MEASURE]
        enough = -(-(requests or 0) * (sent + phases[Phase.IMPATIENT]) // max(sent, 1))
        held = None if asked is None else asked.held
        wanted = (asked.requests if asked else None) or 0
        ended_s = asked.duration_s if asked is not None and facts.unsent else None
        if facts.planned < wanted:  # all of the file
            held, enough = facts.planned, enough if ended_s else max(enough, wanted)
        hint = "measure longer"
        if facts.interrupted:
            hint = "the cell was cut short: `bench resume` measures it again"
        elif 2 * len(self.view.answers) < sent:
            hint = "most requests got no answer: see to that first"
        elif held is not None and enough > held:
            needed = enough
            hint = f"its file holds only {counted(held, 'request')} for this load: use a longer one"
        elif ended_s:
            times = times or (requests / max(sent, 1) if requests else None)
            change = {DURATION: math.ceil((_ROOM * times if times else LONGER) * ended_s)}
            if facts.planned < enough:  # these would end the load
                change = {REQUESTS: enough, **change}
        elif enough:
            needed, change = enough, {REQUESTS: enough, **self._time_for(enough / max(sent, 1))}
        else:
            hint += ": raise --requests"
        return violation._replace(hint=f"{violation.hint or ''}{hint}", requests_needed=needed, change=change)

    def _time_for(self, times: float) -> Flags:
        """The duration, which leaves out the warm-up, of so many times the requests, where that of this cell
        would cut them.
        """
        asked_s = self.facts.minimum.duration_s if self.facts.minimum else None
        needed_s = math.ceil(_ROOM * times * sample(self.view, None).seconds)
        return {DURATION: needed_s} if asked_s and needed_s > asked_s else {}


class Violation(NamedTuple):
    """One broken limit; fields that are None take the rule's. `hint`: without the flags of `change`."""

    measured: str
    limit: str | None = None
    hint: str | None = None
    verdict: Doubt | None = None
    metrics: tuple[str, ...] | None = None
    failure: str | UnsetType = UNSET
    requests_needed: int | UnsetType = UNSET
    change: Flags | UnsetType = UNSET
    cause: Cause | UnsetType = UNSET
    explains: tuple[IssueCode, ...] | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One limit; `@partial(Rule, code=..., ...)` makes one of the function that finds what breaks it.

    measures, limit, hint: in words, for the documentation; with unit, and where they do not depend on the
    cell also for its reasons. verdicts: what it can make of a cell, the lesser first.

    eases: it can make a load look easier than it is, so a capacity search does not count such a cell as kept.
    certain: nothing that the load generator does can cause it.
    explains: rules that it breaks as well, with no cause of their own, where its verdict is the gravest of
    its own; `judge` leaves these out. A lesser doubt is too small to be the cause of theirs.
    metrics: names of those that it makes doubtful; () stands for all.
    """

    find: Callable[[Evidence], Iterable[Violation]]
    _: KW_ONLY
    code: IssueCode
    measures: str
    limit: str
    verdicts: tuple[Doubt, ...] = ("SUSPECT",)
    hint: str
    cause: Cause
    eases: bool = False
    certain: bool = False
    explains: tuple[IssueCode, ...] = ()
    metrics: tuple[str, ...] = ()

    def reasons(self, cell: Evidence) -> Iterator[tuple[Reason, tuple[IssueCode, ...]]]:
        """Yields a reason for each violation, and the rules that it explains."""
        for violation in self.find(cell):
            reason = Reason(
                self.code,
                violation.verdict or self.verdicts[0],
                violation.measured,
                violation.limit or self.limit,
                advised(violation.hint, known(violation.change) or {}) if violation.hint else self.hint,
                self.metrics if violation.metrics is None else violation.metrics,
                violation.failure,
                violation.requests_needed,
                violation.change,
                violation.cause,
            )
            explains = self.explains if violation.explains is None else violation.explains
            yield reason, explains if reason.verdict == self.verdicts[-1] else ()
