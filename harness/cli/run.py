"""`bench run`: flags to RunOptions, then the run, then what a person or a script reads."""

import argparse
import json
import sys
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from harness.cli import amounts, prices
from harness.errors import ExitCode, SpecError
from harness.observe.job import DEFAULT_HZ

T = TypeVar("T", int, float)

# Never accepted: what stands on a command line is seen by every user of the machine and kept by shells.
_SECRETS = ("--api-key", "--token", "--api_key")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scenario", metavar="NAME|FILE", help="`bench list scenarios` names them")
    parser.add_argument(
        "--trace",
        metavar="FILE|RUN",
        help="replay a recorded trace; without --scenario, under the scenario 'trace'",
    )
    parser.add_argument(
        "--backends",
        required=True,
        metavar="LIST",
        help="NAME[@VARIANT][=URL],…; =URL attaches to a running server, openai=URL to any",
    )
    parser.add_argument(
        "--model", metavar="NAME|PATH", help="`bench list models`; or a GGUF file or model folder"
    )
    parser.add_argument("--model-name", metavar="NAME", help="what attached servers call their model")
    parser.add_argument(
        "--launch",
        choices=("auto", "compose", "process", "attach", "simulate"),
        default="auto",
        help="how engines are started (default: auto; the choice and its reason are printed); "
        "simulate: not at all, the scripted server speaks their dialects",
    )
    parser.add_argument(
        "--simulate-fault",
        action="append",
        default=[],
        metavar="BACKEND=FAULT",
        help="inject a fault into a simulated engine; `bench truth --help` lists them (repeatable)",
    )
    parser.add_argument(
        "--device",
        choices=("auto", "cuda", "rocm", "cpu"),
        default="auto",
        help="of engines in containers (default: what this machine has)",
    )
    parser.add_argument(
        "--gpu-wait",
        type=float,
        default=0.0,
        metavar="S",
        help="wait so long for a GPU that another process uses (default: refuse)",
    )
    load = parser.add_argument_group("load (replaces what the scenario says)")
    shape = load.add_mutually_exclusive_group()
    shape.add_argument(
        "--concurrency", metavar="N,…", type=_numbers(int), help="closed loop: requests kept in flight"
    )
    shape.add_argument("--rate", metavar="R,…", type=_numbers(float), help="open loop: requests per second")
    shape.add_argument(
        "--replay-speed",
        metavar="X,…",
        type=_numbers(float),
        help="open loop: a trace's own times; 1 as recorded, 2 twice as fast",
    )
    load.add_argument("--arrival", choices=("poisson", "constant", "gamma"), help="of the open loop")
    load.add_argument("--requests", type=int, metavar="N", help="measured requests per load point")
    load.add_argument("--duration", type=float, metavar="S", help="stop sending after so many seconds")
    load.add_argument("--input-tokens", type=int, metavar="N", help="of fixed-length prompts")
    load.add_argument("--output-tokens", type=int, metavar="N", help="asked of every answer")
    load.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any other scenario key, e.g. prompts.groups=8 (repeatable)",
    )
    parser.add_argument(
        "--engine-set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a key of the backends' [engine.values], e.g. max_sequences=4 (repeatable)",
    )
    parser.add_argument(
        "--profile",
        choices=("auto", "gpu", "cpu"),
        default="auto",
        help="sizes of the scenario (default: auto, gpu where NVML sees one; the choice is printed)",
    )
    parser.add_argument(
        "--repeats",
        type=amounts.repeats,
        metavar="auto|N",
        help="auto: 3 to 10 per backend, until every pair is decided on the primary metric (default with "
        "several backends; 1 for one)",
    )
    parser.add_argument(
        "--max-repeats", type=int, metavar="N", help="most repeats of --repeats auto (default: 10)"
    )
    parser.add_argument(
        "--budget",
        type=amounts.duration_s,
        metavar="TIME",
        help="--repeats auto starts no more repeats that would end after this time: 2h, 45m, 90s",
    )
    parser.add_argument(
        "--between-repeats",
        choices=("restart", "reset", "keep"),
        help="what happens to an engine between two repeats (default: restart; keep for attached servers)",
    )
    parser.add_argument(
        "--aa",
        action="store_true",
        help="each backend against itself: the noise floor of this machine, kept for later verdicts",
    )
    parser.add_argument(
        "--find-capacity",
        action="store_true",
        help="search the highest load that keeps the scenario's [slo], from the lowest to the highest given",
    )
    parser.add_argument(
        "--probe-seconds",
        type=float,
        metavar="S",
        help="shortest probe of --find-capacity, so that a queue can build (default: 30; 60 on a CPU)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of prompts and arrivals (default: 0)"
    )
    parser.add_argument(
        "--agreement",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="also compare answers to 58 questions, unloaded and all at once (default: with several engines)",
    )
    parser.add_argument(
        "--workers", type=int, metavar="N", help="load processes (default: chosen from the load)"
    )
    parser.add_argument(
        "--api-key-env", metavar="VAR", help="environment variable that holds the servers' API key"
    )
    parser.add_argument(
        "--sample-hz",
        type=float,
        default=DEFAULT_HZ,
        metavar="HZ",
        help=f"GPUs are read this often, all else less (default: {DEFAULT_HZ:g}; 0: nothing is)",
    )
    prices.add_arguments(parser)
    parser.add_argument(
        "--out",
        type=Path,
        default=None,
        metavar="DIR",
        help="where the run folder is made (default: ./results)",
    )
    parser.add_argument(
        "--http2", action="store_true", help="speak HTTP/2, less exactly: needs the extra http2, and a server"
    )
    parser.add_argument(
        "--no-probe", action="store_true", help="do not hold each backend against its definition first"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the cells and the expected duration, start nothing"
    )
    add_output_flags(parser)
    for flag in _SECRETS:
        parser.add_argument(flag, action=_RefuseSecret, help=argparse.SUPPRESS)


