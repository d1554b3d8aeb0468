"""Locks of environments: what uv found, as pip obeys it and `--dry-run` shows it."""

import dataclasses
import platform
import stat
import sys

import pytest

from harness.cli.main import main
from harness.engines.provide import interpreters, locks
from harness.engines.provide.install import lock, planned
from harness.errors import ExitCode, SetupError, SpecError
from harness.host import paths
from harness.spec.backend import Backend, CudaProcess, Header, Install, Process, Server
from harness.spec.backend_refs import load_backend

LINUX = f"manylinux_2_17_{platform.machine()}"
# Name, version, where it is needed; of each file its name, size and hash.
FOUND = (
    (
        ("tinyengine", "1.5", ""),
        (f"tinyengine-1.5-cp311-cp311-{LINUX}.whl", 11_000_000, "a1"),
        (f"tinyengine-1.5-cp312-cp312-{LINUX}.whl", 12_000_000, "a2"),
        (f"tinyengine-1.5-cp313-cp313-{LINUX}.whl", 13_000_000, "a3"),
        (f"tinyengine-1.5-cp310-cp310-{LINUX}.whl", 1, "b1"),
        ("tinyengine-1.5-cp311-cp311-win_amd64.whl", 2, "b2"),
        ("tinyengine-1.5-cp311-cp311-macosx_11_0_arm64.whl", 3, "c1"),
    ),
    (
        ("tinydep", "2.0", "python_full_version < '3.13'"),
        ("tinydep-2.0%2Blocal-py3-none-any.whl", 500_000, "d1"),
    ),
    (("onlywindows", "1", "sys_platform == 'win32'"), ("onlywindows-1-cp311-cp311-win_amd64.whl", 2, "e1")),
)


def as_uv_writes(found):
    for (name, version, marker), *files in found:
        yield f'[[packages]]\nname = "{name}"\nversion = "{version}"\nmarker = "{marker}"'
        for file, size, digest in files:
            yield f'[[packages.wheels]]\nurl = "https://x.test/a/{file}"\nsize = {size}'
            yield f'hashes = {{ sha256 = "{digest}" }}'


UV = """#!{python}
import json, sys
from pathlib import Path
words = sys.argv[1:]
here = Path({folder!r})
asked = Path(next(word for word in words if word.endswith("in.txt")))
without = Path(words[words.index("--excludes") + 1])
(here / "settings.toml").write_text(Path(words[words.index("--project") + 1], "pyproject.toml").read_text())
(here / "asked.json").write_text(json.dumps([asked.read_text().split(), without.read_text().split()]))
Path(words[words.index("--output-file") + 1]).write_text((here / "found.toml").read_text())
"""


def backend(install, cuda=True):
    process = CudaProcess(("x",), install=install, cuda=13) if cuda else Process(("x",), install=install)
    return Backend(Header("tiny", "Tiny", "MIT", "", weights="none"), Server("/", 1), process=process)


@pytest.fixture
def uv(tmp_path, monkeypatch):
    """A machine whose uv always finds the same; returns the folder that it works in."""
    (tmp_path / "found.toml").write_text("\n".join(as_uv_writes(FOUND)))
    (tmp_path / "uv").write_text(UV.format(python=sys.executable, folder=str(tmp_path)))
    (tmp_path / "uv").chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stored(folder, text, name="tiny.txt"):
    (folder / "backends" / "locks").mkdir(parents=True)
    (folder / "backends" / "locks" / name).write_text(text)


def test_a_lock_has_the_files_of_linux_and_of_no_old_python(uv):
    install = Install(("tinyengine==1.5",), version_of="tinyengine", lock="tiny.txt")
    text = lock(backend(install), "bench engines lock tiny", print)
    assert "://" not in text
    assert [line for line in text.splitlines() if line.startswith(("tiny", "only"))] == [
        "tinyengine==1.5 \\",
        "tinydep==2.0 ; python_full_version < '3.13' \\",
    ]
    assert [
        text.count(f"sha256:{digest}") for digest in ("a1", "a2", "a3", "b1", "b2", "c1", "d1", "e1")
    ] == [*(1, 1, 1, 0, 0, 0, 1, 0)]
    other = lock(backend(install, cuda=False), "bench engines lock tiny", print)
    assert other.count("sha256:c1") == 1, "engines for a CPU run on macOS too"


@pytest.mark.parametrize(("ours", "minor"), [(11, 11), (12, 12), (13, 13), (14, 13)])
def test_what_a_lock_says_is_what_it_was_made_of(uv, monkeypatch, ours, minor):
    monkeypatch.setattr(interpreters, "OURS", (3, ours))
    install = Install(("tinyengine==1.5",), version_of="tinyengine", lock="tiny.txt")
    stored(uv, lock(backend(install), "bench engines lock tiny", print))
    files = planned(backend(install), pytest.fail)
    assert files[0].file.startswith(f"tinyengine-1.5-cp3{minor}-")
    assert files[0].size_bytes == minor * 1_000_000
    assert [one.file for one in files[1:]] == ["tinydep-2.0+local-py3-none-any.whl"] * (minor < 13)
    if ours == minor:  # without a lock nothing is known of another Python
        assert planned(backend(dataclasses.replace(install, lock="")), print) == files, (
            "found again: the same"
        )
    other = dataclasses.replace(install, python="3.13")
    assert [one.file for one in planned(backend(other), print)] == [
        files[0].file.replace(f"cp3{minor}", "cp313")
    ]
    none = dataclasses.replace(install, python="3.14")
    with pytest.raises(SetupError, match=r"tinyengine 1.5 has no file for Python 3.14"):
        planned(backend(none), print)


