"""An environment out of a kit, in a network namespace where there is root, else without an index."""

import ensurepip
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

from harness.engines.provide.install import install_engine
from harness.errors import SetupError
from harness.host import kit_env
from harness.kit.make import pack_tests
from harness.kit.parts import sum_of, unpack
from harness.spec.backend_refs import parse_backend
from tests.integration.wheels import make_wheel

CUT_OFF = ["unshare", "--net"] if os.geteuid() == 0 and shutil.which("unshare") else []


@pytest.fixture
def kit(tmp_path):
    folder = tmp_path / "kit"
    (folder / "environments").mkdir(parents=True)
    wheel = make_wheel(folder / "wheels", "tool", "2.0")
    systems = sysconfig.get_config_var("WHEEL_PKG_DIR")  # Debian's place for what others bundle
    bundled = next(Path(systems or Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"))
    shutil.copy(bundled, folder / "wheels")
    lock = f"tool==2.0 --hash=sha256:{sum_of(wheel)}\n"
    lock += f"pip=={bundled.name.split('-')[1]} --hash=sha256:{sum_of(bundled)}\n"
    (folder / "environments" / "tool.txt").write_text(lock)
    (folder / "kit.json").write_text(json.dumps({"target": "any", "box": False}))
    return folder


def made(kit, target):
    """In a process of its own, which no network can be reached from."""
    code = (
        "import sys; from pathlib import Path; from harness.host import kit_env\n"
        "print(kit_env.make(Path(sys.argv[1]), 'tool', Path(sys.argv[2])))"
    )
    command = [*CUT_OFF, sys.executable, "-c", code, str(kit), str(target)]
    done = subprocess.run(command, env=kit_env.using(kit, os.environ), capture_output=True, text=True)
    return done.stdout.strip(), done.stderr


def version(python):
    command = [python, "-I", "-c", "import tool; print(tool.VERSION)"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def test_an_environment_is_made_of_the_kit_alone(kit, tmp_path):
    python, _ = made(kit, tmp_path / "env")
    assert version(python) == "2.0"
    site = next((tmp_path / "env").glob("lib/python*/site-packages"))
    assert not (site / "box.pth").exists()
    assert made(kit, tmp_path / "env")[0] == python  # at once: it is there


@pytest.mark.long
def test_the_machines_own_packages_are_seen_where_the_kit_counts_on_them(kit, tmp_path):
    (kit / "kit.json").write_text(json.dumps({"target": "any", "box": True}))
    python, _ = made(kit, tmp_path / "env")
    command = [python, "-I", "-c", "import tool, msgspec; print(msgspec.__file__)"]
    seen = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert not seen.startswith(str(tmp_path))
    program = Path(python).with_name("pytest")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert "pytest" in done.stdout


@pytest.mark.long
def test_a_program_of_the_machine_does_nothing_when_a_spawned_process_imports_it(kit, tmp_path):
    (kit / "kit.json").write_text(json.dumps({"target": "any", "box": True}))
    python, _ = made(kit, tmp_path / "env")
    program = str(Path(python).with_name("pytest"))
    spawned = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__mp_main__'); print('imported')"
    done = subprocess.run([python, "-c", spawned, program], capture_output=True, text=True, check=True)
    assert done.stdout == "imported\n"


def test_the_gpu_tests_of_a_kit_are_collected_without_the_checkout(tmp_path):
    with tarfile.open(tmp_path / "tests.tar.gz", "w:gz") as archive:
        pack_tests(archive)
    with (tmp_path / "tests.tar.gz").open("rb") as archive:
        unpack(archive, tmp_path)
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "tests/integration/test_sampling_gpus.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_a_wheel_of_another_sum_is_refused(kit, tmp_path):
    make_wheel(kit / "wheels", "tool", "2.0", {"tool.py": b"VERSION = 'changed'\n"})
    python, error = made(kit, tmp_path / "env")
    assert python == ""
    assert "the environment 'tool' cannot be made" in error
    assert not (tmp_path / "env" / "kit.txt").exists()


def definition(name):
    table = {
        "backend": {"name": name, "title": name, "licence": "x", "homepage": "x", "weights": "none"},
        "server": {"ready_path": "/", "startup_timeout_s": 1},
        "process": {
            "program": ["{python}"],
            "install": {"requirements": ["tool==1.0"], "version_of": "tool"},
        },
    }
    return parse_backend(table, "test.toml")


@pytest.mark.long
def test_an_engine_is_installed_in_the_version_that_the_kit_has(kit, tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    for name, value in kit_env.using(kit, {}).items():
        monkeypatch.setenv(name, value)
    environment = install_engine(definition("tool"), lambda _line: None)
    assert (environment.version, version(str(environment.python))) == ("2.0", "2.0")
    with pytest.raises(SetupError, match="has no packages of it") as caught:
        install_engine(definition("other"), lambda _line: None)
    assert caught.value.hint == "make the kit with --engines other"
