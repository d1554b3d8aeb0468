"""Container images made on this machine, with no registry: a Debian with Python, and in it the real llama.cpp
server, or the scripted server under the name of an engine. Kept by Docker; a second call finds them.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from harness.host import paths
from harness.spec.backend_refs import load_backend

HERE = Path(__file__).parent
PYTHON = "3.11"  # of Debian bookworm
BASE = "llm-servebench-test/base:bookworm"
PREFIX = "llm-servebench-test"
TOOL = f"{PREFIX}/tool:latest"
ROOT = () if os.geteuid() == 0 else ("sudo",)


def base_image() -> str:
    if not _exists(BASE):
        with tempfile.TemporaryDirectory(prefix="bench-rootfs-") as folder:
            root = Path(folder, "root")
            include = "python3-minimal,libpython3-stdlib,curl,libgomp1"
            run(*ROOT, "debootstrap", "--variant=minbase", f"--include={include}", "bookworm", str(root))
            useless = ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale")
            left_out = [f"--exclude=./{path}/*" for path in useless]
            packed = [*ROOT, "tar", "-C", str(root), *left_out, "-c", "."]
            with subprocess.Popen(packed, stdout=subprocess.PIPE) as tar:
                run("docker", "import", "-", BASE, stdin=tar.stdout)
            assert tar.returncode == 0
            run(*ROOT, "rm", "-rf", str(root))
    return BASE


def tool_wheels() -> Path:
    """bench itself, what it requires and pip, for the image's Python."""
    made_of = (paths.CHECKOUT / "pyproject.toml").read_bytes()
    folder = paths.cache_dir() / "test-wheels" / f"tool-{hashlib.sha256(made_of).hexdigest()[:12]}"
    for old in folder.glob("llm_servebench-*.whl"):
        old.unlink()
    run(sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(paths.CHECKOUT))
    (own,) = folder.glob("llm_servebench-*.whl")
    if not list(folder.glob("pip-*.whl")):
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:")
        run(*pip, "--python-version", PYTHON, "--dest", str(folder), str(own), "pip")
    return folder


def llamacpp_image() -> str:
    """The server of the wheel that the process launch installs too, behind llama-server's command line."""
    process = load_backend("llamacpp").process
    requirement, *_ = process.install.requirements  # the others convert weights
    shim = paths.CHECKOUT / "harness" / "engines" / "shims" / "llama_server.py"

    def fill(context: Path) -> None:
        _unpack(requirement, context / "site")
        shutil.copy(shim, context / "llama_server.py")

    recipe = f"""
        FROM {base_image()}
        COPY site /opt/site
        COPY llama_server.py /app/llama_server.py
        ENV PYTHONPATH=/opt/site
        ENTRYPOINT ["python3", "/app/llama_server.py"]
    """
    return _built("llamacpp", recipe, [requirement, shim.read_text()], fill)


def simulator_image(**habits: str) -> str:
    """The scripted server behind any engine's command line; `habits` is the environment of simulate.py."""
    scripts = HERE / "simulate.py", HERE.parent / "second_port.py"
    sources = sorted((paths.CHECKOUT / "harness" / "mockserver").rglob("*.py"))
    sources += sorted(paths.shipped("backends").glob("*.toml"))

    def fill(context: Path) -> None:
        shutil.copytree(
            paths.CHECKOUT / "harness", context / "harness", ignore=shutil.ignore_patterns("__pycache__")
        )
        shutil.copytree(paths.shipped("backends"), context / "harness" / "_data" / "backends")
        for script in scripts:
            shutil.copy(script, context)
        _unpack("numpy<3", context / "site")

    recipe = f"""
        FROM {base_image()}
        COPY harness /opt/harness
        COPY simulate.py second_port.py /opt/
        COPY site /opt/site
        ENV PYTHONPATH=/opt:/opt/site
        ENTRYPOINT ["python3", "/opt/simulate.py"]
    """
    recipe += "".join(f'ENV {name}="{value}"\n' for name, value in habits.items())
    return _built("simulator", recipe, [path.read_text() for path in (*scripts, *sources)], fill)


def _unpack(requirement: str, target: Path) -> None:
    """The wheel for the image's Python, without its dependencies."""
    wheels = paths.cache_dir() / "test-wheels" / re.sub(r"\W", "_", requirement)
    if not list(wheels.glob("*.whl")):
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:")
        run(*pip, "--python-version", PYTHON, "--dest", str(wheels), requirement)
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)


def _built(name, recipe, made_of, fill) -> str:
    digest = hashlib.sha256("\n".join([recipe, *made_of]).encode()).hexdigest()[:12]
    tag = f"{PREFIX}/{name}:{digest}"
    if not _exists(tag):
        with tempfile.TemporaryDirectory(prefix="bench-image-") as context:
            fill(Path(context))
            Path(context, "Dockerfile").write_text("\n".join(line.strip() for line in recipe.splitlines()))
            run("docker", "build", "--network", "none", "--tag", tag, context)
    return tag


def _exists(tag: str) -> bool:
    return subprocess.run(["docker", "image", "inspect", tag], capture_output=True).returncode == 0


def run(*command: str, stdin=subprocess.DEVNULL) -> None:
    done = subprocess.run(
        command,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        env={**os.environ, "DOCKER_BUILDKIT": "0"},
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-3000:]}"
