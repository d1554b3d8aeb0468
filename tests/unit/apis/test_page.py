"""The table of docs/apis.md says what definitions and simulators say."""

import re
from pathlib import Path

from harness.apis import API_NAMES, APIS
from harness.mockserver.dialects import DIALECTS
from harness.spec.backend_refs import load_backend
from harness.spec.dialect import with_api

PAGE = Path(__file__).parents[3] / "docs" / "apis.md"
ENGINES = {"vLLM": "vllm", "llama.cpp": "llamacpp", "SGLang": "sglang"}


def test_the_table_says_what_is_declared() -> None:
    rows = re.findall(
        r"^\| (vLLM|llama\.cpp|SGLang) \| `(\w+)` \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE
    )
    assert [(engine, api) for engine, api, _ in rows] == [(e, api) for e in ENGINES for api in API_NAMES]
    for engine, api, rest in rows:
        declared, simulated, *_, exact = rest.split(" | ")
        dialect = load_backend(ENGINES[engine]).dialect
        assert declared == ("yes" if api in dialect.api_names else "no")
        style = None if api in ("chat", "completions") else getattr(DIALECTS[ENGINES[engine]], api)
        assert simulated == ("no" if style is None and api not in ("chat", "completions") else "yes")
        if APIS[api].gives != "text":
            assert exact == "–"
        else:
            assert exact == ("yes" if with_api(dialect, api).exact_output else "no")
