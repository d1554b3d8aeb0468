"""The notebook page: its blocks run in their order, and print what stands below them.

`python -m tests.unit.test_notebook` writes what they print now into the page.
"""

import contextlib
import io
import re
import warnings
from pathlib import Path

import pytest

from llm_servebench import LoadWarning

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "notebook.md"
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?", re.DOTALL | re.MULTILINE
)


def blocks(text):
    """Code, and what is shown below it; "" where nothing is."""
    return [(block["code"], block["shown"] or "") for block in BLOCK.finditer(text)]


def run_page(text):
    """What each block prints, in one namespace."""
    names, printed = {}, []
    for number, (code, _shown) in enumerate(blocks(text), 1):
        with contextlib.redirect_stdout(io.StringIO()) as out, warnings.catch_warnings():
            warnings.simplefilter("ignore", LoadWarning)  # an earlier version measured the run
            exec(compile(code, f"{PAGE.name}, block {number}", "exec"), names)
        printed.append("".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines()))
    return printed


def with_outputs(text):
    printed = iter(run_page(text))

    def written(block):
        out = next(printed)
        return f"```python\n{block['code']}```\n" + (f"\n```text\n{out}```\n" if out else "")

    return BLOCK.sub(written, text)


def test_the_page_prints_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    text = PAGE.read_text(encoding="utf-8")
    assert len(blocks(text)) == text.count("```python\n")
    for (code, shown), printed in zip(blocks(text), run_page(text), strict=True):
        assert printed == shown, f"{code}stale: run python -m tests.unit.test_notebook"


def test_a_block_that_prints_something_else_or_fails_is_seen():
    page = "```python\nx = 2\n```\n\n```python\nprint(x)\n```\n\n```text\n1\n```\n"
    assert blocks(page) == [("x = 2\n", ""), ("print(x)\n", "1\n")]
    assert run_page(page) == ["", "2\n"]
    assert with_outputs(page) == page.replace("\n1\n", "\n2\n")
    with pytest.raises(ZeroDivisionError):
        run_page("```python\n1 / 0\n```\n")


if __name__ == "__main__":
    PAGE.write_text(with_outputs(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
