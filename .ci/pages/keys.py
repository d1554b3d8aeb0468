"""Page docs/scenario.md: every key of a scenario, with the comment that stands next to it in the code."""

import ast
import dataclasses
import inspect
import itertools
from collections.abc import Iterator
from typing import Literal, get_args, get_origin, get_type_hints

from harness.spec.scenario.definition import Cache, Header, Request
from harness.spec.scenario.generators import GENERATORS
from harness.spec.scenario.images import Images
from harness.spec.scenario.load import Load, Segment
from harness.spec.scenario.lora import LoraMix
from harness.spec.scenario.synthetic import LengthClass
from harness.spec.scenario.text import Text
from harness.spec.scenario.verdict import Verdict

HEAD = """# Every key of a scenario

This page lists the keys of a scenario's file, with their defaults. `--set TABLE.KEY=VALUE` sets any of them
for one run.

`bench init scenario NAME` writes a file to start from, and `bench validate FILE` checks one; unknown keys are
errors. [Workloads](workloads.md) says what the shipped scenarios ask. Their files in
[workloads/](../workloads) are examples.

Three tables have other keys. `[slo]` has limits, as `ttft_ms.p95 = 500`: 95% of the requests have
their first token within 500 ms. `[engine_values]` sizes engines that `bench` starts, and `--engine-set` wins.
`[profiles.cpu]` lays other values over all tables, for a machine without a GPU.
"""
TABLES: dict[str, type] = {
    "scenario": Header,
    "load": Load,
    "load.profile": Segment,
    "request": Request,
    "cache": Cache,
    "text": Text,
    "verdict": Verdict,
    "lora": LoraMix,
    "images": Images,
}


def page() -> str:
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield HEAD
    for name, kind in TABLES.items():
        yield from (f"## `[{name}]`", "", "| key | default | what it sets |", "|---|---|---|")
        for key, default, what in _keys(kind):
            shown = f"`{default}`" if default else "–" if default is None else "required"
            yield f"| `{key}` | {shown} | {what} |"
        yield ""
    yield from ("## `[prompts]`", "", "| `generator` | prompts | its other keys |", "|---|---|---|")
    for name, kind in GENERATORS.items():
        about = (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ")
        yield f"| `{name}` | {about} | {'<br>'.join(_listed(kind))} |"
    yield ""


def _listed(kind: type) -> Iterator[str]:
    for key, default, what in _keys(kind):
        if key != "generator":
            what = "each " + ", ".join(_listed(LengthClass)) if key == "classes" else what
            shown = f"`{key} = {default}`" if default else f"`{key}`"
            optional = " (optional)" if default is None else ""
            yield f"{shown}{optional}" + (f": {what}" if what else "")


def _keys(kind: type) -> Iterator[tuple[str, str | None, str]]:
    """Of each key its name, its default ("": the key is required, None: it has none) and what it sets."""
    comments, hints = _comments(kind), get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        factory = field.default_factory
        value = field.default if factory is dataclasses.MISSING else factory()
        default = None if value is None else "" if value is dataclasses.MISSING else _toml(value)
        what = "; ".join(filter(None, (_choices(hints[field.name]), comments.get(field.name, ""))))
        yield field.name, default, what


def _toml(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def _choices(hint: object) -> str:
    """The texts that a key takes, where these are few."""
    parts = (hint, *get_args(hint))
    texts = [value for part in parts if get_origin(part) is Literal for value in get_args(part) if value]
    if not texts:
        return ""
    return " or ".join([*(["a number"] if int in parts else []), *(f"`{text}`" for text in texts)])


def _comments(kind: type) -> dict[str, str]:
    """The comment of each key: at the end of its line, else on the lines before it."""
    source = inspect.getsource(kind)
    lines, found = source.splitlines(), {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            _, _, comment = lines[(node.end_lineno or 1) - 1][node.end_col_offset or 0 :].partition("# ")
            above = itertools.takewhile(lambda line: line.startswith("    # "), lines[node.lineno - 2 :: -1])
            if not comment and (sentences := " ".join(line.strip()[2:] for line in reversed(list(above)))):
                comment = sentences[0].lower() + sentences[1:].removesuffix(".")
            found[node.target.id] = comment.replace("None:", "without it").replace("():", "`[]`:")
    return found
