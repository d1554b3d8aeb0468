"""Reads prompts from a file: ShareGPT-style conversations, JSON lines, requests of a batch, CSV."""

import csv
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.errors import SpecError, page_address
from harness.untrusted import is_unicode, one_line
from harness.workload.traces.read import json_lines, read_text
from harness.workload.traces.rows import MAX_TOKENS, BadRow, an_object

Message = tuple[str, str]  # role, content

MOST_CATEGORIES = 64  # each is a class of requests with figures of its own
_LONGEST_CATEGORY = 40  # characters
_LONGEST_HEAD = 10_000  # characters of the names of columns
_ALL_TURNS = MAX_TOKENS  # of a request that was made to be sent as it is
# What the files of SPEED-Bench hold before its own script has fetched the texts.
_PLACEHOLDER = "FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE"

_NAMES = {
    "user": ("user", "human"),
    "assistant": ("assistant", "gpt", "chatgpt", "bard", "model"),
    "system": ("system",),
}
_ROLES = {name: role for role, names in _NAMES.items() for name in names}
# Of a line, and of OpenAI's requests, of which a line of a batch has one as its `body`.
_LIMITS = ("output_tokens", "max_completion_tokens", "max_tokens")
_SCHEMAS = ("schema", "json_schema")


@dataclass(frozen=True, slots=True)
class Prompt:
    """Messages of which the last is the user's, and the answer to it in the file, if any."""

    messages: tuple[Message, ...]
    answer: str | None = None
    output_tokens: int | None = None  # asked for by the file
    category: str = ""
    schema: Mapping[str, Any] | None = None  # JSON schema of the answer; equal ones are one object


@dataclass(frozen=True, slots=True)
class Dataset:
    source: str
    format: str
    sha256: str
    prompts: tuple[Prompt, ...]
    skipped: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.prompts)

    @property
    def held(self) -> int:
        return len(self)

    @property
    def has_schemas(self) -> bool:
        return any(prompt.schema is not None for prompt in self.prompts)

    def facts(self) -> dict[str, object]:
        return {
            "file": self.source,
            "format": self.format,
            "sha256": self.sha256,
            "prompts": len(self.prompts),
            "skipped": dict(self.skipped),
        }


def read_dataset(path: Path, named: str = "auto", turns: int = 1) -> Dataset:
    """Reads prompts, with up to `turns` user turns of a conversation and the file's answers between them.

    Raises SpecError for a file without a usable prompt.
    """
    data, text = read_text(path)
    whole = _whole(text) if named in ("auto", "sharegpt") else None
    separator = _separator(text)
    kind = named if named != "auto" else "sharegpt" if whole is not None else "csv" if separator else "jsonl"
    if kind == "sharegpt" and whole is None:
        raise SpecError("is not a JSON list of conversations", where=str(path))
    entries: Iterator[tuple[int, Any]]
    if kind == "sharegpt":
        entries = enumerate(whole or (), start=1)
    else:
        entries = _csv_rows(text, separator or ",") if kind == "csv" else json_lines(text)
    prompts: list[Prompt] = []
    schemas: dict[str, Mapping[str, Any]] = {}  # by their text
    skipped: Counter[str] = Counter()
    first_bad: dict[str, int] = {}
    for index, entry in entries:
        try:
            prompts.append(_prompt(entry, turns, schemas))
        except BadRow as bad:
            skipped[str(bad)] += 1
            first_bad.setdefault(str(bad), index)
    if not prompts:
        reason, _ = next(iter(skipped.most_common(1)), ("it is empty", 0))
        raise SpecError(
            f"holds no usable prompt: {reason}",
            where=f"{path}:{first_bad[reason]}" if reason in first_bad else str(path),
            hint=f"lines of JSON, or CSV with a column prompt: {page_address('traces')} shows the formats",
        )
    if (count := len({prompt.category for prompt in prompts})) > MOST_CATEGORIES:
        raise SpecError(
            f"has {count} categories, each a class of requests; the most are {MOST_CATEGORIES}",
            where=str(path),
            hint="leave `category` out of its lines",
        )
    if schemas and any(prompt.category for prompt in prompts):
        raise SpecError(
            "has categories and schemas, and each makes classes of requests",
            where=str(path),
            hint="leave `category` out of its lines",
        )
    return Dataset(str(path), kind, hashlib.sha256(data).hexdigest(), tuple(prompts), dict(skipped))


def _whole(text: str) -> list[Any] | None:
    if not text.lstrip().startswith("["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def _separator(text: str) -> str:
    """What stands between the columns of CSV, by its first line, which names them; "" if it is none."""
    head = text[:_LONGEST_HEAD].lstrip().partition("\n")[0].rstrip()
    if head.startswith("{"):
        return ""
    return next((mark for mark in ",;\t" if "prompt" in next(csv.reader([head], delimiter=mark), ())), "")


def _csv_rows(text: str, separator: str) -> Iterator[tuple[int, Any]]:
    """Rows as lines of JSON have them: without empty cells, and with numbers and schemas read."""
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # 131,072 else: prompts may be longer
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator)
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            yield reader.line_num, BadRow(f"not CSV: {error}")
            continue
        if row is None:
            return
        cells: dict[str, Any] = {name: cell for name, cell in row.items() if name and cell}
        for name in (*_LIMITS, *_SCHEMAS):
            with suppress(KeyError, ValueError, RecursionError):  # what it is stands in the reason
                cells[name] = json.loads(cells[name])
        yield reader.line_num, cells


