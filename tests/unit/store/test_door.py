"""Files of a run are opened through `Confined` alone: other calls that touch the disk are listed here."""

import ast
import re
from pathlib import Path

import pytest

from tests.sources import text_of, tree

HARNESS = Path(__file__).resolve().parents[3] / "harness"

# Methods and functions that touch the disk or start a program, under whatever object. Those in OF_MODULE are
# too common as names: there only calls on the module itself count.
CALLS = {
    *("open", "read_text", "read_bytes", "write_text", "write_bytes", "touch", "truncate", "memmap"),
    *("mkdir", "makedirs", "rmdir", "rmtree", "unlink", "rename", "symlink_to", "hardlink_to"),
    *("iterdir", "glob", "rglob", "listdir", "scandir", "copytree", "copyfile", "savefig"),
    *("TemporaryFile", "NamedTemporaryFile", "TemporaryDirectory", "mkstemp", "mkdtemp"),
    *("Popen", "check_output", "check_call"),
}
OF_MODULE = {
    "subprocess": {"run", "call"},
    "duckdb": {"connect", "sql", "execute"},
    "os": {"open", "replace", "remove", "link", "walk", "mkfifo", "system"},
    "shutil": {"move", "copy", "copy2"},
}
_OF_MODULE = (rf"{module}[\s\\)]*\.[\s\\]*(?:{'|'.join(names)})" for module, names in OF_MODULE.items())
# Text that each of these calls has. What lacks it need not be parsed.
CALL_TEXT = re.compile(rf"\b(?:{'|'.join([*CALLS, *_OF_MODULE])})[\s\\)]*\(")
DOOR = {"store/confined.py", "store/parquet.py"}

# Rooms in which a run folder is at hand: each file that touches the disk, and what it touches.
OTHER_FILES = {
    "claims/catalog.py": "the shipped claims",
    "cli/commands/compose.py": "a file that the user names",
    "cli/commands/engines.py": "a lock file that the user names",
    "cli/commands/export.py": "a file that the user names",
    "cli/commands/gates.py": "a file that the user names",
    "cli/commands/imports.py": "a folder that the user names",
    "cli/commands/kit.py": "next to a kit that the user names",
    "cli/commands/init.py": "new definitions in the working directory",
    "cli/commands/nightly.py": "a page that the user names",
    "cli/commands/runs_page.py": "a page that the user names",
    "cli/display/streams.py": "/dev/null",
    "imports/choose.py": "a folder that the user names",
    "imports/source.py": "a file that the user names",
    "imports/taken.py": "an unnamed temporary file",
    "model/schema.py": "schemas of the checkout",
    "nightly/run_suite.py": "starts bench itself",
    "report/html/page.py": "the shipped style sheet and script",
    "report/plots/style.py": "pictures in memory",
    "run/setup/noise.py": "the cache",
    "run/keep/origin.py": "the cache",
    "store/derived.py": "the cache, and the code of this installation",
    "store/find.py": "lists the runs of a folder",
    "store/folder.py": "makes a new run, locks one, lists the runs with a manifest",
    "store/history.py": "makes the folder of the results",
    "tune/tuning.py": "makes the new folder of a tuning",
    "workload/prompts/workload.py": "an unnamed temporary file",
    "workload/traces/documents.py": "a trace that the user names",
    "workload/prompts/images.py": "images, in a folder of the run's own that goes with it",
    "workload/prompts/audio.py": "recordings that the user names",
    "workload/prompts/content.py": "a text that the user names, or a shipped one",
    "workload/traces/read.py": "a trace that the user names",
}
ROOMS = (
    "python",
    "claims",
    "cli",
    "verdicts",
    "conditions",
    "imports",
    "metrics",
    "model",
    "nightly",
    "report",
    "run",
    "store",
)
ROOMS += ("summary", "tune", "validity", "workload")


def touching(module):
    """Lines of calls that touch the disk."""
    for node in ast.walk(module):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id == "open":
            yield node.lineno
        elif isinstance(called, ast.Attribute):
            module = called.value.id if isinstance(called.value, ast.Name) else ""
            if called.attr in CALLS or called.attr in OF_MODULE.get(module, ()):
                yield node.lineno


def test_whoever_has_a_run_folder_at_hand_opens_its_files_through_the_door():
    found = set()
    for path in HARNESS.rglob("*.py"):
        name = path.relative_to(HARNESS).as_posix()
        if name.split("/")[0] in ROOMS and CALL_TEXT.search(text_of(path)) and any(touching(tree(path))):
            found.add(name)
    assert found - DOOR == OTHER_FILES.keys()


def test_no_other_room_knows_run_folders():
    known = set()
    for path in sorted(HARNESS.rglob("*.py")):
        name = path.relative_to(HARNESS).as_posix()
        if "RunFolder" in text_of(path):
            known.add(name.split("/")[0])
    assert known <= set(ROOMS)


@pytest.mark.parametrize(
    "line",
    [
        *("open(path)", "path.open('rb')", "os.open(path, 0)", "(folder.path / 'x').read_bytes()"),
        *(
            "os.replace(a, b)",
            "shutil.rmtree(path)",
            "duckdb.connect()",
            "subprocess.run([])",
            "path.glob('*')",
        ),
    ],
)
def test_the_check_sees_such_a_call(line):
    assert CALL_TEXT.search(line)
    assert list(touching(ast.parse(line))) == [1]
