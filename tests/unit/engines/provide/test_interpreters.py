"""The Python of an environment: ours if its packages are made for it, else the machine's, else one of uv."""

import subprocess
import sys

import pytest

from harness.engines.provide import interpreters
from harness.engines.provide.interpreters import creating, made_for, python_of, unfit_python
from harness.errors import SetupError
from harness.spec.backend import Install
from harness.spec.backend_refs import load_backend

PROGRAM = "#!/bin/sh\nexit {code}\n"


@pytest.fixture
def path(tmp_path, monkeypatch):
    """The only folder of programs; `OURS` is a Python that nothing is made for."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
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
    assert creating(sglang, "sglang", tmp_path) == [sys.executable, "-m", "venv", str(tmp_path)]


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
    assert creating(sglang, "sglang", tmp_path) == [older, "-m", "venv", str(tmp_path)]


def test_uv_fetches_the_newest_where_the_machine_has_none(path, sglang, tmp_path):
    uv = program(path, "uv")
    assert python_of(sglang, "sglang") == (3, 13)
    assert creating(sglang, "sglang", tmp_path) == [uv, "venv", "--seed", "--python", "3.13", str(tmp_path)]


def test_without_both_it_is_refused_with_what_would_do(path, sglang, tmp_path):
    with pytest.raises(SetupError) as refused:
        creating(sglang, "sglang", tmp_path)
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


@pytest.mark.usefixtures("path")
def test_a_lock_of_other_machines_is_refused_whatever_the_python(sglang, monkeypatch):
    monkeypatch.setattr(interpreters, "_complete", lambda _locked, _python: False)
    error = unfit_python(sglang, "sglang")
    assert error.what.endswith(" has no file for this machine, whatever its Python")
    assert "cffi 2." in error.what, "the first that has none for this Python"
    assert "attach to a running server" in error.hint


def test_a_program_is_tried_once(path, sglang, monkeypatch):
    program(path, "python3.13")
    tried, run = [], subprocess.run
    monkeypatch.setattr(
        subprocess, "run", lambda *given, **named: tried.append(given) or run(*given, **named)
    )
    assert [python_of(sglang, "sglang") for _ in range(3)] == [(3, 13)] * 3
    assert len(tried) == 1
