"""docs/engines.md is what the definitions say now."""

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.engines_page import page
from harness.host import paths
from harness.spec.backend_refs import load_backend

DOCS = Path(__file__).parents[3] / "docs"
ENGINES = sorted(set(paths.definitions("backends")) - {"models", "truth", "openai"})


def test_the_page_in_the_docs_is_not_stale():
    command = [sys.executable, "-m", "harness", "list", "backends", "--markdown"]
    made = subprocess.run(command, cwd=DOCS.parent, capture_output=True, text=True, check=True).stdout
    assert (DOCS / "engines.md").read_text() == made, "bench list backends --markdown > docs/engines.md"


def test_every_engine_has_a_row_in_each_table_and_a_section():
    text = (DOCS / "engines.md").read_text()
    for name in ENGINES:
        title = load_backend(name).backend.title
        assert text.count(f"| [{title}](#{name}) |") == 4
        assert f'<a id="{name}"></a>' in text
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("| [")}
    assert widths <= {5, 7}


def test_a_change_of_a_definition_changes_the_page():
    definition = load_backend("vllm")
    cannot = dataclasses.replace(definition, dialect=dataclasses.replace(definition.dialect, exact_output={}))
    assert page([cannot]) != page([definition])
    assert "| cannot |" in page([cannot])


@pytest.mark.parametrize("what", [[], ["models"]])
def test_only_backends_have_a_page(what):
    command = [sys.executable, "-m", "harness", "list", *what, "--markdown"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "needs backends" in done.stderr
