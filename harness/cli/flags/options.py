"""Flags that several commands share: each is declared here once, with its type, help and choices.

A flag that sets an option of a run has that field of `RunOptions` as its destination, one that sets a key of
the scenario has the dotted key. So `run_options` needs no list of them.
"""

import argparse
import os
import re
import stat
import tomllib
from collections.abc import Callable, Collection
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from harness.cli.flags import argument_types
from harness.cli.typed import frozen
from harness.errors import SpecError, StorageError, page_address, reason
from harness.model import Prices
from harness.model.choices import Device, LaunchMode, SizeProfile
from harness.untrusted import BadDocumentError, read_tables

if TYPE_CHECKING:
    from harness.cluster.options import ClusterOptions
    from harness.run.setup.options import RunOptions
    from harness.spec.reach import ReachFlags
    from harness.spec.strict import UnknownKeyError

RESULTS = Path("results")
LAUNCHES: tuple[str, ...] = get_args(LaunchMode)
_OF_PROMPTS = {  # keys that the prompts of only some scenarios have
    "prompts.file": "--trace",
    "prompts.input_tokens": "--input-tokens",
    "prompts.output_tokens": "--output-tokens",
    "prompts.classes": "--depth",
}
# By field of ReachFlags: the flag, what it takes, and its help.
_REACH_ONCE = {
    "served_name": ("--model-name", "NAME", "name by which the server calls its model"),
    "api_key_env": ("--api-key-env", "VAR", "environment variable that holds the API key"),
}
_REACH_REPEATABLE = {
    "headers": ("--header", "NAME=ENV:VAR", "send this header; NAME=VALUE where it is no secret, in which "
                "{session} is the number of a chat (repeatable)"),
    "query": ("--query", "NAME=ENV:VAR", "add this to the query of every URL; NAME=VALUE where it is no "
              "secret (repeatable)"),
    "ca_cert": ("--ca-cert", "FILE", "certificate authorities to trust, and no others (PEM)"),
    "client_cert": ("--client-cert", "FILE", "client certificate to show (PEM, with its key or with "
                    "--client-key)"),
    "client_key": ("--client-key", "FILE", "key of --client-cert"),
}  # fmt: skip
_REACH = _REACH_ONCE | _REACH_REPEATABLE


RUN_HELP = "run folder, or name of a run under --out: latest, latest~1 (the one before), or its beginning"


def add_runs(parser: argparse._ActionsContainer, *, files: bool = False) -> None:
    """`files`: takes results of other tools too."""
    also = "; or files of other tools, as `bench import` reads them" if files else ""
    parser.add_argument("runs", nargs="+", metavar="RUN", help=f"{RUN_HELP}{also}")


def add_runs_folder(parser: argparse._ActionsContainer, holds: str = "runs") -> None:
    parser.add_argument(
        "--out", type=Path, default=RESULTS, metavar="DIR", help=f"folder of {holds} (default: ./{RESULTS})"
    )


def check_folder(folder: Path, where: str) -> None:
    """Raises StorageError where nothing can be made below a folder, which need not be. `where`: the flag."""
    hint = "choose another folder"
    for path in (folder, *folder.parents):
        try:
            found = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            continue  # the nearest folder that is there decides
        except (OSError, ValueError) as error:  # a name too long, or a NUL in it
            raise StorageError(f"cannot be a folder: {reason(error)}", where=where, hint=hint) from None
        if not stat.S_ISDIR(found.st_mode):
            raise StorageError(f"{path} is a file, not a folder", where=where, hint=hint)
        if not os.access(path, os.W_OK | os.X_OK):
            raise StorageError(f"{path} cannot be written", where=where, hint=hint)
        return


