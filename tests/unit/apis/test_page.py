"""The table of docs/apis.md is what definitions, simulators and the record of real engines say.

Written by `python -m tests.unit.apis.test_page`; the record by `python -m tests.engines.seen RUN…`.
"""

import re
from pathlib import Path

from harness.apis import API_NAMES, APIS, ApiName
from harness.mockserver.dialects import DIALECTS
from harness.spec.backend_refs import load_backend
from harness.spec.dialect import with_api
from tests.engines.seen import recorded

PAGE = Path(__file__).parents[3] / "docs" / "apis.md"
ENGINES = {"vLLM": "vllm", "llama.cpp": "llamacpp", "SGLang": "sglang", "faster-whisper": "faster-whisper"}
TABLE = re.compile(r"(?<=<!-- apis -->\n).*?(?=<!-- /apis -->)", re.DOTALL)
SEEN = recorded()


def table() -> str:
    heads = ("engine", "API", "declared", "simulated", "probed here", "measured here", "exact length")
    rows = [heads, ("---",) * len(heads)]
    for title, name in ENGINES.items():
        declared = load_backend(name).dialect.api_names
        rows += [(title, f"`{api}`", *_cells(name, api)) for api in API_NAMES if api in declared]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows).replace(" --- ", "---")


def _cells(name: str, api: ApiName) -> tuple[str, ...]:
    dialect = load_backend(name).dialect
    declared, seen = api in dialect.api_names, SEEN[name].get(api)
    simulated = api in ("chat", "completions") or bool(getattr(DIALECTS[name], api))
    exact = declared and bool(with_api(dialect, api).exact_output)
    differs = seen["differs"] if seen else None
    words = ["yes" if one else "no" for one in (declared, simulated, differs is not None, seen, exact)]
    if differs:
        words[2] += f", {differs} differ" if differs > 1 else ", 1 differs"
    return tuple(words if APIS[api].gives == "text" else [*words[:-1], "–"])


def test_the_table_is_current() -> None:
    (written,) = TABLE.findall(PAGE.read_text("utf-8"))
    assert written == table(), "run: python -m tests.unit.apis.test_page"


def test_nothing_was_seen_that_is_not_declared() -> None:
    for name, seen in SEEN.items():
        assert set(seen) <= set(load_backend(name).dialect.api_names)


if __name__ == "__main__":
    PAGE.write_text(TABLE.sub(lambda _: table(), PAGE.read_text("utf-8")), "utf-8")
