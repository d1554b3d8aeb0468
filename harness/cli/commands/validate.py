"""`bench validate`: every problem of every file, not only the first."""

import argparse
import sys
from pathlib import Path

from harness.cli.display.output import print_error
from harness.errors import ExitCode, SpecError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="scenario or backend files (default: all)",
    )


def main(arguments: argparse.Namespace) -> int:
    from harness.host import paths
    from harness.model.numbers import counted

    files = arguments.files or [
        path for kind in ("workloads", "backends") for path in paths.definitions(kind).values()
    ]
    wrong = 0
    for path in files:
        try:
            kind = _check(path)
        except SpecError as error:
            wrong += 1
            print_error(error)
        else:
            print(f"{path}: {kind}, valid")
    if wrong:
        print(f"{wrong} of {counted(len(files), 'file')} wrong", file=sys.stderr)
    return ExitCode.USAGE if wrong else ExitCode.OK


def _check(path: Path) -> str:
    from harness.spec import files
    from harness.spec.backend_refs import check_engine_values, parse_backend
    from harness.spec.models import parse_models
    from harness.spec.scenario import PROFILES, parse_scenario, with_profile

    table = files.read_toml(path)
    if "scenario" in table:
        for profile in PROFILES if "profiles" in table else PROFILES[:1]:
            scenario = parse_scenario(with_profile(table, profile, str(path)), str(path))
            check_engine_values(scenario.engine_values, (), f"{path}:engine_values")
        files.check_scenario_name(path, scenario.name)
        return "scenario"
    if "models" in table:
        parse_models(table, str(path))
        return "models"
    if "backend" in table:
        parse_backend(table, str(path))
        return "backend"
    raise SpecError("has none of the tables [scenario], [backend], [models]", where=str(path))
