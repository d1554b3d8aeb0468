"""`bench run`: flags to RunOptions, then the run, then what a person or a script reads."""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args

from harness.cli.commands import gates
from harness.cli.display.output import print_note
from harness.cli.display.result import Result
from harness.cli.flags import argument_types, options
from harness.cli.flags.argument_types import DEFAULT_QUESTIONS
from harness.cli.flags.overrides import overrides_of
from harness.cli.typed import RunOutput, typed
from harness.errors import SpecError
from harness.host import nvml, paths
from harness.model import as_json
from harness.model.choices import Arrival, Balance, BetweenRepeats, Pairing
from harness.sampling.job import DEFAULT_HZ

if TYPE_CHECKING:
    from harness.report.text.screen import Sketch
    from harness.run.setup.options import RunOptions
    from harness.run.setup.prepare import Prepared


# Never accepted: what stands on a command line is seen by every user of the machine and kept by shells.
_SECRETS = ("--api-key", "--token", "--api_key")


@dataclass(frozen=True)
class Options(RunOutput):
    run: "RunOptions"
    overrides: Mapping[str, object]  # keys of --set alone
    dry_run: bool
    anyway: bool
    fail_on: str | None
    junit: Path | None

    @classmethod
    def from_parsed(cls, parsed: argparse.Namespace, command: tuple[str, ...] | None = None) -> Self:
        """`command`: what the manifest keeps; None: this process's command line. Raises SpecError."""
        run = options.run_options(
            parsed,
            scenario=_scenario(parsed),
            overrides=overrides_of(parsed),
            load_from=options.load_from(parsed),
            prices=options.prices(parsed),
            command=command or ("bench", *sys.argv[1:]),
        )
        return typed(cls, parsed, run=run)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "bench run --scenario NAME --backends LIST [options]"
    parser.add_argument(
        "--scenario", metavar="NAME|FILE", help="workload to run; `bench list scenarios` shows the names"
    )
    parser.add_argument(
        "--trace",
        dest="prompts.file",
        metavar="FILE|RUN",
        help="replay a recorded trace (default scenario: 'trace', or 'agent-sessions' for agents' sessions)",
    )
    parser.add_argument(
        "--backends",
        required=True,
        metavar="LIST",
        help="comma-separated NAME[==VERSION][@VARIANT][@API][=URL[+URL…]]; =URL uses a running server, "
        "openai=URL any server that speaks one of the APIs, OWN=NAME=URL under a name of your own; several "
        "URLs are replicas (see --balance)",
    )
    options.add_model(parser)
    _add_load(parser.add_argument_group("load (overrides the scenario)"))
    _add_engines(parser.add_argument_group("engines"))
    options.add_reach(parser)
    _add_repeats(parser.add_argument_group("repeats and verdicts"))
    _add_capacity(parser.add_argument_group("capacity search"))
    _add_measurement(parser.add_argument_group("measurement"))
    options.add_prices(parser)
    output = parser.add_argument_group("output")
    options.add_runs_folder(output, holds="runs")
    output.add_argument(
        "--dry-run", action="store_true", help="print what is planned (-v: each cell) and exit"
    )
    options.add_run_output(output)
    output.add_argument(
        "--fail-on",
        choices=(gates.LIMITS,),
        help="exit with 1 if a backend misses a limit of the scenario's [slo] at some load, as set by "
        "--set slo.ttft_ms.p95=500",
    )
    gates.add_junit(output)
    for flag in _SECRETS:
        parser.add_argument(flag, action=_RefuseSecret, help=argparse.SUPPRESS)


def _add_load(load: argparse._ArgumentGroup) -> None:
    shape = load.add_mutually_exclusive_group()
    shape.add_argument(
        "--concurrency",
        dest="load.concurrency",
        metavar="N,…",
        type=argument_types.whole_numbers,
        help="closed loop: requests kept in flight",
    )
    shape.add_argument(
        "--rate",
        dest="load.rate",
        metavar="R,…",
        type=argument_types.numbers,
        help="open loop: requests per second",
    )
    shape.add_argument(
        "--replay-speed",
        dest="load.replay_speed",
        metavar="X,…",
        type=argument_types.numbers,
        help="open loop: speed of trace replay; 1 as recorded, 2 twice as fast",
    )
    load.add_argument(
        "--arrival", dest="load.arrival", choices=get_args(Arrival), help="arrival process of --rate"
    )
    load.add_argument(
        "--requests",
        dest="load.requests",
        type=int,
        metavar="N",
        help="measured requests per load point",
    )
    load.add_argument(
        "--duration",
        dest="load.duration_s",
        type=float,
        metavar="S",
        help="measure for S seconds after the warm-up, or until --requests are over if that is sooner",
    )
    load.add_argument(
        "--input-tokens",
        dest="prompts.input_tokens",
        type=int,
        metavar="N",
        help="prompt length, of scenarios with `prompts.input_tokens`, such as fixed-length",
    )
    load.add_argument(
        "--depth",
        metavar="N,…",
        type=argument_types.depths,
        help="lengths of contexts in tokens, prompt and answer together, such as 4k,8k,16k: TTFT and TPOT of "
        "each (default scenario: 'context-depth')",
    )
    load.add_argument(
        "--output-tokens",
        dest="prompts.output_tokens",
        type=int,
        metavar="N",
        help="tokens to generate per request",
    )
    load.add_argument(
        "--content",
        dest="text.content",
        metavar="random|prose|code|json|file:PATH",
        help="kind of text in prompts (default: random, sentences of random words)",
    )
    options.add_scenario_set(load)
    options.add_profile(load)
    options.add_seed(load)


