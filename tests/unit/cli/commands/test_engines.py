"""`bench engines`: what is listed, shown, installed and locked; nothing is asked of a package index."""

import json
from types import SimpleNamespace

import pytest

from harness.cli.main import main
from harness.engines.check import outdated
from harness.engines.check.outdated import Pin, Read
from harness.engines.provide import install
from harness.engines.provide.locks import Wheel
from harness.errors import ExitCode, SetupError
from harness.spec.backend_refs import load_backend

WHEELS = [Wheel("a-1.whl", 2_600_000, ""), Wheel("torchthing.whl", 1_200_000_000, "")]
LOCK = "a==1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"


@pytest.fixture
def provided(monkeypatch, tmp_path):
    """`provided.here` are environments by engine, `provided.asked` what would have been built or resolved."""
    found = SimpleNamespace(here={}, asked=[], room=tmp_path)

    def build(definition, _say, *, force):
        found.asked.append((definition.name, force))
        return SimpleNamespace(version="9.8", python="/env/bin/python")

    def lock(definition, command, _say):
        found.asked.append((definition.name, command))
        return LOCK

    monkeypatch.setattr(install, "installed", lambda definition: found.here.get(definition.name))
    monkeypatch.setattr(install, "size_mb", lambda definition: 1210 * (definition.name == "transformers"))
    monkeypatch.setattr(install, "install_engine", build)
    monkeypatch.setattr(install, "planned", lambda _definition, _say: WHEELS)
    monkeypatch.setattr(install, "python_for", lambda _definition: (3, 12))
    monkeypatch.setattr(install, "lock", lock)
    monkeypatch.chdir(tmp_path)
    return found


def engines(capsys, *words):
    code = main(["engines", *words])
    said = capsys.readouterr()
    return code, said.out.splitlines(), said.err


def test_each_environment_is_a_line_with_its_state(provided, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    provided.here["sglang"] = SimpleNamespace(version="0.5.9")
    _code, lines, _err = engines(capsys, "list")
    states = {line[:19].rstrip(): line[20:] for line in lines}
    assert len(states) == len(lines) > 10
    assert states["transformers"] == "not installed (about 1,210 MB)"
    assert states["sglang"] == "installed, 0.5.9"
    assert states["vllm"] == "not installed"
    mark = "its packages for CUDA were not run on a GPU yet"
    unpacked = "not installed (more than the 1,210 MB of the downloads)"
    assert states["transformers (cuda)"] == f"{unpacked}; {mark}"
    assert "openai" not in states


def test_a_state_is_broken_next_to_its_name_on_a_narrow_terminal(provided, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    _code, lines, _err = engines(capsys, "list")
    first = lines.index("transformers (cuda) not installed (more than the 1,210 MB of")
    assert lines[first + 1] == " " * 20 + "the downloads); its packages for CUDA"


def test_what_would_be_installed_is_shown_with_sizes_and_nothing_is(provided, capsys):
    code, lines, _err = engines(capsys, "install", "transformers", "--device", "cpu", "--dry-run")
    assert code == ExitCode.OK
    assert provided.asked == []
    rows = [line.split() for line in lines[:2]]
    assert rows == [["2.6", "MB", "a-1.whl"], ["1,200.0", "MB", "torchthing.whl"]]
    assert lines[2] == "transformers: 2 files, 1,203 MB, locked in transformers.txt"
    assert lines[3].startswith("before them torch ")
    assert lines[4:] == ["for Python 3.12; nothing was downloaded or installed"]
    provided.here["vllm"] = SimpleNamespace(version="0.32.0")
    _code, lines, _err = engines(capsys, "install", "vllm", "--device", "cuda", "--dry-run")
    assert lines[-2].startswith("for Python 3.12, a driver for CUDA 1")
    assert lines[-2].endswith("; it is installed already")
    assert lines[-1] == "warning: its packages for CUDA were not run on a GPU yet"


@pytest.mark.parametrize(("flags", "force"), [([], False), (["--force"], True)])
def test_each_name_is_installed(provided, capsys, flags, force):
    code, lines, err = engines(capsys, "install", "transformers", "sglang", "--device", "cpu", *flags)
    assert (code, lines) == (ExitCode.OK, [])
    assert provided.asked == [("transformers", force), ("sglang", force)]
    assert "transformers 9.8: /env/bin/python" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["install", "openai"], "error: bench engines: 'openai' is not installed by bench"),
        (["install", "transformers", "vlm"], "did you mean 'vllm'"),
        (["lock", "transformers,vllm"], "error: bench engines lock transformers,vllm: one engine at a time"),
        (["lock", "llama-cpp-python"], "error: bench engines lock llama-cpp-python: its definition names no"),
    ],
)
def test_what_cannot_be_installed_or_locked_is_refused_before_anything_is(provided, capsys, words, says):
    code, lines, err = engines(capsys, *words)
    assert (code, lines) == (ExitCode.USAGE, [])
    assert says in err
    assert provided.asked == []


