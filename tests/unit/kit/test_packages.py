import json

import pytest

from harness.errors import SpecError
from harness.kit.packages import read_has
from harness.kit.target import target


@pytest.mark.parametrize(
    "text",
    [
        "Package    Version\n---------- -------\nNumPy      2.5.2\ntorch 2.11.0+cu130\npip 26\n",
        "numpy==2.5.2\ntorch==2.11.0+cu130\n",
        json.dumps([{"name": "numpy", "version": "2.5.2"}, {"name": "torch", "version": "2.11.0+cu130"}]),
    ],
    ids=["list", "freeze", "json"],
)
def test_what_pip_lists_is_read_in_each_of_its_forms(tmp_path, text):
    (tmp_path / "have.txt").write_text(text)
    assert read_has(tmp_path / "have.txt") == {"numpy": "2.5.2", "torch": "2.11.0+cu130"}


def test_a_name_alone_is_of_a_version_that_is_not_known(tmp_path):
    (tmp_path / "have.txt").write_text("torch 2.11.0\npsutil\nimportlib_metadata\n")
    assert read_has(tmp_path / "have.txt") == {"torch": "2.11.0", "psutil": "", "importlib-metadata": ""}


@pytest.mark.parametrize("text", ["", "\n\n", "!!"])
def test_a_file_that_lists_nothing_is_an_error(tmp_path, text):
    (tmp_path / "have.txt").write_text(text)
    with pytest.raises(SpecError, match="lists no package"):
        read_has(tmp_path / "have.txt")


def test_a_target_names_processor_and_python():
    found = target("linux-x86_64-py312")
    assert (found.cpu, found.python) == ("x86_64", (3, 12))
    assert "manylinux_2_17_x86_64" in found.for_pip
    assert "cp312" in found.for_pip


def test_wheels_for_a_newer_c_library_are_taken_where_it_is_there():
    usual, newer = target("linux-x86_64-py312"), target("linux-x86_64-py312", "2.35")
    assert "manylinux_2_28_x86_64" in usual.for_pip
    assert "manylinux_2_34_x86_64" not in usual.for_pip
    assert newer.for_pip.index("manylinux_2_35_x86_64") < newer.for_pip.index("manylinux_2_34_x86_64")
    assert newer.for_uv[-1] == "x86_64-manylinux_2_35"
    assert set(usual.for_pip) < set(newer.for_pip)


@pytest.mark.parametrize("glibc", ["", "2", "2.29", "2.41", "3.28", "musl"])
def test_an_unknown_c_library_is_an_error_with_those_that_are_known(glibc):
    with pytest.raises(SpecError) as caught:
        target("linux-x86_64-py312", glibc)
    assert caught.value.where == "--glibc"
    assert "2.28, 2.31" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "name", ["", "linux", "linux-x86_64-py310", "linux-riscv-py312", "macos-arm64-py312", "py312"]
)
def test_an_unknown_target_is_an_error_with_an_example(name):
    with pytest.raises(SpecError) as caught:
        target(name)
    assert "linux-x86_64-py312" in (caught.value.hint or "")
