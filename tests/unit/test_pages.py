"""Pages of docs/ that are made of the code say what it says now."""

import dataclasses
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

from harness.host import paths
from harness.spec.backend_refs import load_backend

ROOT = Path(__file__).resolve().parents[2]
ENGINES = sorted(set(paths.definitions("backends")) - {"models", "truth", "openai"})
SPEC = importlib.util.spec_from_file_location("engines_page", ROOT / ".ci" / "pages" / "engines.py")
page = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(page)


def test_no_page_in_the_docs_is_stale():
    command = [sys.executable, ROOT / ".ci" / "pages", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "every page is current\n"), f"make pages\n{done.stderr}"


def test_every_engine_has_a_row_in_each_table_and_a_section():
    text = (ROOT / "docs" / "engines.md").read_text()
    for name in ENGINES:
        title = load_backend(name).backend.title
        assert text.count(f"| [{title}](#{name}) |") == 4
        assert f'<a id="{name}"></a>' in text
    tables = re.findall(r"^\|.*\n\|-.*\n(?:\|.*\n)+", text, re.MULTILINE)
    assert len(tables) > 4
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


def test_a_change_of_a_definition_changes_the_page():
    definition = load_backend("vllm")
    cannot = dataclasses.replace(definition, dialect=dataclasses.replace(definition.dialect, exact_output={}))
    assert page.of([cannot]) != page.of([definition])
    assert "| cannot |" in page.of([cannot])
