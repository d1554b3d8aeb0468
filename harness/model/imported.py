"""The source of a cell that another tool measured."""

from typing import Annotated, Literal

import msgspec

from harness.model.figures import Requests
from harness.model.record import Record, doc

# Suffixes of the files in which tools keep their results.
RESULT_SUFFIXES = (".json", ".jsonl", ".csv", ".yaml", ".yml", ".db")
SERVER = "server"  # the name of a backend that was given none
Level = Literal["records", "answers", "summary"]
# What a file can tell; a rule that needs more than is there is not applied.
Fact = Literal["answers", "outcomes", "tokens", "asked", "times", "due", "arrivals", "load"]


class Imported(Record, frozen=True, kw_only=True):
    """The file of another tool that a cell was read from, and what it cannot tell."""

    tool: Annotated[str, doc("Tool that measured, as it calls itself.")]
    version: Annotated[str | None, doc("Version of the tool; null: the file does not say.")] = None
    file: Annotated[str, doc("Name of the imported file.")]
    sha256: Annotated[str, doc("SHA-256 of the file.")]
    level: Annotated[
        Level,
        doc(
            "Detail of the file. records: every request with its times. answers: latencies of each, at "
            "no known time. summary: figures alone, as the tool computed them."
        ),
    ]
    facts: Annotated[
        tuple[Fact, ...], doc("Kinds of facts that the file has; rules that need others are left out.")
    ] = ()
    took: Annotated[str, doc("Description of what was read, for people.")]
    lacks: Annotated[tuple[str, ...], doc("Contents that the file does not have, for people.")] = ()
    definitions: Annotated[
        dict[str, str], doc("Meaning of each figure that bench defines otherwise, by metric.")
    ] = msgspec.field(default_factory=dict)
    reported: Annotated[
        dict[str, float], doc("Figures that the tool computed, by their path in a cell of summary.json.")
    ] = msgspec.field(default_factory=dict)
    answered: Annotated[int | None, doc("Answers behind reported figures; null: the file does not say.")] = (
        None
    )
    failed: Annotated[
        int | None, doc("Failed requests behind reported figures; null: the file does not say.")
    ] = None
    requests: Annotated[
        Requests | None, doc("Counts by outcome, of figures alone; null: the file has at most those above.")
    ] = None

    @property
    def words(self) -> str:
        """`imported from aiperf 0.13.0 (records); client not verified`."""
        what = {"records": "records", "answers": "latencies without times", "summary": "figures alone"}
        return f"imported from {self.source} ({what[self.level]}); client not verified"

    @property
    def source(self) -> str:
        """`aiperf 0.13.0`."""
        return f"{self.tool} {self.version}" if self.version else f"{self.tool}, version not known"
