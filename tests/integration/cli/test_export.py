"""`bench export`: the rows of runs, as other programs read them."""

import csv
import io
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from harness.cli.main import main
from harness.errors import ExitCode
from harness.store import RunFolder
from tests.integration.cli.test_query import OTHER, RUN, results

__all__ = ["results"]


def export(capsys, *words):
    code = main(["export", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


def read_csv(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_cells_are_those_of_the_summaries_in_the_order_of_the_runs(capsys, results):
    code, out, err = export(capsys, OTHER, RUN, "--out", results)
    assert (code, err) == (ExitCode.OK, "")
    wanted = [
        (run, cell["cell"], cell["ttft_ms"]["p50"])
        for run in (OTHER, RUN)
        for cell in json.loads((results / run / "summary.json").read_text())["cells"]
    ]
    found = [(row["run"], row["cell"], float(row["ttft_ms_p50"] or "nan")) for row in read_csv(out)]
    assert [one[:2] for one in found] == [one[:2] for one in wanted]
    assert found[0] == wanted[0]


def test_estimates_are_those_of_the_summaries_with_their_intervals(capsys, results):
    code, out, err = export(capsys, RUN, "--out", results, "--what", "estimates", "--format", "jsonl")
    assert (code, err) == (ExitCode.OK, "")
    wanted = json.loads((results / RUN / "summary.json").read_text())["estimates"]
    assert wanted
    assert [json.loads(line) for line in out.splitlines()] == [
        {
            "run": RUN,
            "label": each["label"],
            "load_kind": each["load"]["kind"],
            "load_value": each["load"]["value"],
            "metric": each["metric"],
            **dict(zip(("low", "estimate", "high"), each["interval"], strict=True)),
            "runs": each["runs"],
            "method": each["method"],
        }
        for each in wanted
    ]


@pytest.mark.parametrize("what", ["requests", "events"])
def test_records_are_exported_in_both_formats_alike(capsys, results, tmp_path, what):
    file = tmp_path / "rows.jsonl"
    words = (results / RUN, "--what", what)
    assert export(capsys, *words, "--format", "jsonl", "--to", file) == (ExitCode.OK, "", "")
    _code, out, _err = export(capsys, *words, "--format", "csv")
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    rows = read_csv(out)
    assert [list(line) for line in lines[:1]] == [list(rows[0])]
    assert len(lines) == len(rows)
    folder = RunFolder(results / RUN)
    records = [folder.read_cell(name)[0] for name in folder.cells()]
    assert len(lines) == sum(len(getattr(one, what)) for one in records)
    first = getattr(records[0], what)
    name = "sent_ns" if what == "requests" else "stamp_ns"
    assert [line[name] for line in lines[:5]] == [int(value) for value in first[name][:5]]


def test_what_cannot_be_read_or_written_is_one_error(capsys, results, tmp_path):
    code, out, err = export(capsys, "nosuch", "--out", results)
    assert (code, out) == (ExitCode.USAGE, "")
    assert "nosuch" in err
    code, _out, err = export(capsys, results / RUN, "--to", tmp_path / "no" / "such" / "folder.csv")
    assert code == ExitCode.SETUP
    assert "folder.csv" in err
    cell = next((results / RUN / "cells").iterdir()) / "requests.parquet"
    cell.write_bytes(b"PAR1 damaged")
    code, out, err = export(capsys, results / RUN)
    assert (code, out) == (ExitCode.USAGE, "")
    assert RUN in err


class Collector(BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200 if self.path == "/v1/traces" else 404)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_arguments):
        pass


@pytest.fixture
def collector():
    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        server.bodies = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def spans(text):
    """As OpenTelemetry's own types read them: an unknown field is an error."""
    message = json_format.Parse(text, ExportTraceServiceRequest())
    return [
        (resource.resource, span)
        for resource in message.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def plain(attributes):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


def test_each_request_is_a_span_of_the_backend_that_answered(capsys, results):
    code, out, err = export(capsys, results / RUN, "--format", "otlp")
    assert (code, err) == (ExitCode.OK, "")
    found = [span for line in out.splitlines() for span in spans(line)]
    folder = RunFolder(results / RUN)
    cells = {cell.cell: cell for cell in folder.read_summary().cells}
    sent = [
        (name, row)
        for name in folder.cells()
        for row in folder.read_cell(name)[0].requests
        if row["sent_ns"] >= 0
    ]
    assert len(found) == len(sent)
    by_place = {
        (plain(resource.attributes)["bench.cell"], plain(span.attributes)["bench.seq"]): (resource, span)
        for resource, span in found
    }
    for cell, row in sent:
        resource, span = by_place[cell, row["seq"]]
        assert plain(resource.attributes)["service.name"] == cells[cell].label
        assert span.end_time_unix_nano - span.start_time_unix_nano == row["end_ns"] - row["sent_ns"]
        assert span.start_time_unix_nano == cells[cell].started_unix_ns + row["sent_ns"]
        assert span.status.code == (1 if row["outcome"] == 0 else 2)
    assert len({(span.trace_id, span.span_id) for _resource, span in found}) == len(found)


def test_spans_are_sent_to_a_collector_which_may_refuse(capsys, results, collector):
    url = f"http://127.0.0.1:{collector.server_port}"
    words = (results / RUN, "--format", "otlp", "--to")
    assert export(capsys, *words, f"{url}/v1/traces") == (ExitCode.OK, "", "")
    assert sum(len(spans(body)) for body in collector.bodies) > 0
    code, _out, err = export(capsys, *words, f"{url}/elsewhere")
    assert (code, "answered 404" in err) == (ExitCode.SETUP, True)
    assert export(capsys, results / RUN, "--format", "otlp", "--what", "cells")[0] == ExitCode.USAGE
