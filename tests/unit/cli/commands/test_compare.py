"""`bench compare`: the exit code of each gate by the rows that it is given. Verdicts are tested elsewhere."""

from types import SimpleNamespace

import pytest

from harness.cli.commands import runs_page
from harness.cli.main import main
from harness.errors import ExitCode
from harness.model import GateRow
from harness.report.text import baseline as texts
from harness.verdicts import baseline
from tests.factories.documents import made


def row(kind, metric="ttft_ms.p50"):
    return made(GateRow, {"kind": kind, "label": "vllm", "metric": metric, "why": "as it is"})


SLOWER, UNDECIDED = row("slower"), row("undecided")


@pytest.fixture
def compared(monkeypatch):
    """Two runs; a test fills the document that their comparison gives, and sees what it was asked for."""
    found = SimpleNamespace(pairs=[1], gate=[], missing=[], accuracy=[], asked=None, refused=False)

    def compare_runs(_runs, against, **flags):
        found.asked = (against, flags)
        return found

    monkeypatch.setattr(runs_page, "opened", lambda names, _out, unverified: [*names])
    monkeypatch.setattr(baseline, "compare_runs", compare_runs)
    monkeypatch.setattr(baseline, "refused", lambda document: document.refused)
    monkeypatch.setattr(texts, "terminal", lambda _document, columns, color: "compared")
    monkeypatch.setattr(texts, "markdown", lambda _document: "# Compared")
    return found


@pytest.mark.parametrize(
    ("gate", "words", "code"),
    [
        ([], [], 0),
        ([SLOWER], [], 0),  # no gate was asked for
        ([], ["--fail-on", "slower"], 0),
        ([SLOWER], ["--fail-on", "slower"], 1),
        ([UNDECIDED], ["--fail-on", "slower"], 1),
        ([UNDECIDED], ["--fail-on", "slower", "--undecided", "pass"], 0),
        ([UNDECIDED, SLOWER], ["--fail-on", "slower", "--undecided", "pass"], 1),
    ],
)
def test_a_gate_fails_on_its_rows_but_for_those_that_are_accepted(compared, gate, words, code):
    compared.gate = gate
    assert main(["compare", "a", "b", *words]) == code


@pytest.mark.parametrize("allowed", [True, False])
def test_what_is_missing_fails_without_a_gate(compared, allowed):
    compared.missing = [SimpleNamespace(allowed=allowed)]
    assert main(["compare", "a", "b"]) == (ExitCode.OK if allowed else ExitCode.LIMIT_FAILED)
    compared.missing, compared.refused = [], True
    words = ["--fail-on", "slower", "--undecided", "pass"]
    assert main(["compare", "a", "b", *words]) == ExitCode.LIMIT_FAILED


def test_flags_are_shares_and_a_path_of_a_run_is_its_name(compared):
    words = ["--floor", "2.5", "--force", "--allow-missing", "c8"]
    main(["compare", "runs/a", "runs/b", "--baseline", "runs/b", *words])
    assert compared.asked == ("b", {"force": True, "floor": 0.025, "allow_missing": ["c8"]})
    main(["compare", "runs/a", "runs/b", "--baseline", "vllm/x"])
    assert compared.asked == ("vllm/x", {"force": False, "floor": None, "allow_missing": []})


def test_the_gate_stands_below_the_comparison(compared, capsys):
    compared.gate = [SLOWER, UNDECIDED]
    main(["compare", "a", "b", "--fail-on", "slower"])
    assert capsys.readouterr().out.splitlines() == [
        "compared",
        "gate: failed",
        "  slower: vllm TTFT p50: as it is",
        "  undecided: vllm TTFT p50: as it is",
    ]
    main(["compare", "a", "b", "--fail-on", "slower", "--markdown"])
    page = capsys.readouterr().out
    assert page.startswith("# Compared\n\n**gate: failed**\n\n- slower: vllm TTFT p50: as it is\n- undecided")


def test_a_gate_on_answers_needs_questions_and_looks_at_nothing_else(compared, monkeypatch, capsys):
    compared.gate = [SLOWER]
    assert main(["compare", "a", "b", "--fail-on", "accuracy.drop"]) == ExitCode.USAGE
    assert capsys.readouterr().err.splitlines() == [
        "error: --fail-on accuracy.drop: no questions were asked in these runs",
        "hint: measure them with --accuracy",
    ]
    compared.accuracy = [1]
    monkeypatch.setattr("harness.verdicts.accuracy.drops", lambda _accuracy: ())
    assert main(["compare", "a", "b", "--fail-on", "accuracy.drop"]) == ExitCode.OK
    both = ["--fail-on", "accuracy.drop", "--fail-on", "slower"]
    assert main(["compare", "a", "b", *both]) == ExitCode.LIMIT_FAILED


def test_one_backend_alone_is_compared_with_nothing(compared, capsys):
    compared.pairs = []
    assert main(["compare", "a"]) == ExitCode.USAGE
    assert "error: a: only one backend: nothing to compare" in capsys.readouterr().err
