"""Blocks of the contributors' pages work as they stand: each is put into a copy of the sources and run."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "contributing"
RECIPE = re.compile(r"^([a-z-]+):.*\n\t\$\(BIN\)/(.*)$", re.MULTILINE)
MADE = {target: f".venv/bin/{recipe}" for target, recipe in RECIPE.findall((ROOT / "Makefile").read_text())}
# Page -> blocks of Python and TOML, blocks of commands. test_contributing_engine.py runs those of an engine.
BLOCKS = {
    "add-a-chart": (3, 0),
    "add-a-cli-flag": (1, 0),
    "add-a-command": (2, 0),
    "add-a-metric": (2, 1),
    "add-a-telemetry-source": (3, 0),
    "add-a-validity-rule": (4, 1),
    "add-a-workload": (4, 1),
    "add-an-api": (4, 1),
    "add-an-engine": (0, 3),
    "add-an-importer": (3, 1),
    "which-doubt": (0, 0),
}


def code_of(page):
    """Blocks of code, of which an entry of a list is text, and of commands, without a list's indentation."""
    text = (PAGES / f"{page}.md").read_text("utf-8")
    found = re.findall(r"^( *)```(\w*)\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    lines = [
        (language, re.sub(rf"^{indent}", "", text, flags=re.MULTILINE)) for indent, language, text in found
    ]
    assert {language for language, _ in lines} <= {"python", "toml", "text", ""}
    return [text for language, text in lines if language], [text for language, text in lines if not language]


