"""`bench compare`: the exit code of each gate by the rows that it is given. Verdicts are tested elsewhere."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.cli.commands import runs_page
from harness.cli.commands.compare import ACCURACY_DROP
from harness.cli.main import main
from harness.errors import ExitCode
from harness.model import GateRow, RunComparison
from harness.report.blocks import comparison
from harness.report.blocks.block import Line
from harness.run.keep.loaded import comparable
from harness.verdicts import baseline, gate
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
        parts = {name: tuple(getattr(found, name)) for name in ("pairs", "gate", "missing", "accuracy")}
        return RunComparison(runs=(), baseline=None, **parts)

    def opened(names, _out, unverified):
        return comparable(
            [
                SimpleNamespace(
                    name=Path(name).stem,
                    manifest=None,
                    summary=SimpleNamespace(cells=()),
                    samples={},
                    folder=SimpleNamespace(cells=list, path=Path(name)),
                )
                for name in names
            ]
        )

    monkeypatch.setattr(runs_page, "opened", opened)
    monkeypatch.setattr(baseline, "compare_runs", compare_runs)
    monkeypatch.setattr(gate, "refused", lambda _document: found.refused)
    monkeypatch.setattr(comparison, "compared", lambda _document: [Line("compared", "verdict")])
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
        ([], ["--fail-on", "slower", "--undecided", "skip"], 0),
        ([UNDECIDED], ["--fail-on", "slower", "--undecided", "skip"], 125),
        ([row("missing")], ["--fail-on", "slower", "--undecided", "skip"], 125),
        ([UNDECIDED, SLOWER], ["--fail-on", "slower", "--undecided", "skip"], 1),
        ([UNDECIDED, row("failures")], ["--fail-on", "slower", "--undecided", "skip"], 1),
    ],
)
def test_a_gate_fails_on_its_rows_but_for_those_that_are_accepted(compared, gate, words, code):
    compared.gate = gate
    assert main(["compare", "a", "b", *words]) == code


def test_a_gate_that_skips_says_that_nothing_was_decided(compared, capsys):
    compared.gate = [UNDECIDED]
    main(["compare", "a", "b", "--fail-on", "slower", "--undecided", "skip"])
    assert "gate: not decided\n  undecided: " in capsys.readouterr().out


def test_a_gate_that_nobody_asked_for_accepts_nothing(compared, capsys):
    assert main(["compare", "a", "b", "--undecided", "pass"]) == ExitCode.USAGE
    assert capsys.readouterr().err.startswith("error: --undecided: only applies to --fail-on\n")
    assert compared.asked is None


def test_a_page_has_the_gate_before_all_results(compared, monkeypatch):
    shown = []
    monkeypatch.setattr(runs_page, "write", lambda _path, _runs, _document, first: shown.append(first))
    compared.gate = [SLOWER]
    main(["compare", "a", "b", "--fail-on", "slower", "--html", "page.html"])
    main(["compare", "a", "b", "--html", "page.html"])
    (failed,), nothing = shown
    assert (failed.title, nothing) == ("gate: failed", [])


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
    assert compared.asked == ("b", {"force": True, "floor": 0.025, "allow_missing": ("c8",)})
    main(["compare", "runs/a", "runs/b", "--baseline", "vllm/x"])
    assert compared.asked == ("vllm/x", {"force": False, "floor": None, "allow_missing": ()})


@pytest.mark.parametrize(
    ("runs", "given", "name"),
    [
        (("a/out", "b/out"), "b/out", "out (2)"),
        (("monday.json", "tuesday.json"), "tuesday.json", "tuesday"),
        (("monday.json", "tuesday.json"), "tuesday", "tuesday"),
    ],
)
def test_the_baseline_is_the_run_that_was_given_so(compared, runs, given, name):
    main(["compare", *runs, "--baseline", given])
    assert compared.asked[0] == name


def test_the_gate_stands_below_the_comparison(compared, capsys):
    compared.gate = [SLOWER, UNDECIDED]
    main(["compare", "a", "b", "--fail-on", "slower"])
    assert capsys.readouterr().out.splitlines() == [
        "compared",
        "",
        "gate: failed",
        "  slower: vllm TTFT p50: as it is",
        "  undecided: vllm TTFT p50: as it is",
    ]
    main(["compare", "a", "b", "--fail-on", "slower", "--markdown"])
    page = capsys.readouterr().out
    rows = "- slower: vllm TTFT p50: as it is\n- undecided: vllm TTFT p50: as it is\n"
    assert page == f"**compared**\n\n#### gate: failed\n\n{rows}"


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


def test_a_gate_on_answers_that_failed_says_on_what(compared, monkeypatch, capsys):
    compared.accuracy = [1]
    compared.missing = [SimpleNamespace(allowed=False)]
    compared.gate = [SLOWER, row("missing"), row("not compared")]
    monkeypatch.setattr("harness.verdicts.accuracy.drops", lambda _accuracy: ())
    assert main(["compare", "a", "b", "--fail-on", "accuracy.drop"]) == ExitCode.LIMIT_FAILED
    assert capsys.readouterr().out.splitlines()[2:] == [
        "gate: failed",
        "  missing: vllm TTFT p50: as it is",
        "  not compared: vllm TTFT p50: as it is",
    ]
    compared.gate = []
    main(["compare", "a", "b", "--fail-on", "accuracy.drop"])
    assert capsys.readouterr().out.splitlines()[1:] == ["", "gate: failed"]


def test_the_gate_of_the_document_is_what_the_code_is_of(compared, monkeypatch, capsys):
    compared.pairs, compared.gate = [], [SLOWER, row("accuracy", ACCURACY_DROP)]
    words = ["compare", "a", "b", "--json"]

    def kinds(*gates):
        main([*words, *(word for gate in gates for word in ("--fail-on", gate))])
        return [found["kind"] for found in json.loads(capsys.readouterr().out)["gate"]]

    compared.accuracy = [1]
    monkeypatch.setattr(
        "harness.verdicts.accuracy.drops", lambda _accuracy: (row("undecided", ACCURACY_DROP),)
    )
    assert kinds() == kinds("slower") == ["slower", "accuracy"]
    assert kinds(ACCURACY_DROP) == ["undecided"]
    assert kinds(ACCURACY_DROP, "slower") == ["slower", "undecided"]


def test_a_gate_on_answers_that_none_gave_is_one_document(compared, capsys):
    assert main(["compare", "a", "b", "--json", "--fail-on", ACCURACY_DROP]) == ExitCode.USAGE
    assert "no questions were asked" in json.loads(capsys.readouterr().out)["error"]


def test_a_page_of_one_run_is_refused_before_it_is_read(monkeypatch, capsys):
    monkeypatch.setattr(runs_page, "opened", None)
    assert main(["compare", "a", "--html", "page.html"]) == ExitCode.USAGE
    assert "error: --html: one run has its own page" in capsys.readouterr().err
