"""What a person reads: every line, with what is not known said to be so."""

import json

import pytest

from harness.cli.commands.doctor import as_text
from harness.cli.main import main
from harness.doctor import examine, result
from harness.doctor.verdict import conclude
from harness.errors import ExitCode, StorageError
from harness.model import Dispersions, DoctorResult, LoadNode, OnNode, ScriptedServer
from tests.factories import documents
from tests.factories.doctor import rate, streams

MACHINE = {
    "host": {"cpus_usable": 2, "cpu_governor": None, "load_average_1min": 0.5},
    "clock": {
        "source": "tsc",
        "resolution_ns": 1.0,
        "kernel_receive_stamps": True,
        "stamp_uncertainty_ns": 60,
    },
    "limits": {
        "file_descriptors_hard": 1064,
        "ephemeral_ports": (32768, 60999),
        "connections_to_one_server": 1000,
    },
}


def text(measured, machine=MACHINE, core=0):
    return as_text(found(measured, machine, core))


def found(measured, machine=MACHINE, core=0, hint="a hint"):
    verdict = conclude(measured, [], [hint])
    return documents.made(DoctorResult, machine, verdict=verdict, server_core=core, loads=tuple(measured))


def test_table_machine_verdict_and_hints():
    shown = text([streams(8), rate(200, arrivals=Dispersions(1.02, 1.03))])
    heads, units, row = (shown.splitlines()[line] for line in (0, 2, 3))
    assert "TTFT error" in heads
    assert "µs/token" in units
    assert row.startswith("8 streams, gap 20 ms")
    figures = row.split()[5:]
    assert figures == "1,000 0.000/0.000/0.000 0.000/0.020/9.000 0.000 0.300 10.0 0.300 30 VALID".split()
    assert "cores    2 usable, server on core 0; governor n/a" in shown
    assert "32768–60999: 1000 connections to one server" in shown
    assert "arrivals open loop, 200/s: dispersion 1.02 as drawn, 1.03 as received" in shown
    assert "workers  one carries about 16 streams, 400 arrivals/s in half a core" in shown
    assert shown.splitlines()[-2].startswith("exact to ±0.1 ms up to 8 streams")
    assert shown.endswith("hint: a hint")


def test_the_gpus_that_telemetry_will_read_are_named_where_there_are_any():
    host = {**MACHINE["host"], "gpus": ("H100", "H100", "L4"), "gpu_driver": "580.1"}
    shown = text([streams(8)], {**MACHINE, "host": host}).splitlines()
    assert "GPUs     2× H100, 1× L4; driver 580.1" in shown
    assert "GPUs" not in text([streams(8)])


def test_what_was_measured_is_printed_though_it_cannot_be_stored(monkeypatch, capsys):
    """As JSON the error is the one document."""

    def full(_result):
        raise StorageError("No space left on device")

    monkeypatch.setattr(examine, "examine", lambda *_: found([streams(8)]))
    monkeypatch.setattr(result, "store", full)
    assert main(["doctor"]) == ExitCode.SETUP
    assert "exact to ±0.1 ms up to 8 streams" in capsys.readouterr().out
    assert main(["doctor", "--json"]) == ExitCode.SETUP
    assert json.loads(capsys.readouterr().out)["error"] == "No space left on device"


@pytest.mark.parametrize("columns", [60, 80])
def test_no_line_is_wider_than_the_terminal(columns):
    measured = [streams(8), streams(1024), rate(200, arrivals=Dispersions(1.02, 1.03))]
    lines = as_text(found(measured, hint="a hint of many words " * 5), columns).splitlines()
    assert max(map(len, lines)) <= columns
    assert " ".join(lines).count("VALID") == 3


def test_what_a_worker_carries_is_said_of_the_loads_that_were_exact():
    assert "workers  one carries about 16 streams in half a core" in text([streams(8)])
    assert "workers  what one carries is not known" in text([streams(8, 5.0)])


def test_nodes_of_a_cluster_have_a_line_each():
    known = {"name": "a", "address": "10.0.0.1", "clock_offset_ms": 3e6, "clock_uncertainty_ms": 0.016}
    told = documents.made(LoadNode, known | {"drift_ppm": 0.0, "start_skew_ms": None})
    shown = text([streams(8, nodes=(OnNode(told, 160, (0.02, 0.05, 0.9)), OnNode(told, 0, None)))], core=None)
    first, second = (line for line in shown.splitlines() if "10.0.0.1" in line)
    assert "160 requests, 0.020/0.050/0.900 ms; clock +3,000,000.000 ± 0.016 ms" in first
    assert "0 requests, n/a ms" in second
    assert second.endswith("start n/a ms")
    assert "workers  1 on 2 load nodes; one carries about 16 streams" in shown
    assert "workers  1 on 1 load node; " in text([streams(8, nodes=(OnNode(told, 1, None),))], core=None)


def test_what_is_not_known_is_not_zero():
    limits = {"file_descriptors_hard": None, "ephemeral_ports": None, "connections_to_one_server": None}
    unknown = streams(
        8, None, verdict="INVALID", server=ScriptedServer(None, None, None, None), other_cores=None
    )
    shown = text([unknown], MACHINE | {"limits": limits}, core=None)
    assert shown.splitlines()[3].split()[-8:] == [
        "n/a",
        "n/a",
        "n/a",
        "0.300",
        "10.0",
        "n/a",
        "n/a",
        "INVALID",
    ]
    assert "nothing pinned" in shown
    assert "unlimited open files, ports n/a: unlimited connections" in shown
    assert "other work kept n/a to n/a cores busy" in shown
