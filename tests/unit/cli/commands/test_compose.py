"""`bench compose`: one file on standard output, all of them in a folder, and nothing of what has no image."""

import pytest

from harness.cli.main import main
from harness.engines.start.containers.files import CPU, GPU, MAIN
from harness.errors import ExitCode


def test_the_main_file_of_the_named_engines_is_printed(capsys):
    assert main(["compose", "tgi", "vllm"]) == ExitCode.OK
    text = capsys.readouterr().out
    assert 'profiles: ["vllm"]' in text
    assert 'profiles: ["tgi"]' in text
    assert 'profiles: ["sglang"]' not in text


def test_every_file_is_written_and_named(tmp_path, capsys):
    folder = tmp_path / "a" / "b"
    assert main(["compose", "vllm", "--write", str(folder)]) == ExitCode.OK
    written = {str(path) for path in folder.rglob("*") if path.is_file()}
    assert set(capsys.readouterr().out.splitlines()) == written
    assert {str(folder / name) for name in (MAIN, GPU, CPU)} <= written
    main(["compose", "vllm"])
    assert (folder / MAIN).read_text() == capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["vllm", "openai"], ExitCode.USAGE, "bench compose: backend 'openai' has no [compose] and no image"),
        (["vlm"], ExitCode.USAGE, "did you mean 'vllm'"),
        (["vllm", "--write", "file/below"], ExitCode.SETUP, "--write file/below: cannot be written: Not a d"),
    ],
)
def test_what_cannot_be_written_is_one_error(tmp_path, monkeypatch, capsys, words, code, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("kept")
    assert main(["compose", *words]) == code
    assert says in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "kept"


def test_the_commands_in_the_head_name_an_engine_of_the_file(capsys):
    main(["compose", "tgi"])
    head = capsys.readouterr().out.partition("\nservices:")[0]
    assert head.count("--profile tgi up") == 3
    assert "--profile vllm" not in head
