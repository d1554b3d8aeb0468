"""The Python of an environment: ours if its packages are made for it, else the machine's, else one of uv."""

import platform
import subprocess
import sys

import pytest

from harness.cli.main import main
from harness.engines.provide import install, interpreters
from harness.engines.provide.interpreters import creating, made_for, python_of, unfit_python
from harness.engines.provide.locks import Locked, Wheel
from harness.engines.provide.pip import find_uv
from harness.errors import ExitCode, SetupError
from harness.spec.backend import Install
from harness.spec.backend_refs import load_backend

LINUX = f"manylinux_2_17_{platform.machine()}"
VENV = ("venv", "--project", "/")
PROGRAM = "#!/bin/sh\nexit {code}\n"


@pytest.fixture
def path(tmp_path, monkeypatch):
    """The only folder of programs; `OURS` is a Python that nothing is made for."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "own" / "python"))
    monkeypatch.setattr(interpreters, "OURS", (3, 19))
    interpreters._runs.cache_clear()
    return folder


@pytest.fixture
def sglang():
    return load_backend("sglang").process.install


def program(folder, name, code=0):
    file = folder / name
    file.write_text(PROGRAM.format(code=code))
    file.chmod(0o755)
    return str(file)


def test_ours_is_the_one_where_the_packages_are_made_for_it(sglang, monkeypatch, tmp_path):
    monkeypatch.setattr(interpreters, "OURS", (3, 12))
    assert made_for(sglang, "sglang") == [(3, 12)]
    assert unfit_python(sglang, "sglang") is None
    command = creating(python_of(sglang, "sglang"), tmp_path)
    assert command == [sys.executable, "-I", "-m", "venv", str(tmp_path)]


@pytest.mark.usefixtures("path")
def test_without_a_lock_or_out_of_a_kit_it_is_ours(sglang, monkeypatch):
    assert made_for(Install(("tinyengine==1",)), "tiny") == [(3, 19)]
    monkeypatch.setenv("BENCH_KIT", "/kit")
    assert made_for(sglang, "sglang") == [(3, 19)]


def test_of_those_that_the_packages_are_made_for_the_newest_on_the_machine_is_taken(path, sglang, tmp_path):
    assert made_for(sglang, "sglang") == [(3, 13), (3, 12), (3, 11)]
    program(path, "python3.11")
    older = program(path, "python3.12")
    program(path, "python3.13", code=127)  # as pyenv leaves one that is not installed
    program(path, "python3.14")
    program(path, "uv")
    assert python_of(sglang, "sglang") == (3, 12)
    assert creating((3, 12), tmp_path) == [older, "-I", "-m", "venv", str(tmp_path)]


def test_uv_fetches_the_newest_where_the_machine_has_none(path, sglang, tmp_path):
    uv = program(path, "uv")
    assert python_of(sglang, "sglang") == (3, 13)
    assert creating((3, 13), tmp_path) == [uv, *VENV, "--seed", "--python", "3.13", str(tmp_path)]


def test_without_both_it_is_refused_with_what_would_do(path, monkeypatch, tmp_path):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    with pytest.raises(SetupError) as refused:
        install.install_engine(load_backend("sglang"), print)
    assert refused.value.where == "sglang"
    assert refused.value.what == (
        "its packages are made for Python 3.11, 3.12 and 3.13, not for 3.19, and this machine has none of "
        "these, nor uv"
    )
    assert refused.value.hint == "pip install uv, which fetches one, or install python3.13 with its venv"
    declared = Install(("tinyengine==1",), python="3.12")
    assert "made for Python 3.12, not for 3.19, and this machine has no such Python, nor uv" in str(
        unfit_python(declared, "tiny")
    )
    program(path, "python3.12")
    assert unfit_python(declared, "tiny") is None


def wheels(name, *tags):
    return Locked(name, "1", "", tuple(Wheel(f"{name}-1-{tag}.whl", 1, "a") for tag in tags))


CFFI = wheels("cffi", *(f"cp3{minor}-cp3{minor}-{LINUX}" for minor in (11, 12, 13)))


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(
    ("python", "others", "what"),
    [
        ("", (wheels("kernel", "cp311-cp311-win_amd64"),), "kernel 1 has no file for this machine"),
        (
            "",
            (wheels("only", f"cp314-cp314-{LINUX}"),),
            "no Python from 3.11 on has files of all its packages",
        ),
        ("3.14", (), "cffi 1 has no file for this machine and Python 3.14"),
    ],
)
def test_a_lock_for_others_is_refused_with_what_it_lacks(monkeypatch, python, others, what):
    monkeypatch.setattr(interpreters, "locked_files", lambda _install, _name: [CFFI, *others])
    recipe = Install(("tinyengine==1",), lock="tiny.txt", python=python)
    assert made_for(recipe, "tiny") == []
    error = unfit_python(recipe, "tiny")
    assert error.what == what
    assert "attach to a running server" in error.hint


def test_without_pip_for_our_venv_uv_makes_it(path, monkeypatch, tmp_path):
    unlocked = Install(("tinyengine==1",))
    monkeypatch.setattr(interpreters, "find_spec", lambda name: None if name == "ensurepip" else name)
    assert "no venv with pip" in str(unfit_python(unlocked, "tiny"))
    uv = program(path, "uv")
    assert creating(interpreters.OURS, tmp_path) == [uv, *VENV, "--seed", "--python", "3.19", str(tmp_path)]


def test_uv_is_found_next_to_our_python(path, tmp_path):
    assert find_uv() is None
    (tmp_path / "own").mkdir()
    own = program(tmp_path / "own", "uv")
    assert find_uv() == own
    elsewhere = program(path, "uv")
    assert find_uv() == elsewhere


def test_a_program_is_tried_once(path, sglang, monkeypatch):
    program(path, "python3.13")
    tried, run = [], subprocess.run
    monkeypatch.setattr(
        subprocess, "run", lambda *given, **named: tried.append(given) or run(*given, **named)
    )
    assert [python_of(sglang, "sglang") for _ in range(3)] == [(3, 13)] * 3
    assert len(tried) == 1


def test_an_environment_keeps_its_python_when_a_newer_one_appears(path, monkeypatch):
    program(path, "python3.13")
    definition = load_backend("sglang")
    there = install._folder(definition, (3, 12))
    facts = install._Built({}, "1", "")
    monkeypatch.setattr(install, "completed", lambda folder, _kind: facts if folder == there else None)
    assert install.installed(definition).python.is_relative_to(there)
    assert install.python_for(definition) == (3, 12)
    assert any("-cp312-" in wheel.file for wheel in install.planned(definition, print))


def test_it_is_built_again_with_its_python_while_that_can_be_had(path, monkeypatch, tmp_path):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    definition = load_backend("sglang")
    there = install._folder(definition, (3, 12))
    facts = install._Built({}, "1", "")
    monkeypatch.setattr(install, "completed", lambda folder, _kind: facts if folder == there else None)
    asked = []
    monkeypatch.setattr(install, "_build", lambda *words: asked.append(words[2]) or facts)
    program(path, "python3.13")
    program(path, "python3.12")
    install.install_engine(definition, print, force=True)
    (path / "python3.12").unlink()
    install.install_engine(definition, print, force=True)
    assert asked == [(3, 12), (3, 13)]


@pytest.mark.usefixtures("path")
def test_a_dry_run_says_that_this_machine_lacks_the_python(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    assert main(["engines", "install", "sglang", "--device", "cpu", "--dry-run"]) == ExitCode.OK
    *_, state, warning = capsys.readouterr().out.splitlines()
    assert state.startswith("for Python 3.13; nothing was downloaded")
    assert warning.startswith("warning: not on this machine: its packages are made for Python 3.11, 3.12 and")
