"""What users install: the wheel built through the sdist, run from an empty directory."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from harness import __version__

CHECKOUT = Path(__file__).resolve().parents[2]
PUBLISHED = "20261122T202156Z-shared-prefix-cd0015"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(out), str(CHECKOUT)], check=True, capture_output=True
    )
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The scripts folder of a fresh environment that holds the wheel and its requirements."""
    home = tmp_path_factory.mktemp("env")
    venv.create(home, with_pip=True, symlinks=True)  # a copied interpreter is not what is installed
    subprocess.run([home / "bin/python", "-m", "pip", "install", "--quiet", str(wheel)], check=True)
    return home / "bin"


def call(command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_the_definitions_and_no_tests(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for kind in ("workloads", "backends", "compose"):
        place = f"harness/_data/{kind}/"
        shipped = {name.removeprefix(place) for name in names if name.startswith(place)}
        files = (path for path in (CHECKOUT / kind).rglob("*") if path.is_file())
        assert shipped == {path.relative_to(CHECKOUT / kind).as_posix() for path in files}
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"harness", "llm_servebench"}
    assert {name for name in names if "llm_servebench/" in name} == {
        "llm_servebench/__init__.py",
        "llm_servebench/py.typed",
    }
    assert "harness/engines/shims/llama_server.py" in names
    assert "harness/py.typed" in names
    assert "harness/agreement/questions.toml" in names
    assert "harness/claims/claims.toml" in names


def test_every_link_of_the_long_description_works_on_a_package_index(wheel):
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    description = archive.read(metadata).decode().partition("\n\n")[2]
    links = re.findall(r"\]\(([^)]+)\)", description)
    assert len(links) > 30
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    checkout = "https://github.com/llm-servebench/llm-servebench/"
    named = [re.sub(r"^(blob|raw)/main/|#.*", "", link.removeprefix(checkout)) for link in links]
    missing = [path for path, link in zip(named, links, strict=True) if link.startswith(checkout)
               and not (CHECKOUT / path).exists()]  # fmt: skip
    assert missing == []


def test_it_lists_and_validates_from_an_empty_directory(installed, tmp_path):
    assert "shared-prefix" in call([installed / "bench", "list", "scenarios"], tmp_path)
    assert "vllm@no-prefix-cache" in call([installed / "llm-servebench", "list", "backends", "-v"], tmp_path)
    assert '"name": "cpu"' in call([installed / "bench", "list", "suites", "--json"], tmp_path)
    assert "A0-012" in call([installed / "bench", "claims", "--system", "ollama"], tmp_path)
    assert "trace replay" in call([installed / "bench", "list", "scenarios", "-v"], tmp_path)
    call([installed / "bench", "validate"], tmp_path)
    assert 'profiles: ["vllm"]' in call([installed / "bench", "compose"], tmp_path)
    where = "from harness.host import paths; print(paths.shipped('backends'))"
    assert "harness/_data" in call([installed / "python", "-c", where], tmp_path)


def test_it_measures_from_an_empty_directory(installed, tmp_path):
    plan = call(
        [
            installed / "bench",
            "run",
            "--scenario",
            "shared-prefix",
            "--backends",
            "vllm,llamacpp",
            "--dry-run",
        ],
        tmp_path,
    )
    assert "2 engines × 2 loads" in plan
    out = call(
        [
            installed / "python",
            "-m",
            "harness",
            "run",
            "--scenario",
            "fixed-length",
            "--backends",
            "truth",
            "--requests",
            "6",
            "--concurrency",
            "2",
            "--output-tokens",
            "4",
            "--engine-set",
            "ttft_ms=400",
            "--engine-set",
            "gap_ms=100",  # the other lanes on this machine make reading late
            "--json",
        ],
        tmp_path,
    )
    assert json.loads(out)["cells"][0]["requests"]["ok"] == 6
    (run,) = (tmp_path / "results").iterdir()
    assert (run / "report.html").exists()


def test_python_reads_a_run_from_an_empty_directory(installed, tmp_path):
    """A published run, copied. Its types are seen by whoever checks their own program."""
    shutil.copytree(CHECKOUT / "results" / "published" / PUBLISHED, tmp_path / "results" / PUBLISHED)
    program = tmp_path / "program.py"
    program.write_text(
        "import llm_servebench as sb\n"
        "run = sb.load(sb.runs()[-1])\n"
        "print(sb.__version__, len(run.cells()), len(run.requests()), len(run.verdicts()))\n"
        "try:\n    sb.load('nowhere')\nexcept sb.BenchError as error:\n    print(error)\n"
    )
    version, *counts = call([installed / "python", program], tmp_path).split(maxsplit=4)
    assert version == __version__
    assert all(int(count) > 0 for count in counts[:3])
    assert counts[3] == "nowhere: no such run\n"
    checked = [sys.executable, "-m", "mypy", "--strict", "--python-executable", installed / "python", program]
    assert "no issues found" in call(checked, tmp_path)


def test_the_base_install_stays_small(installed):
    """docs/install.md states 36 packages and 381 MB; peers: 40 to 140 packages, 0.13 to 6.2 GB."""
    listed = json.loads(call([installed / "python", "-m", "pip", "list", "--format", "json"], None))
    ours = [package["name"] for package in listed if package["name"] not in ("pip", "setuptools")]
    size = sum(
        path.stat().st_size
        for path in installed.parent.rglob("*")
        if path.is_file() and not path.is_symlink()
    )
    print(f"{len(ours)} packages, {size / 1e6:.0f} MB")
    assert len(ours) <= 45
    assert size <= 400e6


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the lowest versions have no wheels for this Python")
def test_the_lowest_versions_that_it_takes_are_enough(wheel, tmp_path):
    """The series that each bound of pyproject.toml begins with. A run imports what draws and what samples."""
    required = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["dependencies"]
    lowest = [re.sub(r">=([\d.]+)", r"==\1.*", requirement) for requirement in required]
    venv.create(tmp_path / "env", symlinks=True)
    python = tmp_path / "env/bin/python"
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile"]
    subprocess.run([*install, str(wheel), *lowest], check=True)
    load = ["--scenario", "fixed-length", "--backends", "vllm", "--launch", "simulate", "--requests", "6"]
    call([python, "-m", "harness", "run", *load, "--concurrency", "2", "--out", tmp_path], tmp_path)
    (facts,) = tmp_path.glob("*/cells/*/cell.json")
    assert json.loads(facts.read_text())["telemetry"]["problem"] is None
