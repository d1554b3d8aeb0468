"""probe-LABEL.json: what a backend did, next to what its definition declares."""

from typing import Annotated

import msgspec

from harness.model.record import UNSET, Record, UnsetType, doc

_MAY_PASS = (408, 429)  # client errors: a timeout, too many requests


class Finding(Record, frozen=True):
    """One property of a server: what is declared, and what was seen when it was tried."""

    topic: Annotated[str, doc("Property that was tried.")]
    declared: Annotated[str, doc("Value that the definition declares; empty: none.")]
    seen: Annotated[str, doc("Behaviour of the server.")]
    holds: Annotated[
        bool | None,
        doc("Whether the server does as declared; null: nothing is declared, or it was not seen."),
    ]
    then: Annotated[str, doc("Consequence for the run, in words; empty: none.")] = ""
    matters: Annotated[bool, doc("Whether it does not hold and changes what figures mean.")] = False
    status: Annotated[
        int | UnsetType,
        doc("HTTP status of a plain request that failed; not written: none did, or no answer."),
    ] = UNSET


class Probed(Record, frozen=True, kw_only=True):
    """What a backend did, next to what its definition declares. Older files have only the findings."""

    backend: Annotated[str, doc("Name of the backend's definition.")] = ""
    variant: Annotated[str | None, doc("Variant of the definition; null: none.")] = None
    api: Annotated[str, doc("API that was probed, by its name in docs/apis.md.")] = "chat"
    base_url: Annotated[str, doc("Address of the server.")] = ""
    served_name: Annotated[str, doc("Name by which the server calls its model.")] = ""
    version: Annotated[str | None, doc("Version that the server reports; null: none.")] = None
    simulated: Annotated[bool, doc("Whether a scripted server answered.")] = False
    findings: Annotated[tuple[Finding, ...], doc("Findings on everything that was tried.")]
    prompt_tokens: Annotated[
        dict[str, int | None],
        doc("Prompt tokens of two fixed chats, as the server counts them; null: it does not."),
    ] = msgspec.field(default_factory=dict)
    requests: Annotated[int, doc("Requests that the probe sent.")] = 0
    wall_s: Annotated[float, doc("Time that the probe took.")] = 0.0

    @property
    def refused(self) -> str:
        """The client error with which the server answered a plain request; empty: it did not."""
        return next((finding.seen for finding in self.findings if _is_refusal(finding.status)), "")

    @property
    def mismatches(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.holds is False)


def _is_refusal(status: int | UnsetType) -> bool:
    return not isinstance(status, UnsetType) and 400 <= status < 500 and status not in _MAY_PASS
