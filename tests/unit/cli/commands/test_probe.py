"""`bench probe`: what is printed of findings that are given, and the exit code of a server that differs."""

import json
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from harness import probe as probing
from harness.cli.commands import probe
from harness.cli.main import main
from harness.errors import ExitCode
from harness.model import Finding, Probed

HOLDS = Finding("usage", "last", "last", True)
UNKNOWN = Finding("prefix cache", "", "0.93 of the prompt", None)
DIFFERS = Finding("exact length", "ignore_eos", "12 of 16 tokens", False, "lengths are free", True)
HARMLESS = Finding("done", "yes", "", False)


def probed(*findings, **changes):
    usual = {"backend": "vllm", "base_url": "http://127.0.0.1:8000", "served_name": "m", "requests": 12}
    return Probed(**{**usual, "wall_s": 3.25, "findings": findings, **changes})


@pytest.fixture
def engine(monkeypatch):
    """A running engine; `engine.answers` is what the probe finds."""
    found = SimpleNamespace(answers=probed(HOLDS), asked=None, known=[])

    @contextmanager
    def opened(_ref, _arguments, _say):
        yield SimpleNamespace(facts={"known": found.known})

    def examine(_engine, *, variant, limit_s):
        found.asked = (variant, limit_s)
        return found.answers

    monkeypatch.setattr(probe, "_engine", opened)
    monkeypatch.setattr(probing, "examine", examine)
    return found


def test_each_finding_is_a_row_and_what_is_done_about_it_stands_below():
    found = probed(HOLDS, UNKNOWN, DIFFERS, HARMLESS, version="0.33.0", variant="eager", simulated=True)
    assert probe.as_text(found).splitlines() == [
        "vllm@eager 0.33.0 at http://127.0.0.1:8000, model m",
        "SIMULATED: no inference engine answered",
        "",
        "    what          declared    seen",
        "ok  usage         last        last",
        "–   prefix cache  –           0.93 of the prompt",
        "no  exact length  ignore_eos  12 of 16 tokens",
        "                              → lengths are free",
        "no  done          yes         –",
        "",
        "12 requests in 3.2 s: 2 of 4 not as declared, 1 of consequence",
    ]


def test_what_was_seen_is_broken_within_its_column():
    null = Finding(
        "metrics", "/metrics", "7 of 9 series", True, "null: preemptions (vllm:num_preemptions_total)"
    )
    lines = probe.as_text(probed(UNKNOWN, null), ["a default of its own on large GPUs"], 40).splitlines()
    assert lines[2:] == [
        "    what          declared  seen",
        "–   prefix cache  –         0.93 of the",
        "                            prompt",
        "ok  metrics       /metrics  7 of 9",
        "                            series",
        "          → null: preemptions",
        "            (vllm:num_preemptions_total)",
        "",
        "12 requests in 3.2 s: nothing that was",
        "  seen differs from what is declared",
        "known of it: a default of its own on",
        "  large GPUs",
    ]


def test_one_request_is_no_plural():
    end = probe.as_text(probed(HOLDS, requests=1)).splitlines()[-1]
    assert end == "1 request in 3.2 s: nothing that was seen differs from what is declared"


def test_another_api_is_named_and_a_server_without_a_version_is_not():
    first, *_, last = probe.as_text(probed(HOLDS, UNKNOWN, api="responses")).splitlines()
    assert first == "vllm@responses at http://127.0.0.1:8000, model m"
    assert last == "12 requests in 3.2 s: nothing that was seen differs from what is declared"


@pytest.mark.parametrize(("finding", "code"), [(HOLDS, 0), (UNKNOWN, 0), (DIFFERS, 1), (HARMLESS, 1)])
def test_whatever_is_not_as_declared_fails(engine, capsys, finding, code):
    engine.answers, engine.known = probed(finding), ["dormant"]
    assert main(["probe", "vllm@eager=http://127.0.0.1:8000", "--timeout", "5"]) == code
    assert engine.asked == ("eager", 5.0)
    assert capsys.readouterr().out.endswith("\nknown of it: dormant\n")
    assert main(["probe", "vllm=http://127.0.0.1:8000", "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert document["known"] == ["dormant"]
    assert document["findings"][0]["holds"] is finding.holds


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["vllm", "--timeout", "0"], "error: --timeout: must be above 0, not 0"),
        (["vllm=http://127.0.0.1:8000", "--model", "m"], "error: --model: has no effect on a server that"),
        (["vllm", "--timeout", "nan"], "error: --timeout: must be above 0, not nan"),
        (["vllm,sglang"], "error: bench probe vllm,sglang: one backend at a time"),
        (["vllm@"], "error: backend vllm@: a variant is missing after '@'"),
        (["vllm==x"], "error: backend vllm==x: 'x' is not a version"),
        ([","], "error: no backend given"),
        (["http://127.0.0.1:8000"], "error: a running server is written NAME=URL"),
    ],
)
def test_what_cannot_be_probed_is_refused(engine, capsys, words, says):
    """None names --backends, which the command lacks."""
    assert main(["probe", *words]) == ExitCode.USAGE
    printed = capsys.readouterr().err
    assert says in printed
    assert "--backends" not in printed
    assert engine.asked is None
