"""Whether the backends answered alike."""

from harness.model import Agreement, Interval, Summary, ValuesAgreement, known
from harness.model.numbers import percent_apart
from harness.report.findings.accuracy_words import MANY, asked_at, at_once
from harness.report.wording import NOT_KNOWN, Table, plain

_CHANGES = ("same", "reworded", "truncated", "repeated", "garbled", "empty", "failed")


def agreement_tables(summary: Summary) -> list[Table]:
    """Empty if the questions were not asked."""
    agreement = summary.agreement
    if not agreement:
        return []
    if agreement.values:
        return [_values(agreement.values)]
    tables = [_right(agreement), _under_load(agreement)]
    if agreement.questions >= MANY:
        tables += [_shares(agreement), *([_accuracy(agreement)] if agreement.accuracy else [])]
    return [*tables, _pairs(agreement)] if agreement.pairs else tables


def _most_at_once(agreement: Agreement) -> str:
    """A slow engine is asked only what it answered before, so that fewer are in flight."""
    loaded = (backend.saturated for backend in agreement.backends.values())
    return at_once(max(loaded, key=lambda condition: condition.concurrency))


def _shares(agreement: Agreement) -> Table:
    rows = []
    for label, backend in agreement.backends.items():
        shares = (_percent(known(condition.accuracy)) for condition in (backend.unloaded, backend.saturated))
        rows.append([plain(label), *shares])
    head = ["backend", "one at a time", _most_at_once(agreement)]
    return Table("accuracy: % right, with 95% intervals", head, rows)


def _accuracy(agreement: Agreement) -> Table:
    rows = []
    for change in agreement.accuracy:
        low, high = change.ends
        subject = f"{change.b} / itself" if change.a == change.b else f"{change.b} / {change.a}"
        counts = map(str, (change.compared, change.lost, change.gained))
        between = plain(f"{subject}, {asked_at(agreement, change)}")
        rows.append([between, *counts, f"{low} to {high}", change.verdict])
    title = "accuracy: the first against the second, over the same questions"
    return Table(title, ["between", "compared", "lost", "gained", "points", "verdict"], rows)


def _percent(share: Interval | None) -> str:
    if share is None:
        return NOT_KNOWN
    low, middle, high = map(percent_apart, share)
    return f"{middle} ({low} to {high})"


def _right(agreement: Agreement) -> Table:
    kinds = list(agreement.kinds)
    rows = []
    for label, backend in agreement.backends.items():
        answers = backend.unloaded
        by_kind = (answers.by_kind.get(kind) for kind in kinds)
        shares = [f"{kind.right}/{kind.asked}" if kind else NOT_KNOWN for kind in by_kind]
        rows.append([plain(label), f"{answers.right}/{answers.asked}", *shares])
    title = f"answers to {agreement.questions} questions, one at a time, greedy: right"
    return Table(title, ["backend", "all", *kinds], rows)


def _values(values: ValuesAgreement) -> Table:
    rows = []
    for pair in values.pairs:
        subject = f"{pair.a}, alone / in a batch" if pair.a == pair.b else f"{pair.a} / {pair.b}"
        least, middle = (
            NOT_KNOWN if figure is None else f"{figure:.6f}" for figure in (pair.least, pair.median)
        )
        rows.append([plain(subject), str(pair.compared), least, middle, "yes" if pair.alike else "NO"])
    measure = values.pairs[0].measure if values.pairs else ""
    what = "texts" if values.gives == "vectors" else "queries"
    title = f"{values.gives} of {values.texts} {what}: {measure}"
    return Table(title, ["between", what, "least", "median", "alike"], rows)


def _under_load(agreement: Agreement) -> Table:
    rows = []
    for label, backend in agreement.backends.items():
        answers = backend.saturated
        changes = [str(backend.under_load.get(name, 0)) for name in _CHANGES]
        rows.append([plain(label), f"{answers.right}/{answers.asked}", *changes])
    title = f"the same, {_most_at_once(agreement)}: right, and what became of the answers"
    return Table(title, ["backend", "right", *_CHANGES], rows)


def _pairs(agreement: Agreement) -> Table:
    rows = []
    for pair in agreement.pairs:
        compared = pair.prompt_tokens_compared
        tokens = f"{pair.prompt_tokens_equal}/{compared}" if compared else NOT_KNOWN
        right = map(str, (pair.both_right, pair.only_a_right, pair.only_b_right, pair.both_wrong))
        chance = NOT_KNOWN if pair.p_value is None else f"{pair.p_value:.2g}"
        alike = f"{pair.same_text}/{pair.compared}"
        rows.append([plain(f"{pair.a} / {pair.b}"), alike, *right, chance, tokens])
    head = ["first / second", "same answer", "both right", "only first", "only second", "neither", "p",
            "equal prompt tokens"]  # fmt: skip
    return Table("between backends, one at a time (p: chance of so uneven a split)", head, rows)
