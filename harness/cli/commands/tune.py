"""`bench tune`: the engine values that are best for one scenario, on this machine."""

import argparse
import shlex
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.display.output import progress_display
from harness.cli.flags import options
from harness.cli.flags.argument_types import duration_s
from harness.errors import ExitCode, SpecError
from harness.host import paths
from harness.model.measures import measure, verdict_ways
from harness.model.numbers import counted

if TYPE_CHECKING:
    from harness.tune import Result

EPILOG = """Searches the keys in [engine.tunable] of the definition, one after the other: short trials first,
longer ones for the better half. No trial starts after the budget is spent. Then
the best values are compared with the default over several runs, and stored only if the verdict is "faster".

Use them with `bench run --backends NAME,NAME@tuned`; a file written with --to is NAME@FILE.toml."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("backend", metavar="BACKEND", help="NAME or NAME@VARIANT to start from")
    parser.add_argument("--scenario", required=True, metavar="NAME|FILE", help="workload to tune for")
    parser.add_argument(
        "--budget",
        type=duration_s,
        required=True,
        metavar="TIME",
        help="search time, such as 90s, 10m, 2h; use the same for all engines",
    )
    parser.add_argument(
        "--load", type=float, metavar="N", help="load point (default: the scenario's highest)"
    )
    parser.add_argument(
        "--metric", metavar="NAME", help="metric to improve (default: the scenario's primary)"
    )
    parser.add_argument(
        "--repeats",
        dest="comparison_repeats",
        type=int,
        metavar="N",
        help="repeats of the final comparison (default: the scenario's)",
    )
    options.add_model(parser)
    options.add_launch(parser, *(mode for mode in options.LAUNCHES if mode != "attach"))
    options.add_device(parser)
    options.add_gpus(parser)
    options.add_scenario_set(parser)
    options.add_engine_set(parser, "engine value to keep fixed")
    options.add_profile(parser)
    options.add_seed(parser)
    parser.add_argument(
        "--to", type=Path, metavar="FILE", help="file for the tuned variant (default: saved as NAME@tuned)"
    )
    options.add_runs_folder(parser, "the trials")
    options.add_former_results_flag(parser)


def main(arguments: argparse.Namespace) -> int:
    from harness.spec.backend_refs import parse_backend_list
    from harness.spec.tuned import tuned_path
    from harness.tune import Settings, tune

    if arguments.to is not None and arguments.to.suffix != ".toml":
        raise SpecError("must end in .toml", where=f"--to {arguments.to}")
    if arguments.out.suffix == ".toml":  # what --to was called before 0.2
        raise SpecError(
            "is the folder of the trials",
            where=f"--out {arguments.out}",
            hint="--to names the variant's file",
        )
    options.check_folder(arguments.out, f"--out {arguments.out}")
    for flag, path in (("--out", arguments.out), ("--to", arguments.to)):
        if {",", "="} & set(str(path)):
            raise SpecError(
                "a list of backends cannot name a file with ',' or '=' in its path", where=f"{flag} {path}"
            )
    ref, *_ = parse_backend_list(arguments.backend)
    target = arguments.to or tuned_path(ref.definition.name)  # written when the budget is spent
    options.check_folder(target.parent, f"--to {target}")
    if paths.entry(target) not in ("file", None):
        raise SpecError("is no file that can be replaced", where=f"--to {target}")
    command = ("bench", *sys.argv[1:])
    wanted = options.run_options(arguments, backends=arguments.backend, command=command)
    settings = Settings(
        wanted,
        budget_s=arguments.budget,
        load=arguments.load,
        metric=arguments.metric,
        repeats=arguments.comparison_repeats,
        out=arguments.to,
    )
    with closing(progress_display()) as ui:
        result = tune(settings, ui)
    return _show(result, arguments)


def _show(result: "Result", arguments: argparse.Namespace) -> int:
    from harness.report.findings.notes import SIMULATED
    from harness.report.view import point_words
    from harness.spec.tuned import values_text

    backend = arguments.backend
    failed = sum(trial.value is None for trial in result.trials)
    if result.simulated:
        print(SIMULATED)
    trials, shown = counted(len(result.trials), "trial"), measure(result.metric)
    print(f"{trials}, {failed} failed: {shown.name} at {point_words(result.point)}")
    better, _worse = verdict_ways(shown)
    if result.interrupted:
        print(f"interrupted: what was tried is kept in {result.folder}", file=sys.stderr)
        return ExitCode.INTERRUPTED
    values = values_text(result.values)
    if result.stored is not None:
        name = backend.partition("@")[0]
        named = arguments.to or name.partition("==")[0] != result.stored.stem  # else found by its name
        given = (shlex.quote(f"{key}={value}") for key, value in arguments.engine_values.items())
        fixed = "".join(f" --engine-set {setting}" for setting in given)
        print(f"tuned {backend} is {better}: {values}\n  {result.why}")
        print(f"stored in {result.stored}; use it as {name}@{result.stored if named else 'tuned'}{fixed}")
    elif result.verdict is None:
        print(f"the default stands: {result.why}")
    else:
        print(f"the default stands: {values} is not shown to be {better}\n  {result.verdict}: {result.why}")
    if result.unfinished:
        print(f"not decided: {result.unfinished}")
    print(f"trials: {result.folder}", flush=True)
    if result.comparison is not None:
        from harness import report

        report.build(result.comparison)  # takes seconds
    return ExitCode.OK
