"""What `bench run --dry-run` says of a plan, before anything is started."""

from harness.cli.main import main
from harness.errors import ExitCode

SEARCH = ["--find-capacity", "--rate", "1,64", "--set", "slo.ttft_ms.p95=500"]


def test_a_search_says_how_many_probes_it_may_take(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run = ["run", "--scenario", "fixed-length", "--launch", "simulate", "--backends", "vllm"]
    assert main([*run, *SEARCH, "--dry-run"]) == ExitCode.OK
    shown = " ".join(capsys.readouterr().out.split())
    assert "searches among" in shown
    assert "usually 9 to 15 probes in the first" in shown
    assert main([*run, "--concurrency", "4", "--repeats", "2", "--dry-run"]) == ExitCode.OK
    assert "2 cells, " in capsys.readouterr().out