def _prompt(value: object, turns: int, schemas: dict[str, Mapping[str, Any]]) -> Prompt:
    """Reads a line {"prompt": …}, {"messages": […]} or {"turns": […]}, a request of a batch {"body": …}, or a
    ShareGPT entry {"conversations": […]}.

    Raises BadRow.
    """
    entry = an_object(value)
    category = _category(entry.get("category"))
    if isinstance(body := entry.get("body"), dict):
        entry, turns = body, _ALL_TURNS
    prompt = replace(_asked(entry, turns), category=category, schema=_schema(entry, schemas))
    if _PLACEHOLDER in prompt.messages[-1][1]:
        raise BadRow("the placeholder of SPEED-Bench, whose own script fetches the texts")
    return prompt


def _category(value: object) -> str:
    """The name of a class of requests; "" of what is no text. A dot in it would be read as a path."""
    return one_line(value, _LONGEST_CATEGORY).replace(".", "_") if isinstance(value, str) else ""


def _schema(entry: Mapping[str, Any], known: dict[str, Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The schema of the answer, as a key of the line or as OpenAI's `response_format`. Raises BadRow."""
    given = next((entry[name] for name in _SCHEMAS if entry.get(name) is not None), None)
    form = entry.get("response_format")
    if given is None and isinstance(form, dict) and form.get("type") != "text":
        wrapped = form.get("json_schema")
        given = wrapped.get("schema", False) if isinstance(wrapped, dict) else False
    if given is None:
        return None
    if not isinstance(given, dict):
        raise BadRow("a schema that is not a JSON object")
    return known.setdefault(json.dumps(given, sort_keys=True), given)


def _asked(entry: Mapping[str, Any], turns: int) -> Prompt:
    asked = next((entry[name] for name in _LIMITS if entry.get(name) is not None), None)
    if asked is not None and (type(asked) is not int or not 1 <= asked <= MAX_TOKENS):
        raise BadRow(f"output_tokens that is not a whole number from 1 to {MAX_TOKENS:,}")
    system = entry.get("system")
    before = (("system", _sendable(system)),) if isinstance(system, str) and system else ()
    if isinstance(prompt := entry.get("prompt"), str):
        if not prompt.strip():
            raise BadRow("an empty prompt")
        return Prompt((*before, ("user", _sendable(prompt))), output_tokens=asked)
    if "turns" in entry:
        return Prompt((*before, ("user", _first(entry["turns"], turns))), output_tokens=asked)
    conversation = entry.get("messages", entry.get("conversations"))
    if not isinstance(conversation, list):
        raise BadRow("none of prompt, messages, conversations, turns")
    messages, answer = _conversation([_message(item) for item in conversation], turns)
    own = messages[0][0] == "system"
    return Prompt(messages if own else (*before, *messages), answer, asked)


def _first(questions: object, turns: int) -> str:
    """The first of a user's questions without answers, as Spec-Bench and SPEED-Bench have them."""
    first = questions[0] if isinstance(questions, list) and questions else None
    if not isinstance(first, str) or not first.strip():
        raise BadRow("turns without a text")
    if turns > 1:
        raise BadRow("turns without answers, of which the first alone can be sent: prompts.turns is 1")
    return _sendable(first)


def _message(item: object) -> Message:
    if not isinstance(item, dict):
        raise BadRow("a message that is not an object")
    role, content = item.get("role", item.get("from")), item.get("content", item.get("value"))
    if not isinstance(role, str) or role not in _ROLES:
        raise BadRow("a message of an unknown role")
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        content = _joined(content)
    if not isinstance(content, str) or not content.strip():
        raise BadRow("a message without text")
    return _ROLES[role], _sendable(content)


def _joined(parts: Sequence[Mapping[str, Any]]) -> str:
    """The texts of parts, which OpenAI's API takes in the place of one text; joined as vLLM joins them."""
    texts = [part.get("text") for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise BadRow("a message with a part that is no text")
    return "\n".join(map(str, texts))


def _sendable(text: str) -> str:
    if not is_unicode(text):
        raise BadRow("text with half of a surrogate pair")
    return text


def _conversation(messages: list[Message], turns: int) -> tuple[tuple[Message, ...], str | None]:
    """Cuts a conversation after its `turns`-th user turn, or its last, and returns the answer to that too.

    An answer before the first question is left out. Raises BadRow.
    """
    users = [index for index, (role, _) in enumerate(messages) if role == "user"]
    if not users:
        raise BadRow("no user turn")
    last = users[min(turns, len(users)) - 1]
    before = [message for message in messages[: users[0]] if message[0] == "system"]
    kept = messages[users[0] : last + 1]
    if any(role != ("user", "assistant")[index % 2] for index, (role, _) in enumerate(kept)):
        raise BadRow("turns that do not alternate")
    answered = last + 1 < len(messages) and messages[last + 1][0] == "assistant"
    return (*before[:1], *kept), messages[last + 1][1] if answered else None
