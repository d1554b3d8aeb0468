"""Data goes one way; heavy things load when used. Both are checked on the source, not on trust."""

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sources import text_of, tree

HARNESS = Path(__file__).resolve().parents[2] / "harness"
PAGE = HARNESS.parent / "docs" / "architecture.md"

# room -> rooms of this package it may import, all of them above it: there is no circle
ALLOWED = {
    "model": set(),
    "errors": set(),
    "records": set(),
    "untrusted": set(),
    "stats": {"model"},
    "host": {"__version__", "errors", "model"},
    "metrics": {"model", "records", "stats"},
    "client": {"errors", "host", "untrusted"},
    "apis": {"records"},
    "spec": {"apis", "errors", "host", "model", "untrusted"},
    "load": {"apis", "host", "model", "records", "untrusted"},
    "mockserver": {"__version__", "errors", "host"},
    "store": {"errors", "host", "model", "records", "untrusted"},
    "conditions": {"metrics", "model", "records"},
    "plan": {"model", "spec"},
    "claims": {"errors", "host", "model", "spec"},
    "workload": {"errors", "host", "model", "records", "spec", "store", "untrusted"},
    "validity": {"conditions", "errors", "metrics", "model", "records", "untrusted"},
    "engines": {"apis", "client", "errors", "host", "mockserver", "model", "spec", "untrusted", "workload"},
    "kit": {"__version__", "engines", "errors", "host", "spec"},
    "agreement": {"errors", "metrics", "model", "spec", "stats", "validity", "workload"},
    "verdicts": {"conditions", "errors", "metrics", "model", "spec", "stats", "validity"},
    "sampling": {"__version__", "client", "engines", "errors", "host", "model", "records", "untrusted"},
    "cluster": {"__version__", "errors", "host", "load", "model", "records", "sampling"},
    "probe": {
        "apis",
        "client",
        "engines",
        "errors",
        "host",
        "load",
        "model",
        "records",
        "spec",
        "untrusted",
        "workload",
    },
    "report": {"verdicts", "errors", "metrics", "model", "records", "store", "validity"},
    "summary": {
        "agreement",
        "claims",
        "conditions",
        "verdicts",
        "errors",
        "metrics",
        "model",
        "records",
        "store",
        "validity",
    },
    "doctor": {
        "apis",
        "__version__",
        "cluster",
        "errors",
        "host",
        "load",
        "metrics",
        "mockserver",
        "model",
        "records",
        "sampling",
        "store",
        "untrusted",
        "validity",
        "workload",
    },
    "imports": {"__version__", "conditions", "errors", "host", "metrics", "model", "records", "store"},
    "nightly": {"verdicts", "errors", "host", "model", "report", "spec", "store"},
    "run": {
        "agreement",
        "apis",
        "cluster",
        "verdicts",
        "doctor",
        "engines",
        "errors",
        "host",
        "load",
        "metrics",
        "model",
        "plan",
        "probe",
        "records",
        "sampling",
        "spec",
        "store",
        "summary",
        "untrusted",
        "validity",
        "workload",
    },
    "tune": {
        "host",
        "engines",
        "errors",
        "load",
        "metrics",
        "model",
        "plan",
        "run",
        "sampling",
        "spec",
        "store",
        "validity",
    },
    "python": {"verdicts", "errors", "model", "report", "run", "store"},
    "cli": {
        "apis",
        "claims",
        "client",
        "cluster",
        "conditions",
        "verdicts",
        "doctor",
        "engines",
        "errors",
        "host",
        "imports",
        "kit",
        "load",
        "metrics",
        "mockserver",
        "model",
        "nightly",
        "plan",
        "probe",
        "report",
        "run",
        "sampling",
        "spec",
        "store",
        "summary",
        "tune",
        "untrusted",
        "validity",
        "workload",
    },
}

# room -> libraries it may not touch
FORBIDDEN = {
    "stats": {"httpx", "matplotlib", "os", "pandas", "pathlib"},
    "metrics": {"httpx", "matplotlib", "os", "pandas", "pathlib"},
    "load": {"duckdb", "matplotlib", "pandas"},
    "conditions": {"httpx", "matplotlib", "pandas", "pathlib"},
    "plan": {"asyncio", "httpx", "socket", "time"},
    "workload": {"asyncio", "httpx", "matplotlib", "pandas", "socket", "time"},
    "validity": {"httpx", "matplotlib", "pandas", "pathlib"},
    "verdicts": {"docker", "httpx", "matplotlib", "pandas", "socket"},
    "report": {"docker", "httpx", "socket"},
    "summary": {"docker", "httpx", "pathlib"},
}


def import_table():
    """The rules above, as docs/architecture.md shows them."""

    def listed(names):
        return ", ".join(f"`{name}`" for name in sorted(names)) or "–"

    rows = [
        f"| `{room}` | {listed(rooms)} | {listed(FORBIDDEN.get(room, ()))} |"
        for room, rooms in sorted(ALLOWED.items())
    ]
    return "\n".join(["| room | may import | may not import |", "|---|---|---|", *rows])


