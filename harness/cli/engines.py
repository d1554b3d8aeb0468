"""`bench engines`: the environments engines run in as processes."""

import argparse

from harness.errors import ExitCode, SpecError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    install = actions.add_parser("install", help="install engines now", allow_abbrev=False)
    install.add_argument("names", nargs="+", metavar="NAME")
    install.add_argument("--force", action="store_true", help="reinstall")
    actions.add_parser("list", help="list installable engines and their state", allow_abbrev=False)


def main(arguments: argparse.Namespace) -> int:
    return _install(arguments.names, arguments.force) if arguments.action == "install" else _list()


def _install(names: list[str], force: bool) -> int:
    from harness.cli.output import progress_display
    from harness.engines.install import install_engine
    from harness.spec.backend_refs import load_backend

    ui = progress_display()
    definitions = [load_backend(name) for name in names]
    for definition in definitions:
        if definition.process is None or definition.process.install is None:
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


def _list() -> int:
    from harness import paths
    from harness.engines.install import installed
    from harness.spec.backend_refs import load_backend

    for name in sorted(set(paths.definitions("backends")) - {"models"}):
        definition = load_backend(name)
        if definition.process is None or definition.process.install is None:
            continue
        environment = installed(definition)
        size = definition.process.install.size_mb
        state = f"installed, {environment.version}" if environment else f"not installed (about {size} MB)"
        print(f"{name:<12} {state}")
    return ExitCode.OK
