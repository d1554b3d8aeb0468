"""`bench report`: everything that can be derived from a run folder, derived again; or one page of several."""

import argparse
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from harness.cli.commands import runs_page
from harness.cli.display.result import Result, put
from harness.cli.flags import options
from harness.cli.typed import ResultForms, typed
from harness.errors import SpecError, page_address
from harness.host import scratch
from harness.model import Prices
from harness.model.lines import wrap

if TYPE_CHECKING:
    from harness.store import RunFolder

TOOLS = ("vllm", "sglang", "aiperf", "guidellm", "inference-perf")


@dataclass(frozen=True)
class Options(ResultForms):
    runs: tuple[str, ...]
    tool: str | None
    html: Path | None
    out: Path
    prices: Prices | None

    @classmethod
    def from_parsed(cls, parsed: argparse.Namespace) -> Self:
        return typed(cls, parsed, prices=options.prices(parsed))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_runs(parser, files=True)
    parser.add_argument(
        "--as",
        dest="tool",
        metavar="NAME[@VERSION]",
        help=f"print what a tool would report from the same records, and why it differs; write nothing "
        f"({', '.join(TOOLS)}; of another version, vllm@0.33)",
    )
    runs_page.add_html(parser)
    options.add_runs_folder(parser)
    options.add_result_forms(parser)
    options.add_prices(parser)


def main(given: Options) -> Result:
    from harness.cli.commands.imports import made, results_at
    from harness.store import open_run

    _check(given)
    if given.html:
        return _several(given, given.html)
    with ExitStack() as stack:
        imports = given.out
        if given.tool:  # runs that are made of files for --as are removed afterwards
            imports = stack.enter_context(scratch.folder("import"))
        for name in given.runs:
            found = results_at(name)
            folder = made([found], imports, [name]) if found else open_run(name, given.out)
            if given.tool:
                put(_as_peer(folder, given.tool), as_json=given.json)
            else:
                _rebuild(folder, given)
    return Result()


def _check(given: Options) -> None:
    """Raises SpecError for flags that have no effect together."""
    flags = {"--as": given.tool, "--json": given.json, "-v": given.verbose, "a price": given.prices}
    used = [flag for flag, value in flags.items() if value]
    if given.html and used:
        raise SpecError(f"not with {used[0]}: the page of several runs has none of it", where="--html")
    if given.tool and (unread := [flag for flag in used if flag in ("-v", "a price")]):
        raise SpecError(f"not with {unread[0]}: another tool reports none of it", where="--as")
    if given.json and len(given.runs) > 1:
        raise SpecError("one document is of one run", where="--json", hint="report each run by itself")


def _several(given: Options, page: Path) -> Result:
    """One page. The folders of the runs stay as they are; the first run is the baseline."""
    from harness.report.findings.against import answers, run_words
    from harness.verdicts.baseline import compare_runs

    runs_page.check_several(given.runs)
    runs = runs_page.opened(given.runs, given.out)
    document = compare_runs(runs)
    runs_page.write(page, runs, document)
    made_up = [run_words(run) for run in document.runs if run.simulated]
    return Result(
        lambda screen: (
            *(
                part
                for line in (*answers(document), *made_up)
                for part in wrap(line, screen.width, subsequent_indent="  ")
            ),
            f"\nreport: {page}",
        )
    )


def _rebuild(folder: "RunFolder", given: Options) -> None:
    from harness.cli.display.results import show
    from harness.spec.prices import check_priced
    from harness.summary import summarise_folder

    check_priced(given.prices, [*folder.read_manifest().backends])
    folder.write_summary(summarise_folder(folder, given.prices))
    show(folder, given)


def _as_peer(folder: "RunFolder", name: str) -> Result:
    """Writes nothing: the folder says what we measured."""
    from harness.metrics.peers import recompute, tool_named
    from harness.report.text import peers

    try:
        tool = tool_named(name)
    except ValueError as error:
        raise SpecError(str(error), where="--as") from None
    summary = folder.read_summary()
    files = [cell.imported for cell in summary.cells if cell.imported]
    if lacking := [file for file in files if file.level != "records" or "arrivals" not in file.facts]:
        file = lacking[0]
        lacks = "arrival of each token" if file.level == "records" else "requests with their times"
        raise SpecError(
            f"no {lacks} to read as another tool: {file.words}",
            where=file.file,
            hint=f"{page_address('import')} has the tools and flags that keep them",
        )
    views = {cell: recompute([tool], *folder.read_cell(cell))[tool.name] for cell in folder.cells()}
    return Result(
        lambda screen: peers.terminal(summary, tool, views, screen.width),
        lambda: peers.as_json(summary, tool, views),
    )
