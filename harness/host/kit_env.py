"""Environments out of a kit (`bench kit make`), on a machine without network. The standard library only.

It runs before anything of ours is installed: out of the zipped wheel of bench itself.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from harness.host.helper_process import without_credentials

KIT = "BENCH_KIT"  # the variable with the folder of the kit that everything is installed from
_PYTHON = "BENCH_KIT_PYTHON"  # interpreter of the machine, whose packages the kit counts on
_SITES = "import json, site; print(json.dumps([*site.getsitepackages(), *([site.getusersitepackages()] \
if site.ENABLE_USER_SITE else [])]))"

# Programs of the machine's packages, started with the new environment's interpreter.
_PROGRAMS = """
import sys
from importlib.metadata import entry_points
from pathlib import Path
folder = Path(sys.executable).parent
for script in entry_points(group="console_scripts"):
    program = folder / script.name
    module, _, attribute = script.value.partition(" ")[0].partition(":")
    if not program.exists() and attribute:
        # Engines start their processes with `spawn`, which imports the program once more.
        start = f"from {module} import {attribute.split('.')[0]}\\nif __name__ == '__main__':\\n"
        program.write_text(f"#!{sys.executable}\\nimport sys\\n{start}    sys.exit({attribute}())\\n")
        program.chmod(0o755)
"""


class KitError(Exception):
    """The message is one sentence for the person who runs the kit."""


def kit() -> Path | None:
    """The kit in use; None: packages come from an index."""
    folder = os.environ.get(KIT)
    return Path(folder) if folder else None


def facts(folder: Path) -> dict[str, object]:
    """The facts that `bench kit make` wrote. Raises KitError."""
    try:
        found = json.loads((folder / "kit.json").read_bytes())
        return {**found, "target": str(found["target"]), "box": bool(found["box"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KitError(f"{folder} is not a kit: its kit.json cannot be read ({error})") from None


def requirements(folder: Path, name: str) -> Path:
    """The locked requirements file of the environment of that name."""
    return folder / "environments" / f"{name}.txt"


def using(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Environment variables that make pip install from this kit and from nowhere else."""
    indexes = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX", "UV_DEFAULT_INDEX")
    kept = {name: value for name, value in environ.items() if name not in indexes}
    own = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder / "wheels"), "PIP_CONFIG_FILE": os.devnull}
    return {_PYTHON: sys.executable, **kept, **own, KIT: str(folder)}


def make(folder: Path, name: str, target: Path) -> Path:
    """The interpreter of the environment, which is created if absent. Raises KitError.

    It has no pip at first, so that the machine needs none: the kit's own is run from its wheel.
    """
    python, marker, wanted = target / "bin" / "python", target / "kit.txt", requirements(folder, name)
    pip = next((folder / "wheels").glob("pip-*.whl"), None)
    if pip is None or not wanted.is_file():
        raise KitError(f"the kit {folder} has no packages for '{name}'")
    if marker.is_file() and marker.read_bytes() == wanted.read_bytes():
        return python
    counts_on_box = facts(folder)["box"]
    _run(name, [box_python(), "-m", "venv", "--without-pip", "--clear", str(target)])
    if counts_on_box:
        _open_to_box(target)
    offline = ["--no-index", "--find-links", str(folder / "wheels"), "--no-deps", "--no-compile"]
    install = [str(python), "-I", f"{pip}/pip", "--no-input", "install", *offline, "--ignore-installed"]
    _run(name, [*install, "--require-hashes", "-r", str(wanted)])
    if counts_on_box:
        _run(name, [str(python), "-I", "-c", _PROGRAMS])
    marker.write_bytes(wanted.read_bytes())
    return python


def box_python() -> str:
    """The machine's own interpreter."""
    return os.environ.get(_PYTHON) or sys.executable


def box_sites() -> list[Path]:
    """Folders with the packages of that interpreter, its user's among them."""
    env = without_credentials(os.environ)
    named: list[str] = json.loads(subprocess.check_output([box_python(), "-c", _SITES], text=True, env=env))
    return [folder for folder in map(Path, named) if folder.is_dir()]


def _run(name: str, command: list[str]) -> None:
    env = without_credentials(os.environ)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    if done.returncode:
        message = " / ".join(done.stdout.strip().splitlines()[-3:])
        raise KitError(f"the environment '{name}' cannot be made: {message}")


def _open_to_box(target: Path) -> None:
    """Lets a new environment see the packages of the machine's own interpreter, its own before them.

    `--system-site-packages` would show the packages below that interpreter, if it is of an environment
    itself.
    """
    (site,) = target.glob("lib/python*/site-packages")
    lines = [f"import site; site.addsitedir({str(folder)!r})" for folder in box_sites()]
    (site / "box.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
