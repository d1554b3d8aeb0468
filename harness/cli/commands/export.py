"""`bench export`: rows of runs as CSV, JSON lines or Parquet, requests as OpenTelemetry spans, and cells in
the formats of others.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO

from harness.cli.commands.query import json_row, selected, write_csv
from harness.cli.display.output import print_note
from harness.cli.display.result import Result
from harness.cli.flags import options
from harness.cli.typed import Flags
from harness.errors import SetupError, SpecError, StorageError, writing
from harness.host import paths

if TYPE_CHECKING:
    from harness.store import RunFolder

EPILOG = """Rows:
  cells      one row per cell, with the figures of summary.json
  estimates  one row per backend, load and metric: over the repeats, with its
             95% interval
  verdicts   one row per pair of backends, load and metric
  requests   one row per request; times in ns since the cell's clock started
  events     one row per SSE event, two where it has two kinds of text; times
             in ns since the cell's clock started

The columns are those of `bench query`. Null is empty in CSV, and a text that
begins like a formula (with = + - @, a tab or a line break) gets an apostrophe
before it; jsonl and parquet have it as it is. parquet needs --to FILE.

otlp: each request as an OpenTelemetry span, without texts of prompts and
answers. One message of OTLP's JSON encoding per line, or sent to a collector:
--to http://127.0.0.1:4318/v1/traces

report-0.2, inferencex and mlperf: cells as a benchmark report of llm-d, a row of InferenceX,
or a summary of MLPerf's endpoints, one document for each cell; --to names a folder.
What they have no place for (validity, intervals, repeats) is in a field "llm-servebench",
and `bench import` reads it again.

Exit codes: 0 success; 2 no such run, or a damaged one; 3 the file cannot be
written, or the collector refused"""

EXCHANGE = ("report-0.2", "inferencex", "mlperf")
WHAT = ("cells", "estimates", "verdicts", "requests", "events")


@dataclass(frozen=True)
class Options(Flags):
    runs: tuple[str, ...]
    out: Path
    what: str | None
    format: str | None
    to: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_runs(parser)
    options.add_runs_folder(parser)
    parser.add_argument(
        "--what", choices=WHAT, help="rows to export (default: cells; for otlp always requests)"
    )
    parser.add_argument(
        "--format",
        choices=("csv", "jsonl", "parquet", "otlp", *EXCHANGE),
        metavar="FORMAT",
        help="format of rows: csv, jsonl, parquet, otlp (default: as FILE ends, else csv); of a document "
        f"per cell: {', '.join(EXCHANGE)}",
    )
    parser.add_argument(
        "--to",
        default="-",
        metavar="FILE",
        help="file to write; for otlp also the URL of a collector, for documents a folder; - is standard "
        "output (default: -)",
    )


def main(given: Options) -> Result:
    import duckdb

    from harness.store import each_once, open_run

    form = given.format or _format_of(given.to)
    as_spans = form == "otlp"
    what = given.what or ("requests" if as_spans else "cells")
    if as_spans and what != "requests":
        raise SpecError("otlp has spans of requests alone", where=f"--what {what}")
    folders = each_once(open_run(name, given.out) for name in given.runs)
    if form in EXCHANGE:
        if what != "cells":
            raise SpecError(f"{form} has cells alone", where=f"--what {what}")
        return Result(_written_documents(folders, form, given.to))
    try:
        if form == "parquet":
            _write_parquet(folders, what, given.to)
        else:
            _write_rows(folders, what, form, given.to)
    except duckdb.Error as error:
        raise SpecError(str(error).strip(), where=what) from None
    return Result()


def _format_of(to: str) -> str:
    """The format of rows that a file's name ends in; csv of any other name. Raises SpecError for JSON."""
    ending = Path(to).suffix[1:].lower()
    if ending == "json":
        raise SpecError(
            "rows are no JSON document",
            where=f"--to {to}",
            hint="--format jsonl, or otlp, writes a JSON document in each line",
        )
    return ending if ending in ("jsonl", "parquet") else "csv"