def add_former_results_flag(parser: argparse._ActionsContainer) -> None:
    """The name of `--out` in `query` and `tune` before 0.2: still taken, and shown nowhere."""
    parser.add_argument("--results", dest="out", type=Path, default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def add_json(parser: argparse._ActionsContainer, what: str = "print JSON") -> None:
    parser.add_argument("--json", action="store_true", help=what)


def add_markdown(parser: argparse._ActionsContainer, target: str) -> None:
    parser.add_argument("--markdown", action="store_true", help=f"print Markdown for {target}")


def add_verbose(
    parser: argparse._ActionsContainer, what: str = "print every figure, version and note"
) -> None:
    parser.add_argument("-v", "--verbose", action="store_true", help=what)


def add_result_forms(parser: argparse._ActionsContainer) -> None:
    """Adds the other forms of a run's first screen: everything, or JSON."""
    add_verbose(parser)
    add_json(parser, "print summary.json and its conclusion instead of the table")


def add_run_output(parser: argparse._ActionsContainer) -> None:
    """Adds the flags of every command that ends in a run."""
    add_result_forms(parser)
    parser.add_argument(
        "--no-report",
        action="store_true",
        help="skip report and plots; `bench report RUN` makes them later",
    )
    parser.add_argument(
        "--metrics-port",
        type=argument_types.address,
        metavar="[HOST:]PORT",
        help="serve the progress to Prometheus at /metrics (HOST default: 127.0.0.1)",
    )


def add_cluster(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--cluster",
        metavar="auto|ADDRESS",
        help="send the load from nodes of a Ray cluster: HOST:PORT, ray://HOST:PORT, or the one that this "
        "machine belongs to (needs the extra [ray])",
    )
    parser.add_argument("--load-nodes", type=int, metavar="N", help="nodes of the cluster that send load")
    parser.add_argument(
        "--workers-per-node", type=int, metavar="M", help="load generator processes of each node (default: 1)"
    )


def add_model(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--model", metavar="NAME|PATH", help="name from `bench list models`, GGUF file or model folder"
    )


def add_reach(
    parser: argparse.ArgumentParser,
    goes_to: str = "where there are several, a value may begin with BACKEND=",
) -> None:
    reach = parser.add_argument_group("reaching a running server", f"{goes_to}; no flag takes a secret")
    for field, (flag, metavar, text) in _REACH_ONCE.items():
        reach.add_argument(flag, dest=field, metavar=metavar, help=text)
    for field, (flag, metavar, text) in _REACH_REPEATABLE.items():
        reach.add_argument(flag, dest=field, action="append", default=[], metavar=metavar, help=text)
    reach.add_argument(
        "--metrics-url",
        dest="metrics_urls",
        action="append",
        default=[],
        metavar="[ROLE@]URL",
        help="read the counters and gauges of one server here, not at its own URL; asked with the same API "
        "key and certificates, at the same host also with --header and --query (repeatable: counters are "
        "summed; with the ROLE prefill or decode kept apart)",
    )


def reach_flags(parsed: argparse.Namespace) -> "ReachFlags":
    from harness.spec.reach import ReachFlags

    return ReachFlags(**{field: frozen(getattr(parsed, field)) for field in _REACH})


def reach_words(flags: "ReachFlags") -> list[str]:
    """The flags again, for a command line."""
    words = []
    for field, (flag, _metavar, _help) in _REACH.items():
        given = getattr(flags, field)
        for text in given if isinstance(given, tuple) else filter(None, [given]):
            words += [flag, text]
    return words


def add_launch(parser: argparse._ActionsContainer, *modes: str, note: str = "") -> None:
    """`modes`: those that make sense for the command."""
    parser.add_argument(
        "--launch", choices=modes, default="auto", help=f"how to start engines (default: auto){note}"
    )


def add_device(
    parser: argparse._ActionsContainer, what: str = "device of engines that bench starts", *without: Device
) -> None:
    parser.add_argument(
        "--device",
        choices=[device for device in get_args(Device) if device not in without],
        default="auto",
        help=f"{what} (default: what this machine has)",
    )


_GPU = re.compile(r"[0-9]+|(GPU|MIG)-.+")


def add_gpus(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--gpus",
        type=_gpus,
        default=(),
        metavar="LIST",
        help="GPUs for engines, indices or UUIDs (default: those of CUDA_VISIBLE_DEVICES, else from 0 on)",
    )


def _gpus(listed: str) -> tuple[str, ...]:
    names, where = tuple(name.strip() for name in listed.split(",")), f"--gpus {listed}"
    if not all(names) or len(set(names)) < len(names):
        raise SpecError("needs different GPUs, separated by commas", where=where, hint="such as 0,1")
    if unknown := next((name for name in names if not _GPU.fullmatch(name)), None):
        hint = "each by its index or UUID, such as 0,1,2,3"
        raise SpecError(f"'{unknown}' is not the index or UUID of a GPU", where=where, hint=hint)
    if len({name.isdecimal() for name in names}) > 1:
        hint = "give all by index, such as 0,1, or all by UUID: `nvidia-smi -L` lists both"
        raise SpecError("mixes indices and UUIDs, which may name one GPU twice", where=where, hint=hint)
    return names


def add_gpu_wait(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--gpu-wait",
        dest="gpu_wait_s",
        type=argument_types.wait_s,
        default=0.0,
        metavar="S",
        help="seconds to wait for a busy GPU (default: fail)",
    )


def add_engine_set(parser: argparse._ActionsContainer, what: str = "engine value of all backends") -> None:
    _add_pairs(parser, "--engine-set", "engine_values", f"{what}, such as max_sequences=4 (repeatable)", str)


def add_variants(parser: argparse._ActionsContainer) -> None:
    from harness.spec.own_variants import anchored

    _add_pairs(
        parser,
        "--variant",
        "variants",
        "what ENGINE@NAME changes, in the words of a shell: variables and engine values, then a "
        "program in place of the engine's, then flags; such as 'new=build/bin/llama-server --no-mmap' "
        "(repeatable)",
        anchored,
        metavar="NAME=WORDS",
    )


def add_scenario_set(parser: argparse._ActionsContainer) -> None:
    """Each value is read as it would stand in the file; a bare word is a string."""
    about = f"any scenario key, such as request.timeout_s=60 (repeatable); all: {page_address('scenario')}"
    _add_pairs(parser, "--set", "overrides", about, _toml_value)


def by_flag(error: "UnknownKeyError", given: Collection[str]) -> SpecError:
    """The error of the flag that set the key; of a key that was `given` by --set it is the same."""
    key = (error.where or "").removesuffix(", as given")
    if key in given or key not in _OF_PROMPTS:
        return error
    what = f"unknown key '{error.key}' of this scenario's prompts"
    hint = "leave out --scenario" if key == "prompts.file" else error.hint
    if key.endswith("_tokens") and "classes" in (error.hint or ""):
        hint = "its classes have lengths of their own; --scenario fixed-length has one for all"
    return SpecError(what, where=_OF_PROMPTS[key], hint=hint)


def add_profile(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--profile",
        choices=get_args(SizeProfile),
        default="auto",
        help="sizes of the scenario (default: auto, gpu if NVML finds one or all servers are elsewhere)",
    )


def add_seed(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of prompts and arrivals (default: 0)"
    )


def add_fail_on(parser: argparse._ActionsContainer, what: str, *more: str) -> None:
    """`more`: other gates of the command; the flag may then be given several times."""
    parser.add_argument(
        "--fail-on",
        choices=("slower", *more),
        action="append" if more else "store",
        default=[] if more else None,
        help=f"exit with 1 if {what}",
    )


def add_floor(parser: argparse._ActionsContainer, what: str, default: float | None = None) -> None:
    parser.add_argument("--floor", type=argument_types.percent, default=default, metavar="PERCENT", help=what)


def add_allow_missing(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--allow-missing",
        action="append",
        default=[],
        metavar="NAME",
        help="accept a missing backend, load point (c8), both (vllm/c8) or metric (ttft_ms.p50); repeatable",
    )


def add_prices(parser: argparse.ArgumentParser) -> None:
    cost = parser.add_argument_group("cost (no price is assumed)")
    cost.add_argument(
        "--price-per-hour",
        metavar="PRICE",
        help="price of the engine's machine, such as 1.99 or 1.99EUR; of several machines BACKEND=PRICE,…",
    )
    cost.add_argument("--price-per-gpu-hour", metavar="PRICE", help="price of each GPU the engine used")
    about = f"TOML file with prices; see {page_address('cost')}"
    cost.add_argument("--prices", type=Path, metavar="FILE", help=about)


def prices(parsed: argparse.Namespace) -> Prices | None:
    """The price of an hour by these flags; None without. Raises SpecError."""
    from harness.spec.prices import given_prices

    return given_prices(parsed.price_per_hour, parsed.price_per_gpu_hour, parsed.prices)


def load_from(parsed: argparse.Namespace) -> "ClusterOptions | None":
    """The nodes that `add_cluster` names; None: this machine. Raises SpecError."""
    from harness.cluster.options import asked

    return asked(parsed.cluster, parsed.load_nodes, parsed.workers_per_node)


def run_options(parsed: argparse.Namespace, **given: Any) -> "RunOptions":
    """Takes each option from `given`, else from the flag of that destination, else its default."""
    from harness.run.setup.options import RunOptions

    values = {**vars(parsed), **given}
    names = [field.name for field in fields(RunOptions) if field.name in values]
    return RunOptions(**{name: frozen(values[name]) for name in names})


def _add_pairs(
    parser: argparse._ActionsContainer,
    flag: str,
    dest: str,
    what: str,
    convert: Callable[[str], object],
    metavar: str = "KEY=VALUE",
) -> None:
    """Adds a repeatable flag whose values make up one dict. A table has each of its keys by itself too."""

    class Add(argparse.Action):
        def __call__(
            self, _parser: argparse.ArgumentParser, into: argparse.Namespace, text: Any, *_: Any
        ) -> None:
            key, equals, value = text.partition("=")
            if not equals or not key:
                raise SpecError(f"'{text}' is not {metavar}", where=flag)
            try:
                converted = convert(value)
            except BadDocumentError as error:
                raise SpecError(str(error), where=f"{flag} {text}") from None
            given = getattr(into, dest)
            if isinstance(converted, dict):  # in the place of all that was given below it
                given = {name: old for name, old in given.items() if not name.startswith(f"{key}.")}
                given |= {key: converted, **{f"{key}.{name}": below for name, below in converted.items()}}
            setattr(into, dest, {**given, key: converted})

    parser.add_argument(flag, dest=dest, action=Add, default={}, metavar=metavar, help=what)


def _toml_value(text: str) -> Any:
    """Raises BadDocumentError."""
    try:
        return read_tables(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
