"""`bench URL` as a person calls it, on scripted servers."""

import json
import shlex
from urllib.request import Request, urlopen

from harness.mockserver import running
from tests.factories.sockets import PEM
from tests.integration.scripted import MEASURED, bench, run_folder, summary

QUICK = {"ttft_ms": 60, "gap_ms": 1}


def test_a_url_becomes_a_run_that_its_last_line_repeats(here):
    with running(dialect="llamacpp", **QUICK) as server:
        done = bench(f"{server.url}/v1/", "--minutes", "0.2", "--no-report", code=MEASURED, COLUMNS="80")
        *shown, last = done.stdout.splitlines()
        words = shlex.split(last.partition("bench ")[2])
        assert f"llamacpp={server.url}" in words
        manifest = json.loads((run_folder() / "manifest.json").read_text())
        assert manifest["command"] == ["bench", *words]
    assert summary()["scenario"] == "first-look"
    cells = summary()["cells"]
    loads = [f"{cell['load']['value']:g}" for cell in cells]
    assert ",".join(loads) == words[words.index("--concurrency") + 1]
    usable = any(cell["validity"]["verdict"] != "INVALID" for cell in cells)  # on a busy machine none may be
    assert any("█" in line for line in shown) == (usable and len(loads) > 1)  # one bar is compared with none
    assert "SIMULATED" in done.stdout
    assert max(map(len, shown)) <= 80
    assert "░" not in done.stdout  # progress is not a result


def test_a_server_with_two_models(here):
    with running(dialect="ollama", **QUICK) as server:
        body = json.dumps({"source": "simulated", "destination": "other"}).encode()
        urlopen(Request(f"{server.url}/api/copy", data=body, method="POST"), timeout=10).close()
        assert "--model-name" in bench(server.url, code=2).stderr


def test_a_server_that_is_reached_by_the_wrong_scheme(here):
    with running(tls_pem=PEM, **QUICK) as server:
        wrong = bench(server.url.replace("https:", "http:"), code=3)
    assert f"a server answers at {server.url}" in wrong.stderr
