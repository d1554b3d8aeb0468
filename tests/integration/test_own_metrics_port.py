"""An engine that bench starts and whose metrics have a port of their own, in milliseconds."""

import pytest

from harness.host import paths
from tests.integration.scripted import SMALL, bench, define, summary

# The scripted server as Modular MAX; its metrics are passed on at another port, under a path it has not.
ENGINE = f"""\
import subprocess, sys

sys.path.insert(0, {str(paths.CHECKOUT)!r})
from tests.second_port import pass_on

port, second, *rest = sys.argv[1:]
truth = [sys.executable, "-m", "harness", "truth", "--dialect", "modular-max"]
subprocess.Popen([*truth, "--port", port, *rest])
pass_on(int(port), int(second), "/figures").serve_forever()
"""
METRICS = """
[metrics]
path = "/figures"
own_port = true
histogram_unit = "ms"
[metrics.counters]
output_tokens = "maxserve_num_output_tokens_total"
[metrics.histograms]
ttft = "maxserve_time_to_first_token_milliseconds"
"""


@pytest.fixture
def apart(here):
    file = define("apart")
    (here / "engine.py").write_text(ENGINE)
    text = file.read_text()
    text = text[: text.index("[metrics]")] + METRICS
    text = text.replace('"-m", "harness", "truth"]', f'"{here}/engine.py", "{{port}}", "{{second_port}}"]')
    file.write_text(text.replace('"--host", "{host}", "--port", "{port}", ', ""))


@pytest.mark.long
@pytest.mark.time
def test_its_counters_and_times_are_read_there(apart):
    bench("run", "--scenario", "fixed-length", "--backends", "apart", *SMALL, "--repeats", "1", code=(0, 4))
    (cell,) = summary()["cells"]
    server = cell["server"]  # of 16 measured requests, and 24 that warm up
    assert server["output_tokens"] == 40 * 8
    assert not [reason for reason in cell["validity"]["reasons"] if reason["code"] == "does-not-add-up"]
    assert server["histograms"]["ttft_ms"]["count"] == 40
    assert server["histograms"]["ttft_ms"]["mean"] == pytest.approx(400, rel=0.1)
    assert cell["ttft_ms"]["p50"] == pytest.approx(400, abs=30)
    assert 250 < server["histograms"]["ttft_ms"]["p50"] < 500  # the bucket it lies in