def _add_engines(engines: argparse._ArgumentGroup) -> None:
    from harness.apis import API_NAMES

    engines.add_argument(
        "--api",
        dest="apis",
        default=(),
        metavar="API,…",
        type=argument_types.apis,
        help=f"API of the requests, of {', '.join(API_NAMES)}; several are compared (default: the "
        "scenario's, mostly chat)",
    )
    simulate = "; simulate: the scripted server in each engine's dialect"
    options.add_launch(engines, *options.LAUNCHES, note=simulate)
    options.add_device(engines)
    options.add_gpus(engines)
    options.add_gpu_wait(engines)
    options.add_engine_set(engines)
    options.add_variants(engines)
    engines.add_argument(
        "--simulate-fault",
        dest="simulate_faults",
        action="append",
        default=[],
        metavar="BACKEND=FAULT",
        help="inject a fault into a simulated engine; see `bench truth --help` (repeatable)",
    )
    engines.add_argument(
        "--balance",
        choices=get_args(Balance),
        help="how requests are spread over several URLs; least-outstanding counts those that the same load "
        "process has in flight; a chat keeps its URL (default: round-robin)",
    )
    engines.add_argument("--no-probe", dest="probe", action="store_false", help="skip the conformance probe")


def _add_repeats(repeats: argparse._ArgumentGroup) -> None:
    repeats.add_argument(
        "--repeats",
        type=argument_types.repeats,
        metavar="auto|N",
        help="repeats per backend and load; auto: 3 to 10, until every pair is decided on the primary metric "
        "(default: auto for several backends, 1 for one, 3 with --find-capacity, 5 with --aa)",
    )
    repeats.add_argument(
        "--max-repeats",
        dest="verdict.max_repeats",
        type=int,
        metavar="N",
        help="most repeats of --repeats auto (default: 10, or 40 blocks of running servers with --pairing)",
    )
    repeats.add_argument(
        "--budget",
        dest="budget_s",
        type=argument_types.duration_s,
        metavar="TIME",
        help="time for --repeats auto, such as 2h, 45m, 90s: no repeat is started that would end later",
    )
    repeats.add_argument(
        "--between-repeats",
        dest="verdict.between_repeats",
        choices=get_args(BetweenRepeats),
        help="engine state between repeats (default: restart; keep for running servers)",
    )
    repeats.add_argument(
        "--pairing",
        choices=get_args(Pairing),
        default="starts",
        help="starts: engines take turns, one is up at a time; blocks: all are up, on equal parts of the "
        "cores, and short blocks of load alternate between them; duet: all are up and loaded at the same "
        "moments (default: starts)",
    )
    repeats.add_argument(
        "--blocks",
        type=int,
        metavar="N",
        help="blocks of each engine in one start, with --pairing blocks or duet (default: 8)",
    )
    repeats.add_argument(
        "--aa",
        action="store_true",
        help="compare each backend with itself: the noise floor of this machine, kept for later verdicts",
    )
    repeats.add_argument(
        "--agreement",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="compare answers to 58 questions, unloaded and under load (default: with several engines)",
    )
    repeats.add_argument(
        "--accuracy",
        type=argument_types.questions,
        nargs="?",
        const=DEFAULT_QUESTIONS,
        default=0,
        metavar="N",
        help=f"ask N more questions (default: {DEFAULT_QUESTIONS}), one at a time and between requests of "
        "the highest load: how many points of accuracy each backend loses",
    )


