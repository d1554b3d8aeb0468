"""Page docs/validity.md: the rules of cells and the notices of runs."""

import re
from collections.abc import Iterator

from harness.errors import DOCUMENTATION
from harness.model.metric_table import METRICS
from harness.validity import FAMILIES, RULES
from harness.validity.notices import NOTICES

HEAD = """# Validity: what may be wrong with a cell or a run

This page lists every code that a cell or a run can carry: what is measured, its limit, and what to do.

| verdict of a cell | its figures |
|---|---|
| VALID | can be used |
| SUSPECT | can be used with the stated doubt |
| INVALID | are withheld, and `bench run` exits with 4 |

INVALID figures may be the client's and not the server's, or describe too few successes to mean anything.
A rule with "alone" next to its verdict makes these metrics doubtful and no others.
A figure at its limit keeps it; `contended`, `stolen-time` and the start in `ramp-kept` begin at theirs.
The cause of an INVALID cell decides what follows:

| cause | what follows |
|---|---|
| engine | the run failed, which counts against the engine ([verdicts.md](verdicts.md#runs-that-fail)) |
| client, machine | it is measured again, at most twice, unless it took more than half an hour |
| either | other clients used the engine, or its counts are wrong; it is measured again likewise |
| work | it is about what was asked for, or a habit or count of the server, so measuring again is no better |

Of several causes an engine that died or restarted comes first, then a machine that stood still. After these
come the client, the machine and the engine. The client comes last where its fault only made the load easier:
idle slots fail no request.

A rule explains others where its verdict is the gravest that it has. Their reasons are left out: one reason,
one advice. Usage that is wrong in prompt tokens alone explains none.

| broken | explains |
|---|---|
{explained}

`make pages` makes this page of the rules in `harness/validity`; a test checks that.
[How to add one](contributing/add-a-validity-rule.md) is a page of its own, and so is
[which doubt goes where](contributing/which-doubt.md).
"""
CAPACITY = """## Capacity searches

A probe of `bench run --find-capacity` whose cell is INVALID has not kept the limits. Nor has a long one,
which decides, with a doubt that can make a load look easier than it is.
Of `failed-requests` the limits themselves decide: a failed request is outside of each. `not-steady` counts in
closed loops only. The codes:
"""
RUNS = """## Runs

Warnings of the whole run, in `manifest.json` and `summary.json`. They change no figure.

| code | when | what to do |
|---|---|---|"""


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _linked(text: str) -> str:
    """Addresses of pages as links from this one."""
    return re.sub(rf"{re.escape(DOCUMENTATION)}([\w-]+)\.html(#[\w-]+)?", r"[\1.md](\1.md\2)", text)


def _lines() -> Iterator[str]:
    explained = (
        f"| `{rule.code}` | {', '.join(f'`{code}`' for code in rule.explains)} |"
        for rule in RULES.values()
        if rule.explains
    )
    yield HEAD.format(explained="\n".join(explained))
    for family in FAMILIES:
        title, _, about = (family.__doc__ or "").partition(":")
        yield f"## {title}"
        yield ""
        yield f"{about.strip()[:1].upper()}{about.strip()[1:]}"
        yield ""
        yield "| code | verdict | what is measured | limit | what to do | cause |"
        yield "|---|---|---|---|---|---|"
        for rule in family.RULES:
            about = "".join(f" ({METRICS[name].short} alone)" for name in rule.metrics)
            parts = (", ".join(rule.verdicts) + about, rule.measures, rule.limit, rule.hint, rule.cause)
            yield _linked(f"| `{rule.code}` | {' | '.join(parts)} |")
        yield ""
    yield CAPACITY
    yield ", ".join(f"`{rule.code}`" for rule in RULES.values() if rule.eases) + "."
    yield ""
    yield RUNS
    for notice in NOTICES:
        yield _linked(f"| `{notice.code}` | {notice.when} | {notice.hint or 'the warning says it'} |")
