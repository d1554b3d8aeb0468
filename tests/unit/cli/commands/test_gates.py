"""--fail-on limits and --junit: what is refused before anything is measured, and what is written."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.cli.commands.gates import judged_limits
from harness.cli.display.result import Screen
from harness.cli.main import main
from harness.errors import ExitCode
from harness.store.find import SEALED
from tests.factories.summaries import summary
from tests.unit.cli.commands.test_compare import SLOWER, compared  # noqa: F401 – a fixture
from tests.unit.verdicts.test_limits import C4, INVALID, SLO, limited

RUN = ("run", "--scenario", "fixed-length", "--backends", "vllm", "--launch", "simulate", "--dry-run")
LIMIT = ("--set", "slo.ttft_ms.p95=500")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--fail-on", "limits"), "--fail-on limits: the scenario has no limits"),
        ((*LIMIT, "--junit", "x.xml"), "--junit: only applies to --fail-on"),
        (
            (*LIMIT, "--fail-on", "limits", "--find-capacity", "--concurrency", "1,8"),
            "--fail-on limits: a search tries loads that miss the limits",
        ),
    ],
)
def test_a_gate_that_could_judge_nothing_is_a_wrong_command(words, error, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*RUN, *words]) == ExitCode.USAGE
    assert error in capsys.readouterr().err


def test_a_file_below_a_file_is_found_before_the_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("taken").touch()
    assert main([*RUN, *LIMIT, "--fail-on", "limits", "--junit", "taken/x.xml"]) == ExitCode.SETUP
    assert "--junit taken/x.xml" in capsys.readouterr().err
    assert main([*RUN, *LIMIT, "--fail-on", "limits", "--junit", "new/x.xml"]) == ExitCode.OK
    assert not Path("new").exists()  # a dry run writes nothing


def test_a_file_that_cannot_be_written_is_found_before_the_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("kept.xml").touch()
    Path("run").mkdir()
    for name in SEALED:
        (Path("run") / name).touch()
    monkeypatch.setattr("os.access", lambda path, _mode: Path(path).name != "kept.xml")
    for file, why, code in (
        ("run", "is a folder, not a file", ExitCode.SETUP),
        ("kept.xml", "cannot be written", ExitCode.SETUP),
        ("run/summary.json", "would be a file of the run", ExitCode.USAGE),
    ):
        assert main([*RUN, *LIMIT, "--fail-on", "limits", "--junit", file]) == code
        assert f"--junit {file}: {why}" in capsys.readouterr().err


def test_a_run_that_measures_nothing_leaves_no_file_of_an_earlier_gate(tmp_path, monkeypatch):
    """A CI server would show it as the outcome of this one."""
    monkeypatch.chdir(tmp_path)
    Path("x.xml").write_text("<testsuites />")
    gone = ("run", "--scenario", "fixed-length", "--backends", "vllm=http://127.0.0.1:9", "--no-report")
    gate = (*LIMIT, "--fail-on", "limits", "--junit", "x.xml")
    assert main([*gone, *gate, "--dry-run"]) == ExitCode.OK
    assert Path("x.xml").exists()
    assert main([*gone, *gate]) == ExitCode.SETUP
    assert not Path("x.xml").exists()


KEPT, MISSED, INVALID_ONE = limited(80, 1), limited(140, 0.5), limited(80, 1, validity=INVALID)


@pytest.mark.parametrize(
    ("cells", "of_run", "code", "printed"),
    [
        ([KEPT], ExitCode.OK, ExitCode.OK, "gate: passed"),
        ([MISSED], ExitCode.OK, ExitCode.LIMIT_FAILED, "gate: failed"),
        ([], ExitCode.OK, ExitCode.LIMIT_FAILED, "gate: not decided"),
        # The code of the run says more than that something is missing, and less than a limit that was missed.
        ([], ExitCode.SETUP, ExitCode.SETUP, "gate: not decided"),
        ([INVALID_ONE], ExitCode.INVALID, ExitCode.INVALID, "gate: not decided"),
        (
            [KEPT],
            ExitCode.SETUP,
            ExitCode.SETUP,
            "gate: not decided\n  what was measured keeps every limit, and the run ended with exit code 3",
        ),
        ([MISSED], ExitCode.SETUP, ExitCode.LIMIT_FAILED, "gate: failed"),
    ],
)
def test_limits_decide_the_exit_code_and_the_file(cells, of_run, code, printed, tmp_path):
    """A run that measured nothing keeps no limit."""
    file = tmp_path / "new" / "x.xml"
    result = judged_limits(summary(*cells), of_run, SLO, [("vllm", C4)], file)
    assert result.code == code
    assert result.text(Screen(80, 80, color=False)).lstrip().startswith(printed)
    (suite,) = ElementTree.parse(file).getroot()
    assert [case.get("name") for case in suite] == ["vllm c4 TTFT p90 ≤ 100 ms"]
    assert int(suite.get("failures")) == (0 if cells == [KEPT] else 1)


def test_a_comparison_writes_its_gate(compared, tmp_path):  # noqa: F811
    file, compared.pairs, compared.gate = tmp_path / "x.xml", [], [SLOWER]
    assert main(["compare", "a", "b", "--fail-on", "slower", "--junit", str(file)]) == ExitCode.LIMIT_FAILED
    (suite,) = ElementTree.parse(file).getroot()
    assert (suite.get("name"), suite.get("failures")) == ("bench compare", "1")
    assert main(["compare", "a", "b", "--junit", str(file)]) == ExitCode.USAGE
