"""--fail-on limits and --junit: what is refused before anything is measured, and what is written."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.cli.commands.gates import judged_limits
from harness.cli.main import main
from harness.errors import ExitCode
from tests.factories.summaries import summary
from tests.unit.cli.commands.test_compare import SLOWER, compared  # noqa: F401 – a fixture
from tests.unit.verdicts.test_limits import SLO, limited

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


@pytest.mark.parametrize(
    ("cells", "code"),
    [
        ([limited(80, 1)], ExitCode.OK),
        ([limited(140, 0.5)], ExitCode.LIMIT_FAILED),
        ([], ExitCode.LIMIT_FAILED),
    ],
)
def test_limits_decide_the_exit_code_and_the_file(cells, code, tmp_path):
    """A run that measured nothing keeps no limit."""
    file = tmp_path / "new" / "x.xml"
    assert judged_limits(summary(*cells), SLO, file).code == code
    (suite,) = ElementTree.parse(file).getroot()
    assert [case.get("name") for case in suite] == ["vllm c4 TTFT p90 ≤ 100 ms"] * len(cells)
    assert int(suite.get("failures")) == (1 if cells and code else 0)


def test_a_comparison_writes_its_gate(compared, tmp_path):  # noqa: F811
    file, compared.pairs, compared.gate = tmp_path / "x.xml", [], [SLOWER]
    assert main(["compare", "a", "b", "--fail-on", "slower", "--junit", str(file)]) == ExitCode.LIMIT_FAILED
    (suite,) = ElementTree.parse(file).getroot()
    assert (suite.get("name"), suite.get("failures")) == ("bench compare", "1")
    assert main(["compare", "a", "b", "--junit", str(file)]) == ExitCode.USAGE
