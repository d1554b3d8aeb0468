"""`bench validate`: every wrong file, not only the first; of a suite every wrong run."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from harness.cli.display.result import Result
from harness.cli.flags import options
from harness.cli.typed import Flags
from harness.errors import BenchError, ExitCode, SpecError
from harness.host import paths
from harness.model.numbers import counted


@dataclass(frozen=True)
class Options(Flags):
    files: tuple[Path, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="files of scenarios, backends, models and suites (default: all)",
    )
    options.add_json(parser)


def main(given: Options) -> Result:
    files = given.files or [
        path
        for kind in ("workloads", "workloads/suites", "backends")
        for path in paths.definitions(kind).values()
    ]
    kinds: dict[Path, str] = {}
    errors: dict[Path, list[BenchError]] = {path: [] for path in files}
    for path in errors:
        try:
            kinds[path] = _check(path, errors[path])
        except SpecError as error:
            errors[path].append(error)
    wrong = [path for path, found in errors.items() if found]
    count = [f"{len(wrong)} of {counted(len(errors), 'file')} wrong"] if wrong else []
    return Result(
        [f"{path}: {kinds[path]}, valid" for path in errors if path not in wrong],
        lambda: [
            {
                "file": str(path),
                "kind": kinds.get(path),
                "errors": [{"error": str(error), "hint": error.hint} for error in found],
            }
            for path, found in errors.items()
        ],
        ExitCode.USAGE if wrong else ExitCode.OK,
        [*(error for path in wrong for error in errors[path]), *count],
    )


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
