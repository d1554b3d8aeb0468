"""The text that Prometheus reads, and the dashboard that shows it."""

import json
import re
import socket
import urllib.error
import urllib.request
from argparse import ArgumentTypeError
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.cli.display.metrics_port import METRICS, PREFIX, TYPE, exposition, serving
from harness.cli.display.progress import State
from harness.cli.flags.argument_types import address
from harness.engines.speak.prometheus import totals
from harness.errors import SetupError
from tests.factories import summaries
from tests.factories.progress import CELL, EIGHT, MEASURED, progress, run

ROOT = Path(__file__).resolve().parents[4]
DASHBOARD = ROOT / "deploy" / "grafana" / "llm-servebench.json"


def going(*cells, **changes):
    made = run(*(cells or MEASURED), **changes)
    made.folder = SimpleNamespace(run_id="20261122-first-look")
    made.prepared.backends = ()
    return State(0.0, made, load=(CELL, progress(failed=1)))


def test_everything_that_is_known_is_told():
    text = exposition(going(), 60.0)
    assert set(re.findall(r"^# TYPE (\w+) gauge$", text, re.MULTILINE)) == {PREFIX + name for name in METRICS}
    found = totals(text, [PREFIX + name for name in METRICS])
    assert found["bench_run_elapsed_seconds"] == 60
    assert found["bench_cells_left"] == 17
    assert found["bench_cell_in_flight_requests"] == 8
    assert found["bench_cell_recent_ttft_seconds"] == 0.228
    assert 'bench_cells_measured{backend="vllm",load="c8",verdict="SUSPECT"} 1' in text
    assert 'bench_cell_failed_requests{backend="llamacpp",load="c8"} 1' in text
    assert 'bench_run_info{run="20261122-first-look",scenario="first-look",simulated="false"} 1' in text


def test_every_line_is_of_the_format():
    line = re.compile(r'(# (HELP|TYPE) bench_\w+ .+|bench_\w+(\{(\w+="([^"\\\n]|\\.)*",?)+\})? -?[\d.e+-]+)')
    for text in exposition(going(labels=("v", 'a"quote')), 60.0).splitlines():
        assert line.fullmatch(text), text


def test_what_is_not_known_is_absent():
    found = exposition(State(0.0), 60.0)
    assert [line for line in found.splitlines() if line[0] != "#"] == ["bench_run_elapsed_seconds 60.0"]
    search = exposition(going(search=True), 60.0)
    assert "bench_cells_left" not in search
    assert "bench_run_left_seconds" not in search


def test_the_figures_are_those_of_the_cell_that_began_last():
    cells = (
        summaries.cell("vllm", EIGHT, repeat, p50=p50, started_unix_ns=began)
        for repeat, p50, began in ((1, 30.0, 2), (0, 10.0, 1))
    )
    text = exposition(going(*cells), 60.0)
    assert 'bench_measured_ttft_p50_seconds{backend="vllm",load="c8"} 0.03\n' in text
    assert 'bench_cells_measured{backend="vllm",load="c8",verdict="VALID"} 2\n' in text


def test_the_figures_of_an_invalid_cell_are_withheld():
    invalid = summaries.verdict("INVALID", "engine-died", "signal 9", "alive", "")
    text = exposition(going(summaries.cell("vllm", EIGHT, validity=invalid)), 60.0)
    assert 'verdict="INVALID"} 1' in text
    assert "bench_measured" not in text


def test_a_scripted_server_is_told():
    assert 'simulated="true"' in exposition(going(summaries.cell("vllm", EIGHT, simulated=True)), 60.0)


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def test_it_is_served_while_the_run_goes_and_not_after():
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with serving(("127.0.0.1", port), going()):
        with urllib.request.urlopen(f"{url}/metrics", timeout=5) as answer:
            assert answer.headers["content-type"] == TYPE
            assert b"bench_run_info" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            urllib.request.urlopen(f"{url}/", timeout=5)
        refused.value.close()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{url}/metrics", timeout=5)


def test_a_taken_port_is_an_error_before_the_run():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SetupError, match="--metrics-port"), serving(taken.getsockname(), State(0.0)):
            pytest.fail("served")


def test_only_this_machine_unless_told():
    assert address("9400") == ("127.0.0.1", 9400)
    assert address("0.0.0.0:9400") == ("0.0.0.0", 9400)
    for wrong in ("", "here", "70000", "host:"):
        with pytest.raises(ArgumentTypeError):
            address(wrong)


def test_the_dashboard_shows_what_is_served_and_all_of_it():
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    expressions = [one["expr"] for panel in dashboard["panels"] for one in panel["targets"]]
    named = {name for text in expressions for name in re.findall(rf"\b{PREFIX}\w+", text)}
    assert named == {PREFIX + name for name in METRICS}


def test_the_page_lists_them():
    page = (ROOT / "docs" / "watching.md").read_text(encoding="utf-8")
    assert dict(re.findall(rf"^\| `{PREFIX}(\w+)` \| (.+) \|$", page, re.MULTILINE)) == METRICS