def _add_capacity(capacity: argparse._ArgumentGroup) -> None:
    capacity.add_argument(
        "--find-capacity",
        action="store_true",
        help="find the highest load that meets the scenario's [slo], between the lowest and highest given",
    )
    capacity.add_argument(
        "--probe-seconds",
        type=float,
        metavar="S",
        help="least time at the rates that decide, so that a queue can build (default: 45)",
    )


def _add_measurement(measurement: argparse._ArgumentGroup) -> None:
    measurement.add_argument(
        "--workers", type=int, metavar="N", help="load generator processes (default: from the load)"
    )
    options.add_cluster(measurement)
    measurement.add_argument(
        "--sample-hz",
        type=float,
        default=DEFAULT_HZ,
        metavar="HZ",
        help=f"GPU sampling rate; 0 disables telemetry (default: {DEFAULT_HZ:g})",
    )
    measurement.add_argument(
        "--anyway",
        action="store_true",
        help="measure even if it is known beforehand that some pairs of backends will get no verdict, or "
        "that a running server does not answer",
    )
    measurement.add_argument(
        "--http2", action="store_true", help="use HTTP/2 (less precise timing; needs the extra [http2])"
    )


def main(given: Options) -> Result:
    return measure(given)


@nvml.kept_open()
def measure(given: Options, sketch: "Sketch | None" = None) -> Result:
    """`sketch` draws what stands between the table and its conclusion."""
    prepared = checked(given)
    options.check_folder(prepared.options.out, f"--out {prepared.options.out}")
    _check_gate(given, prepared)
    if given.dry_run:
        from harness.cli.display.dry_run import describe

        plan = describe(prepared)
        return Result(
            lambda screen: plan.as_text(verbose=given.verbose, width=screen.width),
            lambda: as_json(plan.document),
        )

    from harness.cli.commands.run_session import run_and_show, started
    from harness.cli.display.foreseen import confirm, unsupported

    if given.junit:
        gates.remove_junit(given.junit)
    confirm(prepared, anyway=given.anyway)
    for line in unsupported(prepared):
        print_note(f"note: {line}")
    begin = partial(started, prepared, anyway=given.anyway)
    if given.fail_on is None:
        return run_and_show(prepared, begin, given, sketch)
    planned = [(prepared.of(cell).label, cell.load) for block in prepared.plan for cell in block.cells]
    judge = partial(gates.judged_limits, slo=prepared.scenario.slo, planned=planned, path=given.junit)
    return run_and_show(prepared, begin, given, sketch, judge)


def _check_gate(given: Options, prepared: "Prepared") -> None:
    gates.check_junit(given.junit, given.fail_on or ())
    where = f"--fail-on {given.fail_on}"
    if given.fail_on and not prepared.scenario.slo:
        hint = "set one, such as --set slo.ttft_ms.p95=500"
        raise SpecError("the scenario has no limits", where=where, hint=hint)
    if given.fail_on and prepared.probe_sizes is not None:
        hint = (
            "measure the load that has to keep them, or compare two searches: bench compare --fail-on slower"
        )
        raise SpecError("a search tries loads that miss the limits", where=where, hint=hint)


def checked(given: Options) -> "Prepared":
    """All that can be known to be wrong before anything is started. Raises BenchError."""
    from harness.run.setup.mismatches import check_without_engine
    from harness.run.setup.prepare import prepare
    from harness.spec.strict import UnknownKeyError

    try:
        prepared = prepare(given.run)
    except UnknownKeyError as error:
        raise options.by_flag(error, given.overrides) from None
    check_without_engine(prepared.options, [backend.ref for backend in prepared.backends])
    return prepared


def _scenario(parsed: argparse.Namespace) -> str:
    trace = getattr(parsed, "prompts.file")
    if parsed.depth and trace:
        raise SpecError("a trace has its own depths", where="--depth", hint="give --depth without --trace")
    if parsed.depth and parsed.scenario is None:
        return "context-depth"
    if parsed.scenario is None and trace is None:
        raise SpecError("--scenario is required", hint="`bench list scenarios` shows the names")
    return trace_scenario(trace) if parsed.scenario is None else str(parsed.scenario)


def trace_scenario(file: str) -> str:
    """The scenario that replays a trace if none is named: sessions have one of their own."""
    from harness.workload.traces import holds_sessions

    return "agent-sessions" if holds_sessions(paths.data_file(file)) else "trace"


class _RefuseSecret(argparse.Action):
    def __call__(self, _parser: Any, _into: Any, _value: Any, flag: str | None = None) -> None:
        raise SpecError(
            "a key on the command line can be read by every user of this machine",
            where=flag,
            hint="put it in an environment variable and name that with --api-key-env, "
            "or in --header NAME=ENV:VAR",
        )
