"""Whether the backends answered alike, as tables: for the terminal, for Markdown and for the page."""

from harness.model import Agreement, Summary, ValuesAgreement
from harness.report.text import NOT_KNOWN, Table, plain

_CHANGES = ("same", "reworded", "truncated", "repeated", "garbled", "empty", "failed")


def agreement_tables(summary: Summary) -> list[Table]:
    """Empty where the questions were not put."""
    agreement = summary.agreement
    if not agreement:
        return []
    if agreement.values:
        return [_values(agreement.values)]
    tables = [_right(agreement), _under_load(agreement)]
    return [*tables, _pairs(agreement)] if agreement.pairs else tables


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
    most = max(backend.saturated.concurrency for backend in agreement.backends.values())
    return Table(
        f"the same, {most} at once: right, and what became of the answers",
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
