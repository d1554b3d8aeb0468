"""A rule: one way in which the figures of a cell may not be the server's."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, NamedTuple

from harness.metrics.view import Figures, RequestView
from harness.model import (
    UNSET,
    Answers,
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
)
from harness.model.numbers import counted
from harness.records.layout import Phase, Records
from harness.records.request_table import RequestTable

# engine: the run failed, which counts against the engine. client and machine: nothing about the engine, so
# an INVALID cell is measured again. work: of what was asked; measuring again is no better.
Cause = Literal["engine", "client", "machine", "work"]
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

    def more(self, requests: int | None) -> tuple[str, int | UnsetType]:
        """Advice to measure more, and the requests that it is about: what ended this cell decides.

        So many measured `requests` would do; None: not known.
        """
        facts, asked = self.facts, self.facts.minimum
        phases = Counter(self.view.requests["phase"].tolist())
        sent = phases[Phase.MEASURE]
        if 2 * len(self.view.answers) < sent and not facts.interrupted:
            return "most requests got no answer: see to that first", UNSET
        if requests:
            with_impatient = phases[Phase.MEASURE] + phases[Phase.IMPATIENT]
            requests = -(-requests * with_impatient // max(sent, 1))
        if facts.interrupted:
            return "the cell was cut short: `bench resume` measures it again", UNSET
        held = None if asked is None else asked.held
        if asked is not None and asked.duration_s is not None and facts.unsent:
            return "measure longer: --duration", UNSET
        if asked is not None and asked.requests and facts.planned < asked.requests:
            held, requests = facts.planned, max(requests or 0, asked.requests)
        if not requests:
            return "measure longer: raise --requests", UNSET
        if held is not None and requests > held:
            return f"its file holds only {counted(held, 'request')} for this load: use a longer one", requests
        return f"measure longer: --requests {requests}", requests


class Violation(NamedTuple):
    """One broken limit; fields that are None take the rule's."""

    measured: str
    limit: str | None = None
    hint: str | None = None
    verdict: Doubt | None = None
    metrics: tuple[str, ...] | None = None
    failure: str | UnsetType = UNSET
    requests_needed: int | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class Rule:
    """One limit; `@partial(Rule, code=..., ...)` makes one of the function that finds what breaks it.

    measures, limit, hint: in words, for the documentation; with unit, and where they do not depend on the
    cell also for its reasons. verdicts: what it can make of a cell, the lesser first.

    eases: it can make a load look easier than it is, so a capacity search does not count such a cell as kept.
    certain: nothing that the load generator does can cause it.
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
    metrics: tuple[str, ...] = ()

    def reasons(self, cell: Evidence) -> Iterator[Reason]:
        for violation in self.find(cell):
            yield Reason(
                self.code,
                violation.verdict or self.verdicts[0],
                violation.measured,
                violation.limit or self.limit,
                violation.hint or self.hint,
                self.metrics if violation.metrics is None else violation.metrics,
                violation.failure,
                violation.requests_needed,
            )