def test_a_lock_of_other_requirements_is_refused(uv):
    install = Install(("tinyengine==1.5",), version_of="tinyengine", lock="tiny.txt")
    stored(uv, lock(backend(install), "bench engines lock tiny", print))
    for changed in (
        dataclasses.replace(install, requirements=("tinyengine==1.6",)),
        dataclasses.replace(install, without=("tinydep",)),
        dataclasses.replace(install, torch="2.0"),
    ):
        with pytest.raises(SpecError, match="is of other requirements") as caught:
            planned(backend(changed), print)
        assert "bench engines lock tiny" in caught.value.hint


def test_torch_and_what_is_left_out_are_not_asked_for(uv):
    install = Install(("tinyengine==1.5",), torch="2.0", without=("TorchVision",), version_of="tinyengine")
    lock(backend(install, cuda=False), "x", print)
    assert '["tinyengine==1.5"], ["torch", "torchvision"]' in (uv / "asked.json").read_text()
    assert "[tool.uv]\nenvironments = [" in (uv / "settings.toml").read_text()


def test_the_size_of_a_file_in_a_local_folder_is_read_from_it(uv):
    """uv writes none for what UV_FIND_LINKS names."""
    install = Install(("tinyengine==1.5",), version_of="tinyengine", lock="tiny.txt")
    wheel = uv / "a folder" / "tinyengine-1.5-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.write_bytes(bytes(7))
    found = '[[packages]]\nname = "tinyengine"\nversion = "1.5"\n[[packages.wheels]]\n'
    (uv / "found.toml").write_text(f'{found}url = "{wheel.as_uri()}"\nhashes = {{ sha256 = "a1" }}\n')
    assert f"# {wheel.name} 7\n" in lock(backend(install), "bench engines lock tiny", print)


def test_an_index_that_tells_no_sizes_makes_no_lock(uv):
    """One that answers in HTML has none."""
    install = Install(("tinyengine==1.5",), version_of="tinyengine", lock="tiny.txt")
    found = "\n".join(as_uv_writes(FOUND)).replace("\nsize = ", "\n# ")
    (uv / "found.toml").write_text(found)
    with pytest.raises(SetupError, match="its index does not tell its size") as caught:
        lock(backend(install), "bench engines lock tiny", print)
    assert caught.value.where.startswith("tinyengine-1.5-cp311-")


@pytest.mark.parametrize(
    "source", ['archive = { path = "tinydep-2.0.zip" }', 'vcs = { type = "git", url = "x" }']
)
def test_what_is_from_no_index_makes_no_lock(uv, source):
    """`tinydep @ file:///…`: pip finds no such version in an index."""
    install = Install(("tinyengine==1.5",), version_of="tinyengine", lock="tiny.txt")
    (uv / "found.toml").write_text(f'[[packages]]\nname = "tinydep"\nversion = "2.0"\n{source}\n')
    with pytest.raises(SetupError, match="is from no index") as caught:
        lock(backend(install), "bench engines lock tiny", print)
    assert (caught.value.where, "NAME==VERSION" in caught.value.hint) == ("tinydep", True)


def test_without_uv_nothing_is_resolved(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    with pytest.raises(SetupError, match="needs uv"):
        lock(backend(Install(("tinyengine==1.5",))), "x", print)


def test_a_hand_written_lock_shows_no_sizes(uv):
    stored(uv, "tinyengine==1.5 --hash=sha256:a1\n")
    with pytest.raises(SpecError, match="does not list its files"):
        planned(backend(Install(("tinyengine==1.5",), lock="tiny.txt")), print)


SHIPPED = [
    (name, process)
    for name in sorted(set(paths.definitions("backends")) - {"models"})
    for process in (load_backend(name).process, load_backend(name).process_cuda)
    if process and process.install
]


@pytest.mark.parametrize(("name", "process"), SHIPPED, ids=lambda one: one if isinstance(one, str) else "")
def test_every_shipped_environment_is_locked_as_its_definition_says(name, process):
    install = process.install
    if install.index:
        assert not install.lock
        return
    assert install.lock, f"{name}: bench engines lock"
    found = locks.read_lock(install, name)  # refused where it is of other requirements
    assert all(wheel.size_bytes > 0 for one in found for wheel in one.wheels)
    versions = {one.name: one.version for one in found}
    for requirement in install.requirements:
        wanted, _, version = requirement.partition("==")
        assert version in ("", versions[locks.canonicalize_name(wanted.partition("[")[0])])
    assert not {"torch", *install.without} & versions.keys() or not install.torch


def test_wheels_of_another_index_are_not_looked_for_without_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "PIP_FIND_LINKS", "UV_INDEX", "UV_DEFAULT_INDEX"):
        monkeypatch.delenv(name, raising=False)
    for words in (["install"], ["install", "--dry-run"]):
        assert main(["engines", *words, "tensorrt-llm", "--device", "cuda"]) == ExitCode.SETUP
        assert "its wheels are on NVIDIA's package index" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["vllm", "sglang", "lmdeploy"])
def test_what_a_gpu_box_would_get_is_shown_anywhere(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["engines", "install", name, "--device", "cuda", "--dry-run"]) == ExitCode.OK
    said = capsys.readouterr().out.splitlines()
    (count,) = [int(line.split()[1]) for line in said if " files, " in line]
    rows = [line.split() for line in said if line.startswith("  ")]
    assert len(rows) == count > 50
    assert all(unit == "MB" for _, unit, _ in rows)
    assert any(file.startswith("torch-") for _, _, file in rows)
    assert said[count].startswith(f"{name}: {count} files, ")  # below the list, where the screen ends
    assert said[-1] == "warning: its packages for CUDA were not run on a GPU yet"
    assert list(tmp_path.iterdir()) == []