def with_table(page):
    before, start, rest = page.partition("<!-- imports -->")
    _, end, after = rest.partition("<!-- /imports -->")
    return f"{before}{start}\n{import_table()}\n{end}{after}"


def test_rooms_import_only_rooms_above_them():
    above = {"__version__"}
    for room, rooms in ALLOWED.items():
        assert rooms <= above
        above.add(room)


def test_the_architecture_page_shows_these_rules():
    page = PAGE.read_text(encoding="utf-8")
    assert with_table(page) == page, "stale: run python tests/unit/test_rooms.py"


def test_the_architecture_page_says_what_each_room_owns():
    owned = PAGE.read_text(encoding="utf-8").partition("## What each room owns")[2].partition("\n## ")[0]
    named = {line.split("`")[1] for line in owned.splitlines() if line.startswith("| `")}
    assert named == set(ALLOWED) == {room for room, _path in room_files()}


BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")  # fields of statements that hold statements


def statements(node):
    """All below a node. Expressions, which hold none, are most of a tree and are left out."""
    for block in BLOCKS:
        for child in getattr(node, block, ()):
            yield child
            yield from statements(child)


@functools.cache
def imports(path):
    found = set()
    for node in statements(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names if node.module == "harness"}
    return found


def room_files():
    for path in sorted(HARNESS.rglob("*.py")):
        parts = path.relative_to(HARNESS).parts
        room = parts[0].removesuffix(".py")
        # Shims run inside an engine's environment and import nothing of ours.
        if room not in ("__init__", "__main__"):
            yield room, path


def reached(room, path):
    """What a file imports and may not."""
    modules = imports(path)
    own = {name.split(".")[1] for name in modules if name.startswith("harness.") and "." in name}
    libraries = {name.split(".")[0] for name in modules}
    return (own - {room, "__version__"} - ALLOWED[room]) | (libraries & FORBIDDEN.get(room, set()))


def test_a_room_imports_only_what_lies_before_it():
    files = list(room_files())
    assert len(files) > 500
    assert {str(path): found for room, path in files if (found := reached(room, path))} == {}


def test_only_the_package_is_imported_never_the_folders_beside_it():
    for path in HARNESS.rglob("*.py"):
        assert not {name.split(".")[0] for name in imports(path)} & {
            "backends",
            "workloads",
            "compose",
            "results",
            "tests",
        }


# What opens a conversation with a server; each has its limits to be kept in one place.
TALKS = re.compile(
    r"httpx\.(Async)?(Client|HTTPTransport)\(|httpx\.(get|post|request|stream)\(|http\.client|urlopen|build_opener"
    r"|httpcore\.(Async)?ConnectionPool\("
)
MAY_TALK = {
    "client/client.py": "the bounded client itself",
    "client/transport.py": "its sockets",
    "client/look_up.py": "the bounded client of the sampler, which must be light",
    "load/httpx_carrier.py": "the load through proxies that the fast loop does not know",
    "load/wire.py": "builds requests and sends none",
    "mockserver/process.py": "the scripted server that it started itself",
    "mockserver/images.py": "images that a request names, on 127.0.0.1 alone",
}


def test_servers_are_spoken_to_through_the_bounded_client_only():
    sources = {str(path.relative_to(HARNESS)): text_of(path) for path in HARNESS.rglob("*.py")}
    assert {name for name, source in sources.items() if TALKS.search(source)} == set(MAY_TALK)


def test_files_stay_small():
    lengths = {path: len(text_of(path).splitlines()) for path in HARNESS.rglob("*.py")}
    assert {path: lines for path, lines in lengths.items() if lines > 400} == {}


COMMANDS = [
    ["--help"],
    ["run", "--help"],
    ["--version"],
    ["list", "--help"],
    ["doctor", "--help"],
    ["probe", "--help"],
    ["query", "--help"],
    ["export", "--help"],
    ["cluster", "--help"],
]


@pytest.fixture(scope="module")
def loaded():
    """What each command has loaded at its end. Each is a fork of a process that has only the command line."""
    code = f"""
import os, sys
from harness.cli.main import main
for command in {COMMANDS!r}:
    pid = os.fork()
    if pid == 0:
        try:
            main(command)
        except SystemExit:
            pass
        print(*{{name.split('.')[0] for name in sys.modules}}, file=sys.stderr, flush=True)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [set(line.split()) for line in done.stderr.splitlines()]


@pytest.mark.parametrize("number", range(len(COMMANDS)), ids=[" ".join(command) for command in COMMANDS])
def test_help_loads_nothing_heavy(number, loaded):
    assert len(loaded) == len(COMMANDS)
    assert "harness" in loaded[number]
    heavy = {
        "pandas",
        "numpy",
        "matplotlib",
        "docker",
        "pynvml",
        "httpx",
        "duckdb",
        "uvloop",
        "psutil",
        "ray",
    }
    assert not heavy & loaded[number]


@pytest.mark.parametrize(
    ("module", "heavy"),
    [("harness.sampling.sampler", ("numpy", "httpx")), ("harness.mockserver.server", ("numpy", "msgspec"))],
)
def test_what_is_started_for_every_cell_and_engine_starts_light(module, heavy):
    code = f"import sys, {module}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not set(heavy) & set(loaded.split())


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