def sources_in(folder):
    """Copy of what the pages change, with the compiled files, so that no test compiles all of it again."""
    for name in ("harness", "docs", "tests", ".ci", "compose", "backends", "workloads"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return sources_in(tmp_path_factory.mktemp("sources"))


def copy_or_link(file, copy):
    """Copies what commands of the pages write in place; Python files are replaced, never written into."""
    (os.link if file.endswith((".py", ".pyc")) else shutil.copy2)(file, copy)


class Checkout:
    """Copy of the sources to be changed; what the pages only read is linked."""

    def __init__(self, sources, folder):
        self.folder = folder
        shutil.copytree(sources, folder, copy_function=copy_or_link, dirs_exist_ok=True)
        for name in ("results", "pyproject.toml"):
            (folder / name).symlink_to(ROOT / name)

    def write(self, path, text):
        (self.folder / path).unlink(missing_ok=True)  # never into the file that it is linked to
        (self.folder / path).write_text(text, "utf-8")

    def put(self, path, before, text):
        """`text` in front of the only `before` of a file."""
        source = (self.folder / path).read_text("utf-8")
        assert source.count(before) == 1, f"{path}: {before}"
        self.write(path, source.replace(before, text + before))

    def add(self, path, text):
        self.write(path, (self.folder / path).read_text("utf-8") + f"\n\n{text}")

    def run(self, line):
        """Output of a command of a page, which has to succeed."""
        line = MADE[line.removeprefix("make ")] if line.startswith("make ") else line
        words = line.partition("#")[0].split()
        program = {".venv/bin/python": [], ".venv/bin/bench": ["-m", "harness"]}[words[0]]
        cache = ["-p", "no:cacheprovider"] if "pytest" in words else []
        done = subprocess.run(
            [sys.executable, *program, *words[1:], *cache],
            cwd=self.folder,
            # Of pytest's plugins the tests of the pages need none, and some take a second to load.
            env={**os.environ, "PYTHONPATH": str(self.folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def checkout(sources, tmp_path):
    return Checkout(sources, tmp_path)


def test_every_block_is_known():
    assert {path.stem for path in PAGES.glob("*.md")} == set(BLOCKS)
    assert {page: tuple(map(len, code_of(page))) for page in BLOCKS} == BLOCKS


@pytest.mark.long
def test_a_metric_is_one_field_and_its_test(checkout):
    (declaration, test), (commands,) = code_of("add-a-metric")
    checkout.put("harness/model/latencies.py", "    session_ms: Annotated[", declaration)
    of_a_cell = """

def test_a_cell_and_its_schema_have_decode_ms():
    cell = summarise_cell(records({"intended": 0, "texts": [100, 150, 350]}), facts(), None)
    assert cell.decode_ms.mean == 250
    assert cell.null_reasons["decode_ms.p99"] == "1 sample; p99 needs 299"
    assert "decode_ms" in SLO_METRICS
    assert VERDICT_METRICS["decode_ms.p50"] == "lower"
    assert "decode_ms" in schema.text("summary")
"""
    imported = (
        "from harness.model import SLO_METRICS, VERDICT_METRICS, schema\n"
        "from tests.factories.recorded import facts, summarise_cell\n"
    )
    checkout.put("tests/unit/metrics/test_figures.py", "import pytest\n", imported)
    checkout.add("tests/unit/metrics/test_figures.py", test + of_a_cell)
    for line in commands.splitlines():
        said = checkout.run(line)
    assert "passed" in said
    assert "decode" in (checkout.folder / "docs" / "metrics.md").read_text("utf-8")


@pytest.mark.long
def test_a_validity_rule_is_a_code_and_a_function_with_its_record(checkout):
    (code, rule, test, reason), (commands,) = code_of("add-a-validity-rule")
    checkout.put("harness/model/issue.py", '    CLIENT_BUSY = "', code)
    checkout.put("harness/validity/client.py", "def tail(", f"{rule}\n\n")
    checkout.put("harness/validity/client.py", "    _worker_lost,\n", "    _slow_connect,\n")
    checkout.add("tests/unit/validity/test_cells.py", test)
    checkout.put("tests/integration/test_rules_printed.py", '"node-clock": "', reason)
    for line in commands.splitlines():
        said = checkout.run(line)
    assert "passed" in said
    assert "slow-connect" in (checkout.folder / "docs" / "validity.md").read_text("utf-8")


@pytest.mark.long
def test_a_generator_is_a_table_and_its_maker(checkout):
    (table, maker, scenario, test), (commands,) = code_of("add-a-workload")
    spec, prompts = "harness/spec/scenario", "harness/workload/prompts"
    checkout.put(f"{spec}/synthetic.py", "@dataclass(frozen=True, slots=True)\nclass Mix(", f"{table}\n\n")
    checkout.put(f"{spec}/generators.py", "    | synthetic.Mix\n", "    | synthetic.Growing\n")
    checkout.put(f"{prompts}/plain.py", "def mix(", f"{maker}\n\n")
    imported = "from harness.spec.scenario.synthetic import "
    checkout.put(f"{prompts}/plain.py", imported, f"{imported}Growing\n")
    checkout.put(f"{prompts}/generate.py", "    synthetic.Mix: mix,\n", "    synthetic.Growing: growing,\n")
    imported = "from harness.workload.prompts.plain import "
    checkout.put(f"{prompts}/generate.py", imported, f"{imported}growing\n")
    checkout.write("workloads/growing.toml", scenario)
    row = "| `growing` | prompts that grow | TTFT |\n"
    checkout.put("docs/workloads.md", "| `fixed-length` | one length", row)
    tests = "tests/unit/workload/test_generators.py"
    checkout.put(tests, "import json\n", "from harness.spec.scenario.synthetic import Growing\n")
    checkout.put(tests, "    FixedLength(20, 4),\n", "    Growing(10, 10, 4),\n")
    checkout.add(tests, test)
    for line in commands.splitlines():
        said = checkout.run(line)
    assert "passed" in said
    assert "| `growing` |" in (checkout.folder / "docs" / "scenario.md").read_text("utf-8")


@pytest.mark.long
def test_an_importer_is_a_reader_and_its_entry(checkout):
    (reader, entry, test), (commands,) = code_of("add-an-importer")
    checkout.write("harness/imports/loadgen.py", reader)
    detect = "harness/imports/detect.py"
    checkout.put(detect, "    mlperf,\n", "    loadgen,\n")
    checkout.put(detect, "    mlperf.READER,\n", f"    {entry}")
    checkout.put("harness/cli/commands/imports.py", "aiperf, guidellm,", "loadgen, ")
    checkout.add("tests/unit/imports/test_readers.py", test)
    figures = {"p50": 0.1, "p99": 0.102}
    result = {"loadgen_version": "1.2", "users": 4, "answers": 32, "ttft_s": figures}
    checkout.write("r.json", json.dumps(result))
    pages, tests, look = commands.splitlines()
    checkout.run(pages)
    assert "| loadgen | JSON |" in (checkout.folder / "docs" / "import.md").read_text("utf-8")
    assert "passed" in checkout.run(tests)
    assert "loadgen 1.2" in checkout.run(look)


@pytest.mark.long
def test_an_api_is_a_declaration_and_its_name(checkout):
    (declaration, event, answer, test), (commands,) = code_of("add-an-api")
    checkout.write("harness/apis/generate.py", declaration)
    table = "harness/apis/__init__.py"
    checkout.put(table, "from harness.apis.messages", "from harness.apis.generate import GENERATE\n")
    checkout.put(table, '"messages", "embeddings"', '"generate", ')
    checkout.put(table, "MESSAGES, EMBEDDINGS", "GENERATE, ")
    for name in ("tgi", "openai", "truth"):
        definition = (checkout.folder / f"backends/{name}.toml").read_text("utf-8")
        checkout.write(f"backends/{name}.toml", f"{definition}\n[dialect.apis.generate]\n")
    streams, requests = "tests/unit/apis/test_streams.py", "tests/unit/apis/test_requests.py"
    checkout.put(streams, '    "chat": b', f"    {event}")
    checkout.put(requests, '    "chat": lambda', f"    {answer}")
    checkout.add(streams, test)
    for line in commands.splitlines():
        said = checkout.run(line)
    assert "passed" in said
    assert "responses, generate," in " ".join(checkout.run(".venv/bin/bench run --help").split())


@pytest.mark.long
def test_a_telemetry_source_is_a_class_and_its_period(checkout):
    (source, period, test), _ = code_of("add-a-telemetry-source")
    imported = (
        '"""Time that something waited for CPU."""\n\n'
        "from pathlib import Path\n\n"
        "from harness.sampling.sources import Put, UnavailableError, UnreadableError\n\n"
    )
    checkout.write("harness/sampling/sources/pressure.py", imported + source)
    checkout.put("harness/sampling/sampler.py", '        "processes": processes,\n', period)
    head = "from harness.sampling.sources.pressure import Pressure\n"
    checkout.put("harness/sampling/sampler.py", "from harness.sampling.spill import", head)
    of_the_sampler = """

def test_the_sampler_reads_it(tmp_path):
    watch = Watch(bench_pid=1, folder=tmp_path, hz=5.0)
    assert sources(watch)["pressure"].period_s == 0.5
"""
    head += "from harness.sampling.job import Watch\nfrom harness.sampling.sampler import sources\n\n\n"
    checkout.write("tests/unit/test_pressure.py", head + test + of_the_sampler)
    assert "2 passed" in checkout.run(".venv/bin/python -m pytest -q tests/unit/test_pressure.py")


@pytest.mark.long
def test_a_chart_of_a_metric_is_one_line_and_another_a_generator(checkout):
    (declaration, function, test), _ = code_of("add-a-chart")
    metrics = "harness/model/metrics.py"
    declared = (checkout.folder / metrics).read_text("utf-8")
    field = textwrap.indent(declaration, "    ")
    without = "".join(line for line in field.splitlines(keepends=True) if "charts=" not in line)
    assert declared.count(without) == 1
    checkout.write(metrics, declared.replace(without, field))
    source = (checkout.folder / "harness/report/charts/load.py").read_text("utf-8")
    imported = source.partition("\n\n\n")[0] + "\nfrom harness.report.charts.load import KINDS\n"
    checkout.write("harness/report/charts/memory.py", f"{imported}\n\n{function}")
    package = "harness/report/charts/__init__.py"
    head = "from harness.report.charts.memory import memory\n"
    checkout.put(package, "from harness.report.charts.model import", head)
    checkout.put(package, "        trade_offs(", "        memory(load_groups, order),\n")
    of_a_metric = """

def test_labels_against_the_load():
    cells = [cell(load=load, label_accuracy=0.5) for load in (ONE, FOUR)]
    assert "labels-load-concurrency" in made(*cells)
"""
    tests = "tests/unit/report/charts/test_charts.py"
    checkout.add(tests, test + of_a_metric)
    assert "passed" in checkout.run(f".venv/bin/python -m pytest -q {tests}")


@pytest.mark.long
def test_a_flag_is_taken_and_has_its_default(checkout):
    (flag,), _ = code_of("add-a-cli-flag")
    shown = "".join(f"    {line}\n" for line in flag.splitlines())
    checkout.put("harness/cli/commands/run.py", '    measurement.add_argument(\n        "--workers"', shown)
    assert "--settle S" in checkout.run(".venv/bin/bench run --help")


@pytest.mark.long
def test_a_command_prints_its_text_and_its_document(checkout):
    (command, line), _ = code_of("add-a-command")
    checkout.write("harness/cli/commands/where.py", command)
    checkout.put("harness/cli/flags/parsers.py", '    "completion": (', f"    {line}")
    assert "results  elsewhere\n" in checkout.run(".venv/bin/bench where --out elsewhere")
    assert '"results": "elsewhere"' in checkout.run(".venv/bin/bench where --out elsewhere --json")
    tests = "tests/unit/cli/test_commands.py tests/unit/cli/test_help.py"
    assert "passed" in checkout.run(f".venv/bin/python -m pytest -q {tests}")
