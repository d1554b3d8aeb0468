"""`bench completion`: what each shell is told, and what bash makes of it."""

import shutil
import subprocess

import pytest

from harness.cli.flags.parsers import COMMANDS
from harness.cli.main import main
from harness.errors import ExitCode


def script(capsys, shell):
    assert main(["completion", shell]) == ExitCode.OK
    return capsys.readouterr().out


def completed(text, *words):
    """What bash offers for the last of the words."""
    line = " ".join(f"'{word}'" for word in ("bench", *words))
    asked = (
        f"{text}\nCOMP_WORDS=({line})\nCOMP_CWORD={len(words)}\n_bench\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands_flags_and_closed_values(capsys):
    text = script(capsys, "bash")
    assert set(completed(text, "")) == {name for name in COMMANDS if name != "URL"}
    assert completed(text, "re") == ["resume", "report"]
    assert completed(text, "run", "--scen") == ["--scenario"]
    assert completed(text, "run", "--profile", "") == ["auto", "gpu", "cpu"]
    assert completed(text, "list", "sc") == ["scenarios"]
    assert "--minutes" in completed(text, "http://127.0.0.1:8000", "--")
    assert completed(text, "run", "--scenario", "first") == ["first-look"]
    assert completed(text, "run", "--scenario", "./") == []  # file names, by bash itself
    assert completed(text, "run", "--backends", "vllm,sgl") == ["vllm,sglang", "vllm,sglang-router"]
    assert completed(text, "run", "--model", "qwen3") == ["qwen3-8b"]
    assert completed(text, "tune", "sgl") == ["sglang", "sglang-router"]
    assert completed(text, "nightly", "tr") == ["truth"]
    assert completed(text, "engines", "in") == ["install"]
    assert completed(text, "engines", "install", "vllm", "sgl") == ["sglang", "sglang-router"]
    assert completed(text, "engines", "install", "--dev") == ["--device"]
    assert completed(text, "engines", "install", "--device", "cu") == ["cuda"]
    assert completed(text, "kit", "make", "--engines", "llama") == [
        "llama-cpp-python",
        "llamacpp",
        "llamafile",
    ]
    assert "--api-key" not in completed(text, "run", "--api-key")  # a flag that only refuses


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_sound_and_names_every_command(capsys, shell):
    text = script(capsys, shell)
    assert all(name in text for name in COMMANDS if name != "URL")
    assert "%(" not in text
    if program := shutil.which(shell):
        checked = subprocess.run([program, "-n"], input=text, capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")
