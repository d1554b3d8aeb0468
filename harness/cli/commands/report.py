"""`bench report`: everything that can be derived from a run folder, derived again; or one page of several."""

import argparse
import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.commands import runs_page
from harness.cli.display.output import page_width
from harness.cli.flags import options
from harness.errors import ExitCode, SpecError, page_address
from harness.model import Prices
from harness.model.lines import wrap

if TYPE_CHECKING:
    from harness.store import RunFolder

TOOLS = ("vllm", "sglang", "aiperf", "guidellm", "inference-perf")


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


def main(arguments: argparse.Namespace) -> int:
    from harness.cli.commands.imports import made, results_at
    from harness.store import open_run

    _check(arguments)
    if arguments.html:
        return _several(arguments)
    width = page_width()
    with ExitStack() as stack:
        imports = arguments.out
        if arguments.tool:  # runs that are made of files for --as are removed afterwards
            imports = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-import-")))
        for name in arguments.runs:
            found = results_at(name)
            folder = made([found], imports, [name]) if found else open_run(name, arguments.out)
            if arguments.tool:
                _as_peer(folder, arguments.tool, width, as_json=arguments.json)
            else:
                _rebuild(folder, arguments, options.prices(arguments))
    return ExitCode.OK


def _check(arguments: argparse.Namespace) -> None:
    """Raises SpecError for flags that have no effect together."""
    priced = any((arguments.price_per_hour, arguments.price_per_gpu_hour, arguments.prices))
    given = {"--as": arguments.tool, "--json": arguments.json, "-v": arguments.verbose, "a price": priced}
    used = [flag for flag, value in given.items() if value]
    if arguments.html and used:
        raise SpecError(f"not with {used[0]}: the page of several runs has none of it", where="--html")
    if arguments.tool and (unread := [flag for flag in used if flag in ("-v", "a price")]):
        raise SpecError(f"not with {unread[0]}: another tool reports none of it", where="--as")
    if arguments.json and len(arguments.runs) > 1:
        raise SpecError("one document is of one run", where="--json", hint="report each run by itself")


def _several(arguments: argparse.Namespace) -> int:
    """One page. The folders of the runs stay as they are; the first run is the baseline."""
    from harness.report.findings.against import answers, run_words
    from harness.verdicts.baseline import compare_runs

    runs_page.check_several(arguments.runs)
    runs = runs_page.opened(arguments.runs, arguments.out)
    document = compare_runs(runs)
    runs_page.write(arguments.html, runs, document)
    made_up = [run_words(run) for run in document.runs if run.simulated]
    for line in (*answers(document), *made_up):
        print("\n".join(wrap(line, page_width(), subsequent_indent="  ")))
    print(f"\nreport: {arguments.html}")
    return ExitCode.OK


def _rebuild(folder: "RunFolder", arguments: argparse.Namespace, priced: Prices | None) -> None:
    from harness.cli.display.results import show
    from harness.spec.prices import check_priced
    from harness.summary import summarise_folder

    check_priced(priced, [*folder.read_manifest().backends])
    folder.write_summary(summarise_folder(folder, priced))
    show(folder, arguments)


def _as_peer(folder: "RunFolder", name: str, width: int, *, as_json: bool) -> None:
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
    if as_json:
        print(json.dumps(peers.as_json(summary, tool, views), indent=1))
    else:
        print(peers.terminal(summary, tool, views, width), end="")
