"""The code of a contributor's page works as it stands there: it is put into a copy of the sources and run."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def blocks(page):
    return re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "contributing" / page).read_text("utf-8"), re.DOTALL
    )


def test_a_metric_is_one_field_and_its_test(tmp_path):
    declaration, test = blocks("add-a-metric.md")
    for folder in ("harness", "tests/factories"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    metrics = tmp_path / "harness" / "model" / "metrics.py"
    source = metrics.read_text("utf-8")
    before = "    output_tokens_per_s: Annotated["
    assert source.count(before) == 1
    metrics.write_text(source.replace(before, declaration + before), "utf-8")
    figures = (ROOT / "tests" / "unit" / "metrics" / "test_figures.py").read_text("utf-8")
    given = figures.partition("\n\n\n")[0]
    of_a_cell = """
def test_a_cell_and_its_schema_have_it():
    cell = summarise_cell(records({"intended": 0, "texts": [100, 150, 350]}), facts(), None)
    assert cell.decode_ms.mean == 250
    assert cell.null_reasons["decode_ms.p99"] == "1 samples; p99 needs 299"
    assert "decode_ms" in SLO_METRICS
    assert VERDICT_METRICS["decode_ms.p50"] == "lower"
    assert "decode_ms" in schema.text("summary")
"""
    (tmp_path / "tests" / "__init__.py").touch()
    (tmp_path / "tests" / "test_it.py").write_text(
        "from harness.model import SLO_METRICS, VERDICT_METRICS, schema\n"
        "from harness.summary import summarise_cell\n"
        f"from tests.factories.recorded import facts\n{given}\n\n\n{test}{of_a_cell}",
        "utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_it.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
