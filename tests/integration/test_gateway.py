"""Whole commands on a server behind a gateway, and no secret in anything that they leave or show."""

import json
import os
import subprocess
import threading
from base64 import b64encode
from pathlib import Path
from urllib.parse import quote

import pytest

from harness.cli.display.result import Result
from harness.host import paths
from harness.mockserver.process import running
from tests.integration.gateway import ALIAS, HEADER_KEY, QUERY_KEY, gateway, make_certificates
from tests.integration.scripted import MEASURED, bench, bench_here, command, run_folder, summary

STRANGER = {"client_cert": "stranger.pem", "client_key": "stranger.key"}
KEY = "sk-bearer-0123456789abcdef"
SECRETS = {"TEAM_KEY": HEADER_KEY, "GATE_CODE": QUERY_KEY, "BENCH_API_KEY": KEY}
LOAD = (
    *("--scenario", "fixed-length", "--requests", "12", "--concurrency", "2", "--repeats", "1"),
    *("--output-tokens", "8", "--input-tokens", "32", "--set", "load.warmup_requests=2"),
    *("--set", "verdict.cool_down_s=0"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("pki") / "pki"
    make_certificates(made)
    return made


@pytest.fixture(scope="module")
def front(folder):
    # So slow that a busy machine spoils no cell, to be measured again.
    with running(dialect="vllm", ttft_ms=600, gap_ms=10) as server, gateway(server.url, folder) as made:
        yield made


def reach(folder, **changed):
    """Every flag that this gateway wants, but for those that are changed; None leaves one out."""
    flags = {
        "ca-cert": folder / "ca.pem",
        "client-cert": folder / "client.pem",
        "client-key": folder / "client.key",
        "header": "X-Gateway-Key=ENV:TEAM_KEY",
        **{name.replace("_", "-"): value for name, value in changed.items()},
    }
    words = [word for name, value in flags.items() if value for word in (f"--{name}", str(value))]
    return [*words, "--query", "code=ENV:GATE_CODE", "--query", "api-version=2026-01"]


def spellings(secret):
    """As it stands somewhere, or could."""
    return {
        form.encode()
        for form in (
            secret,
            quote(secret, safe=""),
            json.dumps(secret)[1:-1],
            b64encode(secret.encode()).decode().rstrip("="),
        )
    }


def watched(*words, **environment):
    """The command's exit code, all it printed, and the command lines of it and its children meanwhile."""
    before = set(Path("/proc").glob("[0-9]*"))
    process = subprocess.Popen(
        command(*words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "COLUMNS": "100", **environment},
    )
    lines, over = set[bytes](), threading.Event()

    def look():
        while not over.wait(0.1):
            for entry in set(Path("/proc").glob("[0-9]*")) - before:
                try:
                    lines.add((entry / "cmdline").read_bytes())
                except OSError:
                    continue

    thread = threading.Thread(target=look)
    thread.start()
    try:
        out, err = process.communicate(timeout=240)
    finally:
        over.set()
        thread.join()
    return process.returncode, out + err, lines


def test_a_whole_run_leaves_no_secret_and_gives_each_request_a_session(here, folder, front):
    definition = (paths.shipped("backends") / "vllm.toml").read_text()
    tokenizer = '[server.tokenize]\npath = "/tokenize"'  # it is asked for 600 words, one after the other
    assert tokenizer in definition
    unasked = definition.replace(tokenizer, tokenizer.replace("/tokenize", "/none"))
    Path("backends", "vllm.toml").write_text(unasked)
    code, said, lines = watched(
        *("run", *LOAD, "--backends", f"vllm={front.url}", *reach(folder)),
        *("--header", "X-Session-Id=chat-{session}", "--verbose"),
        **SECRETS,
    )
    assert code in MEASURED, said.decode()
    assert summary()["cells"][0]["requests"]["outcomes"] == {"ok": 12}
    assert any(b"harness.load" in line for line in lines)  # workers were seen
    left = [path.read_bytes() for path in Path().rglob("*") if path.is_file()]
    assert len(left) > 10
    for secret in SECRETS.values():
        for form in spellings(secret):
            assert not any(form in one for one in (said, *lines, *left)), form
    assert json.loads((run_folder() / "manifest.json").read_text())["options"]["headers"] == [
        "X-Gateway-Key=ENV:TEAM_KEY",
        "X-Session-Id=chat-{session}",
    ]
    assert {f"chat-{number}" for number in range(14)} <= set(front.sessions)
    assert "/metrics" in front.paths


def test_an_engine_whose_pages_are_hidden_is_measured_with_counters_of_its_own_address(here, folder):
    """Not /metrics alone, but /health too is hidden by a gateway that passes the API on."""
    with (
        running(dialect="vllm", ttft_ms=60, gap_ms=5) as server,
        gateway(server.url, folder, hides=True) as front,
    ):
        words = ("run", *LOAD, "--backends", f"vllm={front.url}", *reach(folder))
        code, said, _lines = watched(*words, **SECRETS)
        assert code == 3
        assert b"--metrics-url" in said
        code, said, _lines = watched(*words, "--metrics-url", server.url, **SECRETS)
        assert code in MEASURED, said.decode()
        assert summary()["cells"][0]["ttft_parts"]["engine_ms"] >= 60
        own = (f"vllm={front.url}", *reach(folder), "--metrics-url", server.url)
        code, said, _lines = watched("probe", *own, **SECRETS)
        assert code in (0, 1), said.decode()
        code, said, _lines = watched(*own, "--minutes", "0.1", "--no-report", **SECRETS)
        assert code in MEASURED, said.decode()
        assert f"--metrics-url {server.url}".encode() in said


@pytest.mark.parametrize(
    ("changed", "environment", "code", "says"),
    [
        ({"ca_cert": None}, {}, 3, "--ca-cert FILE"),
        ({"client_cert": None, "client_key": None}, {}, 3, "wants a client certificate: --client-cert FILE"),
        (STRANGER, {}, 3, "refuses the client certificate"),
        ({"client_key": "stranger.key"}, {}, 2, "key values mismatch"),
        ({"client_key": "locked.key"}, {}, 2, "the key needs a password"),
        ({"ca_cert": "names"}, {}, 2, "no certificate or crl found"),
        ({"ca_cert": "absent.pem"}, {}, 2, "No such file"),
        ({"client_cert": None}, {}, 2, "needs --client-cert"),
        ({}, {"TEAM_KEY": ""}, 2, "environment variable TEAM_KEY is not set"),
        ({}, {"TEAM_KEY": "wr0ng-key-9876543210"}, 3, "refuses with 401"),
        ({}, {"GATE_CODE": "wr0ng-code-9876543210"}, 3, "refuses with 403"),
        ({}, {"TEAM_KEY": "two\nlines-9876543210"}, 2, "not printable ASCII"),
        ({"header": f"X-Gateway-Key={HEADER_KEY[::-1]}"}, {}, 2, "looks like a secret"),
        ({"header": "X-Team=Bearer abc"}, {}, 2, "looks like a secret"),
        ({"header": "Host=elsewhere"}, {}, 2, "is set by bench itself"),
        ({"header": "sglang=X-Key=ENV:TEAM_KEY"}, {}, 2, "'sglang' is not one of the backends"),
        ({"header": "X-Key=ENV:two words"}, {}, 2, "not the name of an environment variable"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("words", [("probe",), ("run", *LOAD, "--backends"), ()], ids=["probe", "run", "URL"])
def test_each_mistake_is_one_error(here, folder, front, monkeypatch, words, changed, environment, code, says):
    if "sglang=" in str(changed.get("header")) and words[:1] != ("run",):
        code, says = 2, "is not one of the backends"
    files = {name: folder / value if name != "header" and value else value for name, value in changed.items()}
    url = f"vllm={front.url}" if words else front.url
    for name, value in (SECRETS | environment).items():
        monkeypatch.setenv(name, value)
    done = bench_here(*words, url, *reach(folder, **files), code=code)
    assert says in done.stderr
    assert done.stderr.count("error:") == 1
    for secret in (*SECRETS.values(), HEADER_KEY[::-1], *filter(None, environment.values())):
        assert not any(form in (done.stdout + done.stderr).encode() for form in spellings(secret))


def test_a_url_alone_and_the_probe_reach_it_too(here, folder, front, monkeypatch):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    asked = []
    monkeypatch.setattr("harness.cli.commands.run.measure", lambda flags, *_: asked.append(flags) or Result())
    done = bench_here(front.url, *reach(folder))
    assert f"model {ALIAS}" in done.stderr
    assert "--header X-Gateway-Key=ENV:TEAM_KEY" in done.stdout.replace("\\\n", " ")
    (asked_run,) = asked  # as the run of the first test is asked for
    run = asked_run.run
    assert (run.headers, run.ca_cert) == (("X-Gateway-Key=ENV:TEAM_KEY",), (str(folder / "ca.pem"),))
    probed = bench_here("probe", f"vllm={front.url}", *reach(folder), "--json", code=(0, 1))
    assert json.loads(probed.stdout)["served_name"] == ALIAS


def test_each_backend_has_its_own_key_and_name(here, folder, front):
    """The plain server wants neither key nor certificate, and would not answer to the alias."""
    with running(dialect="vllm", ttft_ms=300, gap_ms=10) as plain:
        gated = [f"vllm@eager={word}" if number % 2 else word for number, word in enumerate(reach(folder))]
        bench(
            *("run", *LOAD, "--no-probe", "--no-report", "--no-agreement", "--anyway"),
            *("--backends", f"vllm={plain.url},vllm@eager={front.url}", *gated),
            *("--api-key-env", "vllm@eager=TEAM_KEY", "--model-name", f"vllm@eager={ALIAS},vllm=simulated"),
            code=MEASURED,
            **SECRETS,
        )
    assert [cell["requests"]["outcomes"] for cell in summary()["cells"]] == [{"ok": 12}, {"ok": 12}]
