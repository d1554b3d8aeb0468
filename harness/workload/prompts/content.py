"""Sources of real text for prompts: pieces in the order of their source, or records of JSON."""

import hashlib
import json
import re
from pathlib import Path
from random import Random

from harness.errors import SpecError, reason
from harness.host import paths
from harness.spec.scenario import PromptFile, Scenario, Text
from harness.spec.scenario.synthetic import Audio
from harness.spec.scenario.text import FILE, RANDOM
from harness.workload.prompts.words import ADJECTIVES, NOUNS, PLACES, VERBS

_SHIPPED = {"prose": "data/prose.txt", "code": "data/code.txt"}
_MOST_BYTES = 1_000_000  # of a file; what follows is not read
_LEAST_PIECES = 20  # so that texts can begin at different ones
_RECORDS = 1_000
# A sentence, or a line: each with the space before it.
_ENDS = re.compile(r"(?<=[.!?])(?= )|(?<=\S)(?=[^\S\n]*\n)")


def pieces_of(text: Text) -> tuple[str, ...]:
    """Pieces in the order of the source, each with the space before it; () for random words.

    Raises SpecError for a file that cannot be used.
    """
    if text.content == RANDOM:
        return ()
    if text.content == "json":
        random = Random(0)
        return tuple(f"\n{json.dumps(_record(number, random))}," for number in range(_RECORDS))
    return _of_file(paths.data_file(_SHIPPED.get(text.content) or text.content.removeprefix(FILE)))


def content_of(scenario: Scenario) -> str:
    """Name of the content. A file is named by the hash of what was read, since its path differs elsewhere."""
    content = scenario.text.content
    if isinstance(scenario.prompts, PromptFile):
        return "prompts of a file"
    if isinstance(scenario.prompts, Audio):
        return "recordings of a folder" if scenario.prompts.folder else "whistled tones"
    if not content.startswith(FILE):
        return content
    return f"file {hashlib.sha256(_read(paths.data_file(content.removeprefix(FILE)))).hexdigest()[:12]}"


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES)
    except (OSError, ValueError) as error:
        raise SpecError(f"cannot be read: {reason(error)}", where=f"text.content {path}") from error


def _of_file(path: Path) -> tuple[str, ...]:
    raw = _read(path)
    try:
        text = raw.decode(errors="strict" if len(raw) < _MOST_BYTES else "ignore")
    except UnicodeDecodeError as error:
        raise SpecError(f"is not UTF-8 text: {error}", where=f"text.content {path}") from error
    pieces = tuple(_ENDS.split(f"\n{text.strip()}"))
    if len(pieces) < _LEAST_PIECES:
        raise SpecError(
            f"has {len(pieces)} sentences or lines, at least {_LEAST_PIECES} are needed",
            where=f"text.content {path}",
        )
    return pieces


def _record(number: int, random: Random) -> dict[str, object]:
    """A record like those that an API lists, with several types."""
    return {
        "id": 100_000 + number,
        "name": f"{random.choice(ADJECTIVES)} {random.choice(NOUNS)}",
        "status": random.choice(("active", "paused", "deleted")),
        "score": round(random.uniform(0, 100), 2),
        "tags": random.sample(NOUNS, random.randint(0, 3)),
        "owner": {"first": random.choice(NOUNS), "verified": random.random() < 0.5},
        "note": None
        if random.random() < 0.3
        else f"{random.choice(VERBS)} {random.choice(PLACES)} the {random.choice(NOUNS)}",
    }
