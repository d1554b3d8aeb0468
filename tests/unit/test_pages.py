"""Pages of docs/ that are made of the code say what it says now."""

import dataclasses
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

from harness.host import paths
from harness.spec.backend_refs import load_backend
from harness.spec.scenario.definition import Scenario

ROOT = Path(__file__).resolve().parents[2]
ENGINES = sorted(set(paths.definitions("backends")) - {"models", "truth", "openai"})
SPEC = importlib.util.spec_from_file_location("engines_page", ROOT / ".ci" / "pages" / "engines.py")
page = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(page)


def test_no_page_in_the_docs_is_stale():
    command = [sys.executable, ROOT / ".ci" / "pages", "--check"]
    here = {**os.environ, "PYTHONPATH": str(ROOT)}  # not another checkout that the environment installs
    done = subprocess.run(command, env=here, capture_output=True, text=True, check=False)
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


def test_every_table_of_a_scenario_is_on_its_page():
    text = (ROOT / "docs" / "scenario.md").read_text()
    tables = {field.name for field in dataclasses.fields(Scenario)} - {"profile"}  # a name, no table
    assert [name for name in tables if f"`[{name}]`" not in text] == [], "TABLES of .ci/pages/keys.py"


def test_every_scenario_has_its_row_among_the_workloads():
    text = (ROOT / "docs" / "workloads.md").read_text()
    rows = " ".join(re.findall(r"^\| .*", text, re.MULTILINE))
    missing = [name for name in paths.definitions("workloads") if f"`{name}`" not in rows]
    assert missing == [], "each needs a row in docs/workloads.md"


def test_a_key_has_its_default_and_its_comment():
    text = (ROOT / "docs" / "scenario.md").read_text()
    assert "| `requests` | required | measured requests per load point |" in text
    assert "| `duration_s` | – | of the measured part: then no more is sent, even if some are left |" in text
    assert '| `repeats` | `"auto"` | a number or `auto`; of `bench run`' in text
    assert "`turns = 1`: questions of a chat" in text