def _write_rows(folders: Sequence["RunFolder"], what: str, form: str, to: str) -> None:
    from harness.report.exchange import otlp
    from harness.report.samples import tpot_ms_by_seq
    from harness.store.database import database

    as_spans = form == "otlp"
    with database(folders, tpot_ms_by_seq) as (connected, faults):
        if faults:
            raise faults[0]
        # No order by: rows come as they were written, however many, and are not held.
        names, rows = selected(connected, otlp.QUERY if as_spans else f"select * from {what}")
        if as_spans and to.startswith(("http://", "https://")):
            _send(otlp.messages(names, rows), to)
            return
        with _opened(to) as stream:
            if form == "csv":
                write_csv(names, rows, stream)
            elif as_spans:
                stream.writelines(f"{json.dumps(message)}\n" for message in otlp.messages(names, rows))
            else:
                stream.writelines(f"{json_row(names, row)}\n" for row in rows)


def _written_documents(folders: Sequence["RunFolder"], kind: str, to: str) -> Sequence[str]:
    """Returns the document for standard output; a folder takes each under the name of its run and cell."""
    from harness.host import installation
    from harness.report.exchange import documents
    from harness.report.findings.notes import banner
    from harness.store import names_apart, refuse_file_of_run
    from harness.store.confined import Confined

    written = []
    names = names_apart(folder.run_id for folder in folders)
    for folder, run in zip(folders, names, strict=True):
        summary, packages = folder.read_summary(), folder.read_manifest().packages
        if made_up := banner(summary):
            print_note(f"{run}: {made_up}")
        written += [
            (f"{run}.{cell}.json", json.dumps(document, indent=1, allow_nan=False))
            for cell, document in documents(kind, summary, packages.get(installation.DISTRIBUTION))
        ]
    if not written:
        raise SpecError("no cell was measured, so there is no document to write")
    if to == "-":
        if len(written) > 1:
            what = f"{len(written)} documents, one for each cell"
            raise SpecError(what, where="--to -", hint="--to FOLDER")
        return [written[0][1]]
    refuse_file_of_run(Path(to, "manifest.json"), f"--to {to}")  # any JSON file there is one
    with writing(to):
        Path(to).mkdir(parents=True, exist_ok=True)
    for name, text in written:  # cells have the names that the sender of the run gave them
        Confined(Path(to)).write(name, f"{text}\n".encode())
    return []


def _write_parquet(folders: Sequence["RunFolder"], what: str, to: str) -> None:
    """An existing file is replaced once the new one is whole."""
    from harness.report.samples import tpot_ms_by_seq
    from harness.store import parquet, refuse_file_of_run
    from harness.store.database import database

    if to == "-":
        raise SpecError("parquet is binary and needs a file", where="--to -", hint=f"--to {what}.parquet")
    path = Path(to)
    refuse_file_of_run(path, f"--to {to}")
    if paths.entry(path) not in ("file", None):
        raise SpecError("is no file that can be replaced", where=f"--to {to}")
    with _replacing(to) as file:
        target = parquet.by_descriptor(file.fileno())
        with database(folders, tpot_ms_by_seq, writes=[target]) as (connected, faults):
            if faults:
                raise faults[0]
            parquet.export(connected, what, target)


@contextmanager
def _opened(to: str) -> Iterator[TextIO]:
    """A file is replaced once the new one is whole, where its folder allows it; a link, a pipe and a device
    stay and are written to.
    """
    from harness.store import refuse_file_of_run

    if to == "-":
        yield sys.stdout
        return
    path = Path(to)
    refuse_file_of_run(path, f"--to {to}")
    ordinary = paths.entry(path) in ("file", None) and not path.is_symlink()
    if not (ordinary and os.access(path.parent, os.W_OK)):
        with writing(to), path.open("w", encoding="utf-8", newline="") as stream:
            yield stream
        return
    with _replacing(to) as file:
        stream = TextIOWrapper(file, encoding="utf-8", newline="")
        yield stream
        stream.detach()  # writes the rest, and leaves the file open for its sync


@contextmanager
def _replacing(to: str) -> Iterator[IO[bytes]]:
    from harness.store.confined import Confined

    path = Path(to)
    try:
        with writing(to), Confined(path.parent).replacing(path.name) as file:
            yield file
    except StorageError as error:
        raise StorageError(error.what, where=to) from None


def _send(messages: Iterable[Mapping[str, Any]], url: str) -> None:
    from harness.client.client import Client

    with closing(Client("")) as client:
        for message in messages:
            answer = client.ask("POST", url, json=message)
            if not answer.ok:
                raise SetupError(f"the collector answered {answer.status}: {answer.said}", where=url)
