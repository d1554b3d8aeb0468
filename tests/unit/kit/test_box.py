import hashlib
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.flags.parsers import command_parser
from harness.host import kit_env
from harness.host.kit_env import KitError
from harness.kit import box, steps
from harness.kit import compile as compiling
from harness.kit.parts import join
from harness.kit.steps import STEPS

HERE = f"linux-{platform.machine()}-py{sys.version_info[0]}{sys.version_info[1]}"


@pytest.fixture
def kit(tmp_path):
    folder = tmp_path / "kit"
    (folder / "wheels").mkdir(parents=True)
    (folder / "kit.json").write_text(json.dumps({"target": HERE, "box": False}))
    (folder / "wheels" / "a.whl").write_bytes(b"a")
    digest = hashlib.sha256(b"a").hexdigest()
    (folder / "SHA256SUMS").write_text(f"{digest}  wheels/a.whl\n")
    return folder


def test_a_whole_kit_for_this_machine_is_taken(kit):
    box.check(kit)


def test_a_kit_for_another_machine_is_refused_with_the_flag_that_makes_one_for_it(kit):
    (kit / "kit.json").write_text(json.dumps({"target": "linux-x86_64-py399", "box": False}))
    with pytest.raises(KitError, match=rf"for linux-x86_64-py399, .*--for {HERE}"):
        box.check(kit)


@pytest.mark.parametrize(("here", "taken"), [("2.36", True), ("2.35", True), ("2.34", False), ("2.9", False)])
def test_a_kit_for_a_newer_c_library_is_refused(kit, monkeypatch, here, taken):
    (kit / "kit.json").write_text(json.dumps({"target": HERE, "box": False, "glibc": "2.35"}))
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", here))
    if taken:
        box.check(kit)
        return
    with pytest.raises(KitError, match=rf"glibc 2\.35 or newer, and this is {here}: .*--glibc"):
        box.check(kit)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda kit: (kit / "wheels" / "a.whl").write_bytes(b"b"), "damaged: wheels/a.whl"),
        (lambda kit: (kit / "wheels" / "a.whl").unlink(), "wheels/a.whl is missing"),
        (lambda kit: (kit / "SHA256SUMS").unlink(), "not whole"),
        (lambda kit: (kit / "SHA256SUMS").write_bytes(b"\xff"), "not whole: SHA256SUMS is damaged"),
        (lambda kit: (kit / "kit.json").write_text("["), "not a kit"),
    ],
)
def test_a_damaged_kit_is_one_error(kit, tmp_path, capsys, change, said):
    change(kit)
    assert box.main([str(kit), "--out", str(tmp_path / "out"), "--", "list"]) == 3
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        ([], "the following arguments are required: --out, step"),
        (["--out", "x", "looc"], "argument step: invalid choice: 'looc'"),
        (["--out", "x", "--max-mb", "nan", "look"], "argument --max-mb: 'nan' is not a number above 0"),
        (["--out", "x", "--minutes", "-1", "look"], "argument --minutes: '-1' is not a number above 0"),
        (["--out", "x", "--model", "m", "--", "list"], "unrecognized arguments: --model m"),
        (["--out", "x", "--minutes", "5", "--", "build"], "unrecognized arguments: --minutes 5"),
    ],
)
def test_wrong_arguments_are_one_error_and_a_hint(kit, words, wrong, capsys):
    with pytest.raises(SystemExit, match=r"^2$"):
        box.main([str(kit), *words])
    first, hint = capsys.readouterr().err.splitlines()
    assert first.startswith(f"error: {wrong}")
    assert hint == "hint: --help shows what run.py takes"


@pytest.mark.parametrize("words", [[], ["looc"], ["--out", "x", "look"]])
def test_what_is_no_kit_is_named_before_a_wrong_argument(tmp_path, words, capsys):
    assert box.main([str(tmp_path / "kti"), *words]) == 3
    assert capsys.readouterr().err.startswith(f"error: {tmp_path / 'kti'} is not a kit: ")


def test_help_needs_no_kit(tmp_path, capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        box.main([str(tmp_path / "kti"), "--help"])
    assert "what to run:" in capsys.readouterr().out


def test_a_folder_that_cannot_be_made_is_one_error(kit, tmp_path, capsys):
    (tmp_path / "file").touch()
    assert box.main([str(kit), "--out", str(tmp_path / "file" / "out"), "--", "list"]) == 3
    assert re.fullmatch(r"error: .*Not a directory.*\n", capsys.readouterr().err)


def test_a_program_that_does_not_answer_is_one_error(kit, tmp_path, monkeypatch, capsys):
    def silent(command, **_options):
        raise subprocess.TimeoutExpired(command, 60)

    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr(compiling, "start", lambda *_: compiling._run(["nvidia-smi"]))
    monkeypatch.setattr(subprocess, "run", silent)
    assert box.main([str(kit), "--out", str(tmp_path / "out"), "build"]) == 3
    assert capsys.readouterr().err == "error: Command '['nvidia-smi']' timed out after 60 seconds\n"


class Interrupted:
    """A bench that the terminal sends Ctrl-C, and that stores what it has before it ends."""

    def __init__(self, _command, cwd):
        self.folder, self.asked = cwd, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def wait(self, _limit_s=None):
        self.asked += 1
        if self.asked == 1:
            raise KeyboardInterrupt
        (self.folder / "stored").write_text("summary")
        return 130


def step_that_is_interrupted(step):
    steps._awaited(Interrupted([], step.results), 60)


@pytest.mark.parametrize("words", [["small"], ["--", "run"]])
def test_what_was_measured_until_ctrl_c_is_packed(kit, tmp_path, monkeypatch, words):
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr(kit_env, "make", lambda *_: Path("/python"))
    monkeypatch.setattr(box.subprocess, "Popen", Interrupted)
    monkeypatch.setitem(STEPS, "small", step_that_is_interrupted)
    out = tmp_path / "out"
    assert box.main([str(kit), "--out", str(out), *words]) == 130
    (folder,) = join(list(out.iterdir()), tmp_path / "back")
    assert (folder / "stored").read_text() == "summary"


def test_the_number_of_another_process_is_no_build(tmp_path):
    """A build was killed, and the machine has given its number again: after a restart they are small."""
    folder = tmp_path / "llama.cpp"
    folder.mkdir()
    (folder / "pid").write_text(str(os.getpid()))
    assert compiling.state(tmp_path) == "failed"


def test_packages_come_from_the_kit_alone(kit):
    seen = kit_env.using(kit, {"PIP_INDEX_URL": "x", "UV_INDEX": "y", "HOME": "/h"})
    assert not {"PIP_INDEX_URL", "UV_INDEX"} & seen.keys()
    assert (seen["PIP_NO_INDEX"], seen["PIP_FIND_LINKS"]) == ("1", str(kit / "wheels"))
    assert seen["BENCH_KIT"] == str(kit)


PAGE = Path(__file__).parents[3] / "docs" / "gpu-box.md"
LINES = re.findall(r"^python3 build/kit/run\.py (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_the_page_is_taken(line):
    given, command = box._parsed(["build/kit", *shlex.split(line)])
    assert str(given.out) == "OUT"
    if command:
        assert command_parser(command[0]).parse_args(command[1:])


def test_the_page_shows_every_step():
    assert {line.split()[-1] for line in LINES} >= set(STEPS)
