"""The field of its own that bench adds to a cell that it exports."""

from dataclasses import replace

from harness.imports.source import finite, wrong
from harness.imports.taken import REQUESTS, Taken
from harness.model.exchanged import KEY, Exchanged
from harness.model.record import from_json


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
    lacks = [REQUESTS]
    if doubts:
        lacks.append(f"the evidence for its doubts: {', '.join(doubts)}")
    more = {path: finite(value, path, where) for path, value in ours.figures.items()}
    return replace(
        taken,
        tool=ours.tool,
        version=ours.tool_version,
        variant="",
        load=ours.load,
        model=ours.model,
        started_unix_ns=ours.started_unix_ns,
        planned=ours.requests.planned,
        lacks=tuple(lacks),
        definitions=ours.definitions,
        reported={**taken.reported, **more},
        facts=("answers", "outcomes"),
        answered=ours.requests.ok,
        failed=ours.requests.failed,
    )
