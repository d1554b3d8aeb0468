"""`bench probe`: what a running engine does, compared with its definition."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from harness.cli.display.live import wrapped
from harness.cli.display.output import UNBROKEN, progress_display
from harness.cli.display.result import Result
from harness.cli.flags import options
from harness.cli.typed import Flags, typed
from harness.errors import ExitCode, SpecError
from harness.host import paths
from harness.model import as_json
from harness.model.numbers import counted

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from harness.engines.provide.shared_folders import Say
    from harness.engines.session import EngineSession
    from harness.model.choices import LaunchMode
    from harness.probe import Probed
    from harness.spec.backend import BackendRef
    from harness.spec.reach import ReachFlags

EPILOG = """Sends one or two dozen short requests: streaming, exact length, unknown fields, structured output,
cached tokens, cache reset, chat template, metrics. `bench run` does the same, with what its
scenario needs, before the first cell of each backend. The prefix cache is emptied.

Exit codes: 0 the engine conforms; 1 it does not; 3 the engine cannot be started or reached."""

_MARKS = {True: "ok", False: "no", None: "–"}


@dataclass(frozen=True)
class Options(Flags):
    backend: str
    model: str | None
    launch: "LaunchMode"
    variants: Mapping[str, str]
    reach: "ReachFlags"
    metrics_urls: tuple[str, ...]
    timeout: float

    @classmethod
    def from_parsed(cls, parsed: argparse.Namespace) -> Self:
        return typed(cls, parsed, reach=options.reach_flags(parsed))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "backend",
        metavar="NAME[==VERSION][@VARIANT][@API][=URL]",
        help="backend to check; without =URL it is started and stopped",
    )
    options.add_model(parser)
    options.add_launch(parser, *options.LAUNCHES)
    options.add_variants(parser)
    options.add_reach(parser)
    parser.add_argument(
        "--timeout",
        type=float,
        default=120.0,
        metavar="S",
        help="time limit of all requests together (default: 120)",
    )
    options.add_json(parser)


def main(given: Options) -> Result:
    from harness.probe import examine
    from harness.spec.backend_refs import parse_backend_list

    if not given.timeout > 0:
        raise SpecError(f"must be above 0, not {given.timeout:g}", where="--timeout")
    ref, *others = parse_backend_list(given.backend, own=given.variants)
    if others:
        raise SpecError("one backend at a time", where=f"bench probe {given.backend}")
    if ref.url and given.model is not None:
        hint = "--model-name NAME is the model's name there"
        raise SpecError("has no effect on a server that runs already", where="--model", hint=hint)
    with closing(progress_display()) as ui, _engine(ref, given, ui.stage) as engine:
        ui.stage(f"{ref.label}: probing")
        probed = examine(engine, variant=ref.variant, limit_s=given.timeout)
        known = engine.facts["known"]
    return Result(
        lambda screen: as_text(probed, known, screen.rows),
        lambda: as_json(probed) | {"known": known},
        ExitCode.LIMIT_FAILED if probed.mismatches else ExitCode.OK,
    )


def _engine(ref: "BackendRef", given: Options, say: "Say") -> "AbstractContextManager[EngineSession]":
    from harness.engines.check.available import Machine
    from harness.engines.check.preflight import require
    from harness.engines.provide.models import find_model
    from harness.engines.session import open_engine
    from harness.engines.simulate import simulated
    from harness.engines.start.launch_choice import as_launched, resolve_launch
    from harness.engines.start.request import EngineRequest
    from harness.spec.reach import with_reach
    from harness.spec.server_urls import with_metrics_urls

    choice = resolve_launch(ref, given.launch)
    ref = as_launched(ref, choice)
    (ref,) = with_metrics_urls([ref], [ref.label], given.metrics_urls)
    (ref,) = with_reach([ref], [ref.label], given.reach)
    if choice.mode == "simulate":
        ref = simulated(ref, ())
    model = find_model(given.model)
    log = paths.cache_dir() / "logs" / f"probe-{ref.label}.log"
    wanted = EngineRequest(ref, choice, *model, log_path=log)
    require({ref.label: wanted}, Machine(say))
    return open_engine(wanted, say)


def as_text(probed: "Probed", known: Sequence[str] = (), width: int = UNBROKEN) -> str:
    version = f" {probed.version}" if probed.version else ""
    variant = f"@{probed.variant}" if probed.variant else ""
    label = probed.backend + variant + ("" if probed.api == "chat" else f"@{probed.api}")
    lines = [f"{label}{version} at {probed.base_url}, model {probed.served_name}"]
    if probed.simulated:
        lines.append("SIMULATED: no inference engine answered")
    lines += ["", *_table(probed, width), ""]
    differ, matter = len(probed.mismatches), sum(finding.matters for finding in probed.findings)
    lines.append(
        f"{counted(probed.requests, 'request')} in {probed.wall_s:.1f} s: "
        + (
            f"{differ} of {len(probed.findings)} not as declared, {matter} of consequence"
            if differ
            else "nothing that was seen differs from what is declared"
        )
    )
    lines += (f"known of it: {line}" for line in known)
    return "\n".join(wrapped(line, width) for line in lines)


def _table(probed: "Probed", width: int) -> Iterator[str]:
    from harness.report.text.terminal_text import hanging

    rows = [("", "what", "declared", "seen")]
    rows += [
        (_MARKS[each.holds], each.topic, each.declared or "–", each.seen or "–") for each in probed.findings
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for (*cells, seen), finding in zip(rows, (None, *probed.findings), strict=True):
        left = "".join(f"{cell:<{size}}  " for cell, size in zip(cells, widths, strict=True))
        yield from hanging(left, seen, width)
        if finding and finding.then:
            yield from hanging(" " * min(len(left), width // 4) + "→ ", finding.then, width)
