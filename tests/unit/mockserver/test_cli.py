import argparse
import subprocess
import sys
from dataclasses import fields

import pytest

from harness.cli.main import main as bench
from harness.errors import ExitCode
from harness.mockserver.cli import add_arguments, options_of
from harness.mockserver.faults import Fault
from harness.mockserver.habits import Habits
from harness.mockserver.options import Options
from harness.mockserver.process import _flags
from harness.mockserver.script import Distribution


def parsed(*flags: str) -> Options:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return options_of(parser.parse_args(flags))


def test_without_flags_the_defaults_of_the_dataclasses_hold() -> None:
    assert parsed() == Options(Habits(), Distribution.parse("100"), Distribution.parse("50"))


def test_every_option_has_a_flag_and_every_flag_an_option() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    add_arguments(parser)
    destinations = {action.dest for action in parser._actions}
    names = {field.name for cls in (Options, Habits) for field in fields(cls)} - {"habits"}
    assert destinations == names


def test_only_a_known_answer_can_be_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(["truth", "--wrong", "0.5"]) == ExitCode.USAGE
    assert capsys.readouterr().err.startswith("error: --wrong: needs --answers\n")


def test_a_file_that_a_flag_names_and_is_none_is_a_wrong_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(["truth", "--tls-pem", "/no/such"]) == ExitCode.USAGE
    assert "error: --tls-pem /no/such: no certificate and key: No such file" in capsys.readouterr().err


def test_flags_reach_their_option() -> None:
    options = parsed(
        "--ttft-ms=uniform:1:2",
        "--gap-ms=5",
        "--fault=reset:at=1",
        "--fault=429",
        "--role=early",
        "--crlf",
        "--max-running=2",
        "--precise",
    )
    assert options.ttft_ms == Distribution("uniform", (1.0, 2.0))
    assert options.faults == (Fault("reset", at=1), Fault("429"))
    assert (options.max_running, options.precise, options.no_prefix_cache) == (2, True, False)
    assert (options.habits.role, options.habits.crlf, options.habits.gzip) == ("early", True, False)


def test_habits_of_the_flags_go_before_those_of_the_dialect() -> None:
    options = parsed("--dialect=transformers", "--usage=never", "--loading-s=2")
    assert (options.habits.role, options.habits.usage) == ("early", "never")
    assert (options.dialect.name, options.cache_block_tokens, options.loading_s) == ("transformers", 1, 2.0)
    assert parsed("--dialect=lmdeploy", "--cache-block-tokens=8").cache_block_tokens == 8


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--ttft-ms=soon"], "'soon' is not a number"),
        (["--gap-ms=uniform:1:x"], "'x' is not a number"),
        (["--tokens=1e3"], "'1e3' is not a whole number"),
        (["--keepalive-ms=x"], "'x' is not a number"),
        (["--fault=503:p=x"], "'x' is not a number"),
        (["--fault=503:every=2.5"], "'2.5' is not a whole number"),
        (["--wrong=x"], "'x' is not a number"),
        (["--gap-ms=uniform:2:1"], "LOW is above HIGH"),
        (["--fault=explode"], "'explode' is not a fault"),
        (["--tokens=0"], "0 is below 1"),
        (["--keepalive-ms=-1"], "at least 0"),
        (["--port=70000"], "70000 is above 65535"),
        (["--role=late"], "invalid choice"),
    ],
)
def test_a_wrong_flag_is_a_usage_error_that_says_why(
    flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        parsed(*flags)
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


def test_keyword_arguments_become_flags() -> None:
    options = {"gap_ms": 5, "fault": ["reset:at=1", "429"], "precise": True, "crlf": False, "port": None}
    assert list(_flags(options)) == ["--gap-ms=5", "--fault=reset:at=1", "--fault=429", "--precise"]


def test_importing_the_cli_loads_nothing_heavy() -> None:
    heavy = {"numpy", "asyncio", "urllib.request", "subprocess"}
    script = f"import sys, harness.mockserver.cli; print({heavy} & sys.modules.keys())"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert result.stdout.strip() == "set()"
