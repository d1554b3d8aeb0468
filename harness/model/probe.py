"""probe-LABEL.json: what a backend did, next to what its definition declares."""

from typing import Annotated

import msgspec

from harness.model.record import Record, doc


class Finding(Record, frozen=True):
    """One property of a server: what is declared, and what was seen when it was tried."""

    topic: Annotated[str, doc("What.")]
    declared: Annotated[str, doc("By the definition; empty: nothing is.")]
    seen: Annotated[str, doc("What the server did.")]
    holds: Annotated[bool | None, doc("Null where nothing is declared, or what was seen does not tell.")]
    then: Annotated[str, doc("What the harness does about it; empty: nothing has to be done.")] = ""
    matters: Annotated[bool, doc("It does not hold, and figures mean something else for it.")] = False


class Probed(Record, frozen=True, kw_only=True):
    """What a backend did, next to what its definition declares. Older files have only the findings."""

    backend: Annotated[str, doc("Name of its definition.")] = ""
    variant: Annotated[str | None, doc("Of the definition.")] = None
    api: Annotated[
        str,
        doc("That was probed: chat, completions, responses, messages, embeddings, rerank or transcriptions."),
    ] = "chat"
    base_url: Annotated[str, doc("Of the server.")] = ""
    served_name: Annotated[str, doc("What it calls its model.")] = ""
    version: Annotated[str | None, doc("As the server tells it.")] = None
    simulated: Annotated[bool, doc("A scripted server.")] = False
    findings: Annotated[tuple[Finding, ...], doc("Everything that was tried.")]
    prompt_tokens: Annotated[
        dict[str, int | None], doc("Of two fixed chats, as the engine's template makes them.")
    ] = msgspec.field(default_factory=dict)
    requests: Annotated[int, doc("That were sent.")] = 0
    wall_s: Annotated[float, doc("Time it took, s.")] = 0.0

    @property
    def mismatches(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.holds is False)
