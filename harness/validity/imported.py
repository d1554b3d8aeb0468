"""Files of other tools: their client was not watched, and they lack what some rules need."""

from collections.abc import Iterator, Mapping
from functools import partial

from msgspec.structs import replace

from harness.errors import page_address
from harness.model import UNSET, Fact, Imported, IssueCode, Reason
from harness.validity.rule import Evidence, Rule, Violation

# What a rule looks at. A rule that is not here needs what only bench records: its client, what it asked,
# the engine and the machine.
NEEDS: Mapping[IssueCode, frozenset[Fact]] = {
    IssueCode.CLIENT_UNVERIFIED: frozenset(),
    IssueCode.FAILED_REQUESTS: frozenset({"outcomes"}),
    IssueCode.TOO_FEW_SAMPLES: frozenset({"answers"}),
    IssueCode.TOO_SHORT: frozenset({"times"}),
    IssueCode.SCHEDULE_LAG: frozenset({"due"}),
    IssueCode.RATE_MISSED: frozenset({"times", "load"}),
    IssueCode.FEW_WAVES: frozenset({"times", "load"}),
    IssueCode.SLOT_IDLE: frozenset({"times", "load"}),
    IssueCode.LOCKSTEP: frozenset({"times", "load"}),
    IssueCode.NOT_STEADY: frozenset({"times"}),
    IssueCode.RAMP_KEPT: frozenset({"times"}),
    IssueCode.DOES_NOT_ADD_UP: frozenset({"times"}),
    IssueCode.ITL_MERGED: frozenset({"arrivals"}),
    IssueCode.NOT_STREAMED: frozenset({"tokens", "arrivals"}),
    IssueCode.USAGE_IMPLAUSIBLE: frozenset({"tokens", "arrivals"}),
    IssueCode.USAGE_MISSING: frozenset({"tokens"}),
    IssueCode.OUTPUT_LENGTH: frozenset({"tokens", "asked"}),
}


def applies(code: IssueCode, file: Imported | None) -> bool:
    """Whether the rule has what it needs. Every rule applies to what bench measured."""
    return file is None or (code in NEEDS and NEEDS[code] <= set(file.facts))


def for_another_client(reason: Reason) -> Reason:
    """The reason with a hint that says whose flags and keys it names. No command measures a file again."""
    if reason.code == IssueCode.CLIENT_UNVERIFIED:
        return reason
    return replace(reason, hint=f"with `bench run`: {reason.hint}", change=UNSET)


@partial(
    Rule,
    code=IssueCode.CLIENT_UNVERIFIED,
    measures="figures from a file of another tool, which does not record how late its client was",
    limit="a client that is watched",
    hint=f"`bench run` on the same server shows how exact the client is: {page_address('import')}",
    cause="client",
)
def _client_unverified(cell: Evidence) -> Iterator[Violation]:
    if cell.facts.imported is not None:
        yield Violation(cell.facts.imported.words)


RULES = (_client_unverified,)
