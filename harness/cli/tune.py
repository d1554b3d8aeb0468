"""`bench tune`: the engine values that are best for one scenario, on this machine."""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.amounts import duration_s
from harness.errors import ExitCode, SpecError

if TYPE_CHECKING:
    from harness.tune import Result

EPILOG = """Searches the keys in [engine.tunable] of the definition, one after the other: short trials first,
longer ones for the better half. No trial starts after the budget is spent. Then
the best values are compared with the default over several runs, and stored only if the verdict is "faster".

Use them with `bench run --backends NAME,NAME@tuned`; a file written with --out is NAME@FILE.toml."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("backend", metavar="BACKEND", help="NAME or NAME@VARIANT to start from")
    parser.add_argument("--scenario", required=True, metavar="NAME|FILE", help="workload to tune for")
    parser.add_argument(
        "--budget",
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
        type=int,
        metavar="N",
        help="repeats of the final comparison (default: the scenario's)",
    )
    parser.add_argument(
        "--model", metavar="NAME|PATH", help="name from `bench list models`, GGUF file or model folder"
    )
    parser.add_argument(
        "--launch",
        choices=("auto", "compose", "process", "simulate"),
        default="auto",
        help="how to start the engine (default: auto)",
    )
    parser.add_argument(
        "--device", choices=("auto", "cuda", "rocm", "cpu"), default="auto", help="device of containers"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="scenario key (repeatable)"
    )
    parser.add_argument(
        "--engine-set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="engine value to keep fixed (repeatable)",
    )
    parser.add_argument("--profile", choices=("auto", "gpu", "cpu"), default="auto", help="scenario sizes")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of prompts and arrivals")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="file for the tuned variant (default: saved as NAME@tuned)"
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="folder for the trials (default: ./results)",
    )


def main(arguments: argparse.Namespace) -> int:
    from harness.cli.output import progress_display
    from harness.cli.run import pair, toml_value
    from harness.run.options import RunOptions
    from harness.tune import Settings, tune

    if arguments.out is not None and arguments.out.suffix != ".toml":
        raise SpecError("must end in .toml", where=f"--out {arguments.out}")
    options = RunOptions(
        scenario=arguments.scenario,
        backends=arguments.backend,
        model=arguments.model,
        launch=arguments.launch,
        device=arguments.device,
        overrides={key: toml_value(text) for key, text in map(partial(pair, flag="--set"), arguments.set)},
        engine_values=dict(pair(text, "--engine-set") for text in arguments.engine_set),
        profile=arguments.profile,
        seed=arguments.seed,
        out=arguments.results,
        command=("bench", *sys.argv[1:]),
    )
    ui = progress_display()
    try:
        result = tune(
            Settings(
                options,
                budget_s=seconds(arguments.budget),
                load=arguments.load,
                metric=arguments.metric,
                repeats=arguments.repeats,
                out=arguments.out,
            ),
            ui,
        )
    finally:
        ui.close()
    return _show(result, arguments)


def seconds(text: str) -> float:
    """`90s`, `10m`, `1.5h`; SpecError for anything else."""
    try:
        return duration_s(text)
    except argparse.ArgumentTypeError:
        raise SpecError(f"'{text}' is not a time", where="--budget", hint="such as 90s, 10m or 2h") from None


def _show(result: "Result", arguments: argparse.Namespace) -> int:
    backend = arguments.backend
    failed = sum(trial.value is None for trial in result.trials)
    print(f"{len(result.trials)} trials, {failed} failed, of {result.metric} at {result.point.label}")
    if result.interrupted:
        print(f"interrupted: what was tried is kept in {result.folder}", file=sys.stderr)
        return ExitCode.INTERRUPTED
    if result.comparison is not None:
        from harness import report

        report.build(result.comparison)
    values = ", ".join(f"{key}={value}" for key, value in result.values.items())
    if result.stored is not None:
        name = backend.partition("@")[0]
        chosen = result.stored if arguments.out else "tuned"
        print(f"tuned {backend} is faster: {values}\n  {result.why}")
        print(f"stored in {result.stored}; use it as {name}@{chosen}")
    elif result.verdict is None:
        print(f"the default stands: {result.why}")
    else:
        print(f"the default stands: {values} is not shown to be faster\n  {result.verdict}: {result.why}")
    print(f"trials: {result.folder}")
    return ExitCode.OK
