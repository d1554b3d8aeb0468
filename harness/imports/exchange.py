"""The field of its own that bench adds to a cell that it exports."""

from dataclasses import replace

from harness.imports.source import finite, wrong
from harness.imports.taken import COUNTS, LOAD, REQUESTS, Taken, as_name, figures_of
from harness.model import STATISTICS
from harness.model.exchanged import KEY, REPORT_LATENCIES, REPORT_MORE, REPORT_RATES, Exchanged
from harness.model.record import from_json

_FIGURES = {
    *REPORT_RATES,
    *REPORT_MORE,
    *(f"{metric}.{name}" for metric in REPORT_LATENCIES for name in STATISTICS),
}


def restored(taken: Taken, field: object, where: str) -> Taken:
    """The cell as it was exported. Raises SpecError for a damaged field, and for an INVALID measurement."""
    if field is None:
        return taken
    try:
        ours = from_json(field, Exchanged)
    except ValueError as error:
        raise wrong(f"its field '{KEY}' is damaged: {error}", where) from None
    if ours.validity.verdict == "INVALID":
        codes = ", ".join(reason.code for reason in ours.validity.reasons if reason.verdict == "INVALID")
        raise wrong(f"was INVALID where it was measured ({codes}): no figure of the server", where)
    doubts = [reason.code for reason in ours.validity.reasons]
    answered = ours.requests.ok if "answers" in ours.facts else None
    lacks = [REQUESTS]
    if answered is None:
        lacks.append(COUNTS)
    if "load" not in ours.facts:
        lacks.append(LOAD)
    if doubts:
        lacks.append(f"the evidence for its doubts: {', '.join(doubts)}")
    if strange := next((path for path in ours.figures if path not in _FIGURES), ""):
        raise wrong(f"its field '{KEY}' has a figure '{strange}', which this version does not know", where)
    more = {path: finite(value, path, where) for path, value in ours.figures.items()}
    return replace(
        taken,
        tool=ours.tool,
        version=ours.tool_version,
        took=f"{figures_of(answered)}, exported by bench {ours.version}",
        label=as_name(ours.label, ".-_@=+"),
        variant="",
        load=ours.load,
        cap=None,
        simulated=ours.simulated,
        model=ours.model,
        started_unix_ns=ours.started_unix_ns,
        planned=ours.requests.planned,
        lacks=tuple(lacks),
        definitions=ours.definitions,
        reported={**taken.reported, **more},
        answered=answered,
        failed=ours.requests.failed if "outcomes" in ours.facts else None,
        requests=ours.requests if {"answers", "outcomes"} <= {*ours.facts} else None,
    )
