"""`bench engines`: the environments engines run in as processes."""

import argparse
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.display.output import UNBROKEN, page_width, progress_display
from harness.cli.flags import options
from harness.errors import ExitCode, SetupError, SpecError
from harness.model.choices import Device
from harness.model.numbers import counted

if TYPE_CHECKING:
    from harness.cli.display.progress import Display
    from harness.spec.backend import Backend


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    install = actions.add_parser("install", help="install engines now")
    install.add_argument("names", nargs="+", metavar="NAME[==VERSION]", help="engines to install")
    options.add_device(install, "device that the packages are for", "rocm")
    install.add_argument("--force", action="store_true", help="install again what is installed")
    install.add_argument(
        "--dry-run", action="store_true", help="print every file and its size; download nothing"
    )
    lock = actions.add_parser("lock", help="write versions and hashes of an environment to ./backends/locks")
    lock.add_argument("name", metavar="NAME", help="engine of the environment")
    options.add_device(lock, "device that the packages are for", "rocm")
    actions.add_parser("outdated", help="compare pinned engines and known tools with what is offered now")
    actions.add_parser("list", help="list installable engines and their state")


def main(arguments: argparse.Namespace) -> int:
    if arguments.action == "install":
        return _install(arguments)
    if arguments.action == "lock":
        return _lock(arguments)
    return _outdated() if arguments.action == "outdated" else _list()


def _install(arguments: argparse.Namespace) -> int:
    from harness.engines.provide.install import install_engine

    definitions = _definitions(arguments.names, arguments.device)
    with closing(progress_display()) as ui:
        for definition in definitions:
            if arguments.dry_run:
                print(_shown(definition, ui))
                continue
            environment = install_engine(definition, ui.stage, force=arguments.force)
            ui.note(f"{definition.name} {environment.version}: {environment.python}")
    return ExitCode.OK


def _lock(arguments: argparse.Namespace) -> int:
    from harness.engines.provide.install import lock, recipe_of

    definition, *others = _definitions([arguments.name], arguments.device)
    if others:
        raise SpecError("one engine at a time", where=f"bench engines lock {arguments.name}")
    name = recipe_of(definition).lock
    if not name:
        raise SpecError(
            "its definition names no lock",
            where=f"bench engines lock {arguments.name}",
            hint=f'add lock = "{arguments.name}.txt" to the table with its requirements',
        )
    path = Path("backends") / "locks" / name
    options.check_folder(path.parent, f"bench engines lock {arguments.name}")  # to resolve takes minutes
    device = f" --device {arguments.device}" if arguments.device != "auto" else ""
    with closing(progress_display()) as ui:
        text = lock(definition, f"bench engines lock {arguments.name}{device}", ui.stage)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(f"{path}: {text.count('--hash=')} hashes")
    return ExitCode.OK


def _definitions(names: list[str], device: Device) -> "list[Backend]":
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


def _shown(definition: "Backend", ui: "Display") -> str:
    """Every file of an installation, and the notes on it."""
    from harness.engines.known import not_run
    from harness.engines.provide.fitness import MB
    from harness.engines.provide.install import installed, planned, python_for, recipe_of
    from harness.engines.provide.interpreters import unfit_python
    from harness.spec.backend import CudaProcess

    install, process = recipe_of(definition), definition.process
    files = planned(definition, ui.stage)
    total = sum(wheel.size_bytes for wheel in files)
    source = f"locked in {install.lock}" if install.lock else "as the package index has them now"
    lines = [f"{wheel.size_bytes / MB:>10,.1f} MB  {wheel.file}" for wheel in files]
    lines.append(f"{definition.name}: {counted(len(files), 'file')}, {total / MB:,.0f} MB, {source}")
    if install.torch:
        lines.append(f"before them torch {install.torch}, a CPU build from where one is found")
    python = ".".join(map(str, python_for(definition)))
    cuda = f", a driver for CUDA {process.cuda}" if isinstance(process, CudaProcess) and process.cuda else ""
    there = installed(definition)
    state = "it is installed already" if there else "nothing was downloaded or installed"
    lines.append(f"for Python {python}{cuda}; {state}")
    if not there and (lack := unfit_python(install, definition.name)):
        lines.append(f"warning: not on this machine: {lack.what}; {lack.hint}")
    if mark := not_run(process):
        lines.append(f"warning: {mark}")
    return "\n".join(lines)


def _outdated() -> int:
    from harness.engines.check.outdated import images, packages, tools
    from harness.metrics.peers import READ_IN

    lines, unknown = [], []
    with closing(progress_display()) as ui:
        for name, definition in _installable().items():
            try:
                lines += [f"{label:<19} {pin}" for label, pin in packages({name: definition}, ui.stage)]
            except SetupError as error:
                unknown.append(f"{name:<19} not looked up: {error.what}")
                if len(unknown) > 1 + len(lines):  # it is the index, not a package that it lacks
                    raise
        lines += unknown
        lines += [f"tool {name:<21} {read}" for name, read in tools(READ_IN, ui.stage)]
        lines += images(_all(), ui.stage)
    print("\n".join(lines))
    return ExitCode.OK


def _list() -> int:
    from harness.engines.known import not_run
    from harness.engines.provide.install import installed, size_words
    from harness.report.text.terminal_text import hanging

    width = page_width(UNBROKEN)
    for name, definition in _installable().items():
        environment = installed(definition)
        state = (
            f"installed, {environment.version}" if environment else f"not installed{size_words(definition)}"
        )
        mark = not_run(definition.process)
        print(*hanging(f"{name:<20}", f"{state}; {mark}" if mark else state, width), sep="\n")
    return ExitCode.OK


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
