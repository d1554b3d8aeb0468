"""Tells whether the backends answered alike, as tables: for the terminal, for Markdown and for the page."""

from collections.abc import Iterator

from harness.model import (
    AccuracyChange,
    Agreement,
    ConditionAgreement,
    Interval,
    Summary,
    ValuesAgreement,
    known,
)
from harness.report.wording import NOT_KNOWN, Table, plain

MANY = 200  # questions, from which a loss of accuracy is looked for
_CHANGES = ("same", "reworded", "truncated", "repeated", "garbled", "empty", "failed")


def agreement_tables(summary: Summary) -> list[Table]:
    """Empty where the questions were not put."""
    agreement = summary.agreement
    if not agreement:
        return []
    if agreement.values:
        return [_values(agreement.values)]
    tables = [_right(agreement), _under_load(agreement)]
    if agreement.questions >= MANY:
        tables += [_shares(agreement), _accuracy(agreement)]
    return [*tables, _pairs(agreement)] if agreement.pairs else tables


def accuracy_lines(summary: Summary) -> Iterator[str]:
    """Yields who lost or gained accuracy; what is as accurate, or undecided, where many questions were
    asked for.
    """
    agreement = summary.agreement
    if agreement is None or agreement.values:
        return
    for one in agreement.accuracy:
        decided = one.verdict in ("loses", "gains")
        if decided or (agreement.questions >= MANY and (one.a != one.b or one.verdict == "undecided")):
            yield plain(f"accuracy, {_condition(agreement, one)}: {_between(one)}")


def against_first(agreement: Agreement, label: str) -> str:
    """`loses 3.1 to 8.4 points against vllm (…)`, one at a time; "" of the first backend."""
    first = next(iter(agreement.backends))
    for one in agreement.accuracy:
        if (one.a, one.b, one.under_load) == (first, label, False):
            return f"{one.words} against {first}"
    return ""


def _between(one: AccuracyChange) -> str:
    if one.a == one.b:
        return f"{one.b} {one.words}, against itself one at a time"
    return f"{one.b} against {one.a}: {one.words}"


def _condition(agreement: Agreement, one: AccuracyChange) -> str:
    told = agreement.backends[one.b]
    return _where(told.saturated) if one.under_load else "one at a time"


def _where(told: ConditionAgreement) -> str:
    """`48 at once`, or `between requests of c8`."""
    load = known(told.load)
    return f"between requests of {load.label}" if load else f"{told.concurrency} at once"


def _shares(agreement: Agreement) -> Table:
    rows = []
    for label, backend in agreement.backends.items():
        shares = (_percent(known(one.accuracy)) for one in (backend.unloaded, backend.saturated))
        rows.append([plain(label), *shares])
    loaded = next(_where(one.saturated) for one in agreement.backends.values())
    return Table("accuracy: % right, with 95 % intervals", ["backend", "one at a time", loaded], rows)


def _accuracy(agreement: Agreement) -> Table:
    rows = []
    for one in agreement.accuracy:
        low, _, high = (f"{100 * end:+.1f}" for end in one.change)
        of = f"{one.b} / itself" if one.a == one.b else f"{one.b} / {one.a}"
        counts = [str(one.compared), str(one.lost), str(one.gained), f"{low} to {high}", one.verdict]
        rows.append([plain(f"{of}, {_condition(agreement, one)}"), *counts])
    return Table(
        "accuracy: the first against the second, over the same questions",
        ["between", "compared", "lost", "gained", "points", "verdict"],
        rows,
    )


def _percent(share: Interval | None) -> str:
    if share is None:
        return NOT_KNOWN
    low, middle, high = (100 * end for end in share)
    return f"{middle:.0f} ({low:.0f} to {high:.0f})"


def _right(agreement: Agreement) -> Table:
    kinds = list(agreement.kinds)
    rows = []
    for label, backend in agreement.backends.items():
        told = backend.unloaded
        by_kind = (told.by_kind.get(kind) for kind in kinds)
        shares = [f"{kind.right}/{kind.asked}" if kind else NOT_KNOWN for kind in by_kind]
        rows.append([plain(label), f"{told.right}/{told.asked}", *shares])
    title = f"answers to {agreement.questions} questions, one at a time, greedy: right"
    return Table(title, ["backend", "all", *kinds], rows)


def _values(values: ValuesAgreement) -> Table:
    rows = []
    for pair in values.pairs:
        of = f"{pair.a}, alone / in a batch" if pair.a == pair.b else f"{pair.a} / {pair.b}"
        least, middle = (NOT_KNOWN if one is None else f"{one:.6f}" for one in (pair.least, pair.median))
        rows.append([plain(of), str(pair.compared), least, middle, "yes" if pair.alike else "NO"])
    measure = values.pairs[0].measure if values.pairs else ""
    what = "texts" if values.gives == "vectors" else "queries"
    title = f"{values.gives} of {values.texts} {what}: {measure}"
    return Table(title, ["between", what, "least", "median", "alike"], rows)


def _under_load(agreement: Agreement) -> Table:
    rows = []
    for label, backend in agreement.backends.items():
        told = backend.saturated
        changes = [str(backend.under_load.get(name, 0)) for name in _CHANGES]
        rows.append([plain(label), f"{told.right}/{told.asked}", *changes])
    told = max((one.saturated for one in agreement.backends.values()), key=lambda one: one.concurrency)
    return Table(
        f"the same, {_where(told)}: right, and what became of the answers",
        ["backend", "right", *_CHANGES],
        rows,
    )


def _pairs(agreement: Agreement) -> Table:
    rows = []
    for pair in agreement.pairs:
        known = pair.prompt_tokens_compared
        chance = NOT_KNOWN if pair.p_value is None else f"{pair.p_value:.2g}"
        rows.append(
            [
                plain(f"{pair.a} / {pair.b}"),
                f"{pair.same_text}/{pair.compared}",
                str(pair.both_right),
                str(pair.only_a_right),
                str(pair.only_b_right),
                str(pair.both_wrong),
                chance,
                f"{pair.prompt_tokens_equal}/{known}" if known else NOT_KNOWN,
            ]
        )
    head = [
        "first / second",
        "same answer",
        "both right",
        "only first",
        "only second",
        "neither",
        "p",
        "equal prompt tokens",
    ]
    return Table("between backends, one at a time (p: chance of so uneven a split)", head, rows)