@pytest.mark.parametrize(
    ("flags", "name", "command"),
    [
        (["--device", "cpu"], "transformers.txt", "bench engines lock transformers --device cpu"),
        (["--device", "cuda"], "transformers-cuda.txt", "bench engines lock transformers --device cuda"),
    ],
)
def test_a_lock_is_written_here_with_the_command_that_makes_it(provided, capsys, flags, name, command):
    code, lines, _err = engines(capsys, "lock", "transformers", *flags)
    assert (code, lines) == (ExitCode.OK, [f"backends/locks/{name}: 2 hashes"])
    assert provided.asked == [("transformers", command)]
    assert (provided.room / "backends" / "locks" / name).read_text() == LOCK


def test_a_folder_that_cannot_be_is_known_before_packages_are_resolved(provided, capsys):
    (provided.room / "backends").write_text("")
    code, lines, err = engines(capsys, "lock", "transformers")
    assert (code, lines) == (ExitCode.SETUP, [])
    assert "error: bench engines lock transformers: backends is a file, not a folder" in err
    assert provided.asked == []


def test_pins_tools_and_images_are_a_list(provided, monkeypatch, capsys):
    pins = [("vllm", Pin("vllm", "0.32.0", "0.33.0")), ("vllm (cuda)", Pin("vllm", "0.33.0", "0.33.0"))]
    monkeypatch.setattr(outdated, "packages", lambda known, _say: [one for one in pins if one[0] in known])
    asked = {}

    def read(known, _say):
        asked.update(known)
        if "gpustack" in known:
            raise SetupError("no matching distribution")
        return [(name, Read(name, "0.3", "0.4")) for name in ("xinference", "aiperf") if name in known]

    monkeypatch.setattr(outdated, "tools", read)
    monkeypatch.setattr(outdated, "images", lambda _definitions, _say: ["images: not looked up"])
    code, lines, _err = engines(capsys, "outdated")
    assert code == ExitCode.OK
    assert lines == [
        "vllm                0.32.0 is pinned; try vllm==0.33.0",
        "vllm (cuda)         0.33.0 is the newest",
        "gpustack            not looked up: no matching distribution",
        "xinference          0.4 is out; its definitions and files were read in 0.3",
        "tool aiperf                0.4 is out; its definitions and files were read in 0.3",
        "images: not looked up",
    ]
    assert load_backend("xinference").facts.version.startswith(f"{asked['xinference']}; image ")


@pytest.mark.parametrize(("lacking", "code"), [({"vllm"}, ExitCode.OK), (None, ExitCode.SETUP)])
def test_a_package_that_the_index_lacks_hides_no_other_pin(provided, monkeypatch, capsys, lacking, code):
    """As that of a definition of one's own. Where nothing can be asked, it is one error."""

    def asked(known, _say):
        for name in known:
            if lacking is None or name in lacking:
                raise SetupError("no matching distribution")
            yield name, Pin(name, "1", "1")

    monkeypatch.setattr(outdated, "packages", asked)
    monkeypatch.setattr(outdated, "tools", lambda _known, _say: [])
    monkeypatch.setattr(outdated, "images", lambda _definitions, _say: [])
    ended, lines, err = engines(capsys, "outdated")
    assert ended == code
    if lacking is None:
        assert "error: no matching distribution" in err
    else:
        assert lines[-1] == "vllm                not looked up: no matching distribution"
        assert "vllm (cuda)         1 is the newest" in lines


def document(capsys, *words):
    assert main(["engines", *words, "--json"]) == ExitCode.OK
    return json.loads(capsys.readouterr().out)


def test_the_documents_of_the_actions(provided, monkeypatch, capsys):
    provided.here["sglang"] = SimpleNamespace(version="0.5.9")
    rows = {row["name"]: row for row in document(capsys, "list")}
    assert rows["sglang"] == {"name": "sglang", "version": "0.5.9", "download_mb": None, "about": ""}
    assert (rows["transformers"]["version"], rows["transformers"]["download_mb"]) == (None, 1210)
    assert "were not run on a GPU yet" in rows["transformers (cuda)"]["about"]
    sizes = [{"file": wheel.file, "size_bytes": wheel.size_bytes} for wheel in WHEELS]
    planned = document(capsys, "install", "transformers", "--device", "cpu", "--dry-run")
    assert planned == [{"name": "transformers", "files": sizes}]
    installed = document(capsys, "install", "transformers", "--device", "cpu")
    assert installed == [{"name": "transformers", "version": "9.8", "python": "/env/bin/python"}]
    lock = document(capsys, "lock", "transformers", "--device", "cpu")
    assert lock == {"file": "backends/locks/transformers.txt", "hashes": 2}
    pin = ("vllm", Pin("vllm", "1", "2"))
    monkeypatch.setattr(outdated, "packages", lambda known, _say: [pin] if "vllm" in known else [])
    read = [(name, Read(name, "0.3", "0.4")) for name in ("aiperf", "xinference")]
    monkeypatch.setattr(outdated, "tools", lambda known, _say: [one for one in read if one[0] in known])
    monkeypatch.setattr(outdated, "images", lambda _definitions, _say: ["images: not looked up"])
    assert document(capsys, "outdated") == {
        "engines": {"vllm": {"pinned": "1", "newest": "2"}},
        "systems": {"xinference": {"read_in": "0.3", "newest": "0.4"}},
        "tools": {"aiperf": {"read_in": "0.3", "newest": "0.4"}},
        "other": ["images: not looked up"],
    }
