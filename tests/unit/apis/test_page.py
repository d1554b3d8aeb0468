"""The table of docs/apis.md says what definitions and simulators say."""

import re
from pathlib import Path

from harness.apis import API_NAMES
from harness.mockserver.dialects import DIALECTS
from harness.spec.backend_refs import parse_backend_list

PAGE = Path(__file__).parents[3] / "docs" / "apis.md"
ENGINES = {"vLLM": "vllm", "llama.cpp": "llamacpp", "SGLang": "sglang"}


def test_the_table_says_what_is_declared() -> None:
    rows = re.findall(
        r"^\| (vLLM|llama\.cpp|SGLang) \| `(\w+)` \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE
    )
    assert [(engine, api) for engine, api, _ in rows] == [(e, api) for e in ENGINES for api in API_NAMES]
    for engine, api, rest in rows:
        declared, simulated, *_, exact = rest.split(" | ")
        (ref,) = parse_backend_list(f"{ENGINES[engine]}@{api}")
        assert declared == "yes"
        style = getattr(DIALECTS[ENGINES[engine]], api, True) if api in ("responses", "messages") else True
        assert simulated == ("yes" if style is not None else "no")
        assert exact == ("yes" if ref.definition.dialect.exact_output else "no")
