"""`bench validate`: every wrong file, not only the first; of a suite every wrong run."""

import argparse
import sys
from pathlib import Path

from harness.cli.display.output import print_error
from harness.errors import BenchError, ExitCode, SpecError
from harness.host import paths
from harness.model.numbers import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="files of scenarios, backends, models and suites (default: all)",
    )


def main(arguments: argparse.Namespace) -> int:
    files = arguments.files or [
        path
        for kind in ("workloads", "workloads/suites", "backends")
        for path in paths.definitions(kind).values()
    ]
    wrong = 0
    for path in files:
        errors: list[BenchError] = []
        try:
            kind = _check(path, errors)
        except SpecError as error:
            errors.append(error)
        for found in errors:
            print_error(found)
        if errors:
            wrong += 1
        else:
            print(f"{path}: {kind}, valid")
    if wrong:
        print(f"{wrong} of {counted(len(files), 'file')} wrong", file=sys.stderr)
    return ExitCode.USAGE if wrong else ExitCode.OK


def _check(path: Path, errors: list[BenchError]) -> str:
    """Adds what is wrong with each run of a suite to the errors. Raises SpecError for any other fault."""
    from harness.cli.commands.suite_check import check_entries
    from harness.nightly import load_suite
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
    if "suite" in table:
        found = check_entries(load_suite(str(path)), str(path))
        errors += [run for run in found if isinstance(run, BenchError)]
        return "suite"
    tables = "[scenario], [backend], [models], [suite]"
    raise SpecError(f"has none of the tables {tables}", where=str(path))
