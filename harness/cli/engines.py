"""`bench engines`: the environments engines run in as processes."""

import argparse
from typing import TYPE_CHECKING

from harness.errors import ExitCode, SpecError

if TYPE_CHECKING:
    from harness.spec.backend import Backend


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    install = actions.add_parser("install", help="install engines now", allow_abbrev=False)
    install.add_argument("names", nargs="+", metavar="NAME[==VERSION]")
    install.add_argument("--force", action="store_true", help="reinstall")
    actions.add_parser(
        "outdated", help="compare pinned versions with what is offered now", allow_abbrev=False
    )
    actions.add_parser("list", help="list installable engines and their state", allow_abbrev=False)


def main(arguments: argparse.Namespace) -> int:
    if arguments.action == "install":
        return _install(arguments.names, arguments.force)
    return _outdated() if arguments.action == "outdated" else _list()


def _install(names: list[str], force: bool) -> int:
    from harness.cli.output import progress_display
    from harness.engines.install import install_engine, needs_install
    from harness.spec.backend_refs import parse_backend_list

    ui = progress_display()
    definitions = [ref.definition for ref in parse_backend_list(",".join(names))]
    for definition in definitions:
        if not needs_install(definition):
            raise SpecError(
                f"'{definition.name}' is not installed by bench",
                where="bench engines install",
                hint="`bench engines list` shows what can be installed",
            )
    try:
        for definition in definitions:
            environment = install_engine(definition, ui.stage, force=force)
            ui.note(f"{definition.name} {environment.version}: {environment.python}")
    finally:
        ui.close()
    return ExitCode.OK


def _outdated() -> int:
    from harness.cli.output import progress_display
    from harness.engines.outdated import images, packages

    ui = progress_display()
    try:
        newest_versions = [f"{pin.name:<16} {pin}" for pin in packages(_installable(), ui.stage)]
        newest_versions += images(_all(), ui.stage)
    finally:
        ui.close()
    print("\n".join(newest_versions))
    return ExitCode.OK


def _list() -> int:
    from harness.engines.install import installed, size_mb

    for definition in _installable():
        environment = installed(definition)
        state = (
            f"installed, {environment.version}"
            if environment
            else f"not installed (about {size_mb(definition)} MB)"
        )
        print(f"{definition.name:<16} {state}")
    return ExitCode.OK


def _installable() -> "list[Backend]":
    from harness.engines.install import needs_install

    return [definition for definition in _all() if needs_install(definition)]


def _all() -> "list[Backend]":
    from harness.host import paths
    from harness.spec.backend_refs import load_backend

    return [load_backend(name) for name in sorted(set(paths.definitions("backends")) - {"models"})]
