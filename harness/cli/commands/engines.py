"""`bench engines`: the environments engines run in as processes."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.display.output import progress_display
from harness.cli.display.result import Result, Screen, put
from harness.cli.flags import options
from harness.cli.typed import Flags
from harness.errors import SetupError, SpecError
from harness.model.choices import Device
from harness.model.numbers import counted

if TYPE_CHECKING:
    from harness.engines.provide.locks import Wheel
    from harness.spec.backend import Backend


@dataclass(frozen=True)
class Options(Flags):
    action: str
    json: bool
    device: Device = "auto"  # of install and lock
    names: tuple[str, ...] = ()  # of install, as the next two
    force: bool = False
    dry_run: bool = False
    name: str = ""  # of lock


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    install = actions.add_parser("install", help="install engines now")
    install.add_argument("names", nargs="+", metavar="NAME[==VERSION]", help="engines to install")
    options.add_device(install, "device that the packages are for", "rocm")
    install.add_argument("--force", action="store_true", help="install again what is installed")
    install.add_argument(
        "--dry-run", action="store_true", help="print every file and its size; download nothing"
    )
    options.add_json(install)
    lock = actions.add_parser("lock", help="write versions and hashes of an environment to ./backends/locks")
    lock.add_argument("name", metavar="NAME", help="engine of the environment")
    options.add_device(lock, "device that the packages are for", "rocm")
    options.add_json(lock)
    outdated = actions.add_parser(
        "outdated", help="compare pinned engines and known tools with what is offered now"
    )
    options.add_json(outdated)
    options.add_json(actions.add_parser("list", help="list installable engines and their state"))


def main(given: Options) -> Result:
    return {"install": _install, "lock": _lock, "outdated": _outdated, "list": _list}[given.action](given)


def _install(given: Options) -> Result:
    from harness.engines.provide.install import install_engine, planned

    done: list[dict[str, Any]] = []
    definitions = _definitions(given.names, given.device)
    with closing(progress_display()) as ui:
        for definition in definitions:
            if given.dry_run:
                files = planned(definition, ui.stage)
                put(Result(_planned(definition, files)), as_json=given.json)
                sizes = [{"file": wheel.file, "size_bytes": wheel.size_bytes} for wheel in files]
                done.append({"name": definition.name, "files": sizes})
                continue
            environment = install_engine(definition, ui.stage, force=given.force)
            ui.note(f"{definition.name} {environment.version}: {environment.python}")
            python = str(environment.python)
            done.append({"name": definition.name, "version": environment.version, "python": python})
    return Result(document=lambda: done)


def _lock(given: Options) -> Result:
    from harness.engines.provide.install import lock, recipe_of

    command = f"bench engines lock {given.name}"
    definition, *others = _definitions([given.name], given.device)
    if others:
        raise SpecError("one engine at a time", where=command)
    name = recipe_of(definition).lock
    if not name:
        raise SpecError(
            "its definition names no lock",
            where=command,
            hint=f'add lock = "{given.name}.txt" to the table with its requirements',
        )
    path = Path("backends") / "locks" / name
    options.check_folder(path.parent, command)  # to resolve takes minutes
    device = f" --device {given.device}" if given.device != "auto" else ""
    with closing(progress_display()) as ui:
        text = lock(definition, f"{command}{device}", ui.stage)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    hashes = text.count("--hash=")
    return Result(f"{path}: {hashes} hashes", lambda: {"file": str(path), "hashes": hashes})


def _definitions(names: Sequence[str], device: Device) -> "list[Backend]":
    """The definitions, with the packages of the device as [process]."""
    from harness.engines.provide.install import needs_install
    from harness.engines.start.launch_choice import as_launched, resolve_launch
    from harness.spec.backend_refs import parse_backend_list

    found = []
    for ref in parse_backend_list(",".join(names)):
        starts = ref.definition.process or ref.definition.process_cuda
        definition = (
            as_launched(ref, resolve_launch(ref, "process", device)).definition if starts else ref.definition
        )
        if not needs_install(definition):
            raise SpecError(
                f"'{definition.name}' is not installed by bench",
                where="bench engines",
                hint="`bench engines list` shows what can be installed",
            )
        found.append(definition)
    return found


def _planned(definition: "Backend", files: "Sequence[Wheel]") -> Iterator[str]:
    """Every file of an installation, and the notes on it."""
    from harness.engines.known import not_run
    from harness.engines.provide.fitness import MB
    from harness.engines.provide.install import installed, python_for, recipe_of
    from harness.engines.provide.interpreters import unfit_python
    from harness.spec.backend import CudaProcess

    install, process = recipe_of(definition), definition.process
    total = sum(wheel.size_bytes for wheel in files)
    source = f"locked in {install.lock}" if install.lock else "as the package index has them now"
    for wheel in files:
        yield f"{wheel.size_bytes / MB:>10,.1f} MB  {wheel.file}"
    yield f"{definition.name}: {counted(len(files), 'file')}, {total / MB:,.0f} MB, {source}"
    if install.torch:
        yield f"before them torch {install.torch}, a CPU build from where one is found"
    python = ".".join(map(str, python_for(definition)))
    cuda = f", a driver for CUDA {process.cuda}" if isinstance(process, CudaProcess) and process.cuda else ""
    there = installed(definition)
    state = "it is installed already" if there else "nothing was downloaded or installed"
    yield f"for Python {python}{cuda}; {state}"
    if not there and (lack := unfit_python(install, definition.name)):
        yield f"warning: not on this machine: {lack.what}; {lack.hint}"
    if mark := not_run(process):
        yield f"warning: {mark}"


def _outdated(_given: Options) -> Result:
    from harness.engines.check.outdated import images, packages, tools
    from harness.metrics.peers import READ_IN

    pins, systems, unknown = [], [], []
    with closing(progress_display()) as ui:
        for name, definition in _installable().items():
            try:
                pins += list(packages({name: definition}, ui.stage))
            except SetupError as error:
                unknown.append(f"{name:<19} not looked up: {error.what}")
                if len(unknown) > 1 + len(pins):  # it is the index, not a package that it lacks
                    raise
        read = list(tools(READ_IN, ui.stage))
        for facts in (definition.facts for definition in _all()):
            if facts is not None and facts.package:
                try:
                    systems += list(tools({facts.package: facts.version.partition(";")[0]}, ui.stage))
                except SetupError as error:
                    unknown.append(f"{facts.package:<19} not looked up: {error.what}")
        of_images = list(images(_all(), ui.stage))
    lines = [
        *(f"{label:<19} {pin}" for label, pin in pins),
        *unknown,
        *(f"{name:<19} {pin}" for name, pin in systems),
        *(f"tool {name:<21} {pin}" for name, pin in read),
        *of_images,
    ]
    return Result(
        lines,
        lambda: {
            "engines": {name: {"pinned": pin.pinned, "newest": pin.newest} for name, pin in pins},
            "systems": {name: {"read_in": pin.pinned, "newest": pin.newest} for name, pin in systems},
            "tools": {name: {"read_in": pin.pinned, "newest": pin.newest} for name, pin in read},
            "other": [*unknown, *of_images],
        },
    )


def _list(_given: Options) -> Result:
    from harness.engines.known import not_run
    from harness.engines.provide.install import installed, size_mb, size_words
    from harness.report.text.terminal_text import hanging

    rows: list[dict[str, Any]] = []
    texts: dict[str, str] = {}
    for name, definition in _installable().items():
        environment, mark = installed(definition), not_run(definition.process)
        version = environment.version if environment else None
        state = f"installed, {version}" if version else f"not installed{size_words(definition)}"
        texts[name] = f"{state}; {mark}" if mark else state
        rows.append(
            {"name": name, "version": version, "download_mb": size_mb(definition) or None, "about": mark}
        )

    def lines(screen: Screen) -> Iterator[str]:
        for name, text in texts.items():
            yield from hanging(f"{name:<20}", text, screen.rows)

    return Result(lines, lambda: rows)


def _installable() -> "dict[str, Backend]":
    """Definitions by name, with the device if it has packages of its own."""
    from dataclasses import replace

    from harness.engines.provide.install import needs_install

    found = {}
    for definition in _all():
        if needs_install(definition):
            found[definition.name] = definition
        on_cuda = replace(definition, process=definition.process_cuda)
        if needs_install(on_cuda):
            found[f"{definition.name} (cuda)"] = on_cuda
    return found


def _all() -> "list[Backend]":
    from harness.spec.backend_refs import load_backend
    from harness.spec.files import names

    return [load_backend(name) for name in names("backends")]
