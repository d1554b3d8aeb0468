"""`bench tune`: the engine values that are best for one scenario, on this machine."""

import argparse
import shlex
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from harness.cli.display.output import progress_display
from harness.cli.display.result import Result, put
from harness.cli.flags import options
from harness.cli.flags.argument_types import duration_s
from harness.cli.typed import Flags, typed
from harness.errors import ExitCode, SpecError
from harness.host import nvml, paths
from harness.model.measures import measure, verdict_ways
from harness.model.numbers import counted

if TYPE_CHECKING:
    from harness.run.setup.options import RunOptions
    from harness.tune import Result as Tuned

EPILOG = """Searches the keys in [engine.tunable] of the definition, one after the other: short trials first,
longer ones for the better half. No trial starts after the budget is spent. Then
the best values are compared with the default over several runs, and stored only if the verdict is "faster".

Use them with `bench run --backends NAME,NAME@tuned`; a file written with --to is NAME@FILE.toml."""


@dataclass(frozen=True)
class Options(Flags):
    run: "RunOptions"
    budget: float
    load: float | None
    metric: str | None
    comparison_repeats: int | None
    to: Path | None
    json: bool

    @classmethod
    def from_parsed(cls, parsed: argparse.Namespace) -> Self:
        command = ("bench", *sys.argv[1:])
        return typed(cls, parsed, run=options.run_options(parsed, backends=parsed.backend, command=command))


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
    options.add_json(parser)


@nvml.kept_open()
def main(given: Options) -> Result:
    from harness.spec.backend_refs import parse_backend_list
    from harness.spec.tuned import tuned_path
    from harness.tune import Settings, tune

    out, backend = given.run.out, given.run.backends
    if given.to is not None and given.to.suffix != ".toml":
        raise SpecError("must end in .toml", where=f"--to {given.to}")
    if out.suffix == ".toml":  # what --to was called before 0.2
        raise SpecError(
            "is the folder of the trials",
            where=f"--out {out}",
            hint="--to names the variant's file",
        )
    options.check_folder(out, f"--out {out}")
    for flag, path in (("--out", out), ("--to", given.to)):
        if {",", "="} & set(str(path)):
            raise SpecError(
                "a list of backends cannot name a file with ',' or '=' in its path", where=f"{flag} {path}"
            )
    ref, *_ = parse_backend_list(backend)
    target = given.to or tuned_path(ref.definition.name)  # written when the budget is spent
    options.check_folder(target.parent, f"--to {target}")
    if paths.entry(target) not in ("file", None):
        raise SpecError("is no file that can be replaced", where=f"--to {target}")
    settings = Settings(
        given.run,
        budget_s=given.budget,
        load=given.load,
        metric=given.metric,
        repeats=given.comparison_repeats,
        out=given.to,
    )
    with closing(progress_display()) as ui:
        tuned = tune(settings, ui)
    if tuned.interrupted:
        kept = f"interrupted: what was tried is kept in {tuned.folder}"
        return Result(_trials(tuned), lambda: _document(tuned), ExitCode.INTERRUPTED, [kept])
    put(Result((*_trials(tuned), *_lines(tuned, given))), as_json=given.json, flush=True)
    if tuned.comparison is not None:
        from harness import report

        report.build(tuned.comparison)  # takes seconds
    return Result(document=lambda: _document(tuned))


def _document(tuned: "Tuned") -> dict[str, object]:
    return {
        "metric": tuned.metric,
        "load": {"kind": tuned.point.kind, "value": tuned.point.value},
        "trials": [asdict(trial) for trial in tuned.trials],
        "values": dict(tuned.values),
        "simulated": tuned.simulated,
        "verdict": tuned.verdict,
        "why": tuned.why,
        "stored": None if tuned.stored is None else str(tuned.stored),
        "not_decided": tuned.unfinished or None,
        "interrupted": tuned.interrupted,
        "folder": str(tuned.folder),
    }


def _trials(tuned: "Tuned") -> Iterator[str]:
    from harness.report.findings.notes import SIMULATED
    from harness.report.view import point_words

    failed = sum(trial.value is None for trial in tuned.trials)
    if tuned.simulated:
        yield SIMULATED
    trials, shown = counted(len(tuned.trials), "trial"), measure(tuned.metric)
    yield f"{trials}, {failed} failed: {shown.name} at {point_words(tuned.point)}"


def _lines(tuned: "Tuned", given: Options) -> Iterator[str]:
    from harness.spec.tuned import values_text

    backend, values = given.run.backends, values_text(tuned.values)
    better, _worse = verdict_ways(measure(tuned.metric))
    if tuned.stored is not None:
        name = backend.partition("@")[0]
        named = given.to or name.partition("==")[0] != tuned.stored.stem  # else found by its name
        settings = (shlex.quote(f"{key}={value}") for key, value in given.run.engine_values.items())
        fixed = "".join(f" --engine-set {setting}" for setting in settings)
        yield f"tuned {backend} is {better}: {values}\n  {tuned.why}"
        yield f"stored in {tuned.stored}; use it as {name}@{tuned.stored if named else 'tuned'}{fixed}"
    elif tuned.verdict is None:
        yield f"the default stands: {tuned.why}"
    else:
        yield f"the default stands: {values} is not shown to be {better}\n  {tuned.verdict}: {tuned.why}"
    if tuned.unfinished:
        yield f"not decided: {tuned.unfinished}"
    yield f"trials: {tuned.folder}"