def add_output_flags(parser: argparse.ArgumentParser) -> None:
    """Of every command that ends in a run."""
    parser.add_argument("--json", action="store_true", help="print summary.json instead of the table")
    parser.add_argument(
        "--no-report",
        action="store_true",
        help="skip report and plots; `bench report RUN` makes them later",
    )


def main(arguments: argparse.Namespace) -> int:
    from harness.run.options import RunOptions
    from harness.run.prepare import prepare

    options = RunOptions(
        scenario=_scenario(arguments),
        backends=arguments.backends,
        model=arguments.model,
        served_name=arguments.model_name,
        launch=arguments.launch,
        device=arguments.device,
        gpu_wait_s=arguments.gpu_wait,
        simulate_faults=tuple(arguments.simulate_fault),
        overrides=_overrides(arguments),
        engine_values=dict(pair(text, "--engine-set") for text in arguments.engine_set),
        profile=arguments.profile,
        agreement=arguments.agreement,
        repeats=arguments.repeats,
        budget_s=arguments.budget,
        aa=arguments.aa,
        find_capacity=arguments.find_capacity,
        probe_seconds=arguments.probe_seconds,
        seed=arguments.seed,
        workers=arguments.workers,
        out=arguments.out or Path("results"),
        api_key_env=arguments.api_key_env,
        probe=not arguments.no_probe,
        http2=arguments.http2,
        sample_hz=arguments.sample_hz,
        prices=prices.given(arguments),
        command=("bench", *sys.argv[1:]),
    )
    prepared = prepare(options)
    if arguments.dry_run:
        from harness.cli.dry_run import describe

        print(
            json.dumps(describe(prepared).as_json(), indent=1)
            if arguments.json
            else describe(prepared).as_text()
        )
        return ExitCode.OK

    from harness.cli.conduct import conduct
    from harness.run.execute import Run

    return conduct(prepared, partial(Run.start, prepared), arguments)


def _scenario(arguments: argparse.Namespace) -> str:
    if arguments.scenario is None and arguments.trace is None:
        raise SpecError("is missing", where="--scenario", hint="`bench list scenarios` names them")
    return "trace" if arguments.scenario is None else str(arguments.scenario)


def _overrides(arguments: argparse.Namespace) -> dict[str, Any]:
    """Dotted scenario keys. Choosing one loop takes the scenario's other one away."""
    overrides: dict[str, Any] = {}
    for text in arguments.set:
        key, value = pair(text, "--set")
        overrides[key] = toml_value(value)
    points = ("concurrency", "rate", "replay_speed")
    if chosen := next((name for name in points if getattr(arguments, name)), None):
        overrides |= {f"load.{name}": getattr(arguments, name) if name == chosen else [] for name in points}
    flags = {
        "arrival": "load.arrival",
        "requests": "load.requests",
        "duration": "load.duration_s",
        "input_tokens": "prompts.input_tokens",
        "output_tokens": "prompts.output_tokens",
        "trace": "prompts.file",
        "max_repeats": "verdict.max_repeats",
        "between_repeats": "verdict.between_repeats",
    }
    for name, key in flags.items():
        if getattr(arguments, name) is not None:
            overrides[key] = getattr(arguments, name)
    return overrides


def pair(text: str, flag: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise SpecError(f"'{text}' is not KEY=VALUE", where=flag)
    return key, value


def toml_value(text: str) -> Any:
    """As it would stand in the file; a bare word is a string."""
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        return text


def _numbers(kind: type[T]) -> Callable[[str], list[T]]:
    def parse(text: str) -> list[T]:
        try:
            return [kind(part) for part in text.split(",") if part]
        except ValueError:
            what = "whole numbers" if kind is int else "numbers"
            raise argparse.ArgumentTypeError(f"'{text}' is not a list of {what}, like 1,8,32") from None

    return parse


class _RefuseSecret(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_rest: Any) -> None:
        raise SpecError(
            "a key on the command line can be read by every user of this machine",
            where="--api-key",
            hint="put it in an environment variable and name that with --api-key-env",
        )
