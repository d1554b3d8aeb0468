"""`bench kit`: a kit and its parts as they are printed, joined again, and refused where they are damaged."""

import errno
import json

import pytest

from harness.cli.main import main
from harness.errors import ExitCode
from harness.kit import box
from harness.kit import make as making

MAKE = ["kit", "make", "--for", "linux-x86_64-py312"]


@pytest.fixture
def asked(monkeypatch):
    """What was asked for; the kit has three files."""
    found = []

    def made(asked, _say):
        found.append(asked)
        for name, size in (("wheels/a.whl", 2_500_000), ("kit.json", 300_000), ("run.py", 200_000)):
            path = asked.out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes(size))
        return asked.out

    monkeypatch.setattr(making, "make", made)
    return found


def make(out, *words):
    return main([*MAKE, "--out", str(out), *words])


@pytest.mark.parametrize("megabytes", ["0", "-1", "nan"])
def test_parts_of_no_size_are_refused_before_anything_is_made(asked, tmp_path, capsys, megabytes):
    assert make(tmp_path / "kit", f"--max-mb={megabytes}") == ExitCode.USAGE
    assert f"error: --max-mb {megabytes}: must be above 0" in capsys.readouterr().err
    assert asked == []


def test_a_kit_is_listed_in_megabytes(asked, tmp_path, capsys):
    kit = tmp_path / "kit"
    assert make(kit, "--engines", "llamacpp, transformers,", "--model", "a", "--model", "b") == ExitCode.OK
    (one,) = asked
    assert (one.target, one.glibc, one.engines, one.models, one.have) == (
        "linux-x86_64-py312", "2.28", ["llamacpp", "transformers"], ["a", "b"], None,
    )  # fmt: skip
    assert capsys.readouterr().out.splitlines() == [
        f"{kit}: for linux-x86_64-py312",
        "      2.5 MB  wheels/a.whl",
        "      0.5 MB  2 smaller files",
        "      3.0 MB  together",
        "there: python3 kit/run.py --help",
    ]


def test_a_kit_is_listed_though_the_disk_has_no_room_for_its_parts(asked, tmp_path, monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("harness.kit.parts.split", full)
    assert make(tmp_path / "kit", "--max-mb", "1") == ExitCode.SETUP
    assert "3.0 MB  together\n" in capsys.readouterr().out


def test_parts_are_no_larger_than_was_asked_and_are_joined_again(asked, tmp_path, capsys):
    kit = tmp_path / "kit"
    assert make(kit, "--max-mb", "1.25") == ExitCode.OK
    parts = sorted(tmp_path.glob("kit.tar.*"))
    cut = [part for part in parts if part.suffix != ".sha256"]
    assert max(part.stat().st_size for part in cut) == 1_250_000
    said = capsys.readouterr().out
    assert f"{len(cut)} parts of at most 1.25 MB: {kit}.tar.000 …" in said
    assert "lies next to them as kit.tar.sha256 does" in said
    assert (tmp_path / "join.py").is_file()
    assert main(["kit", "join", *map(str, parts), "--out", str(tmp_path / "back")]) == ExitCode.OK
    assert capsys.readouterr().out == f"{tmp_path}/back/kit\n"
    assert (tmp_path / "back" / "kit" / "wheels" / "a.whl").stat().st_size == 2_500_000


def test_a_damaged_part_is_one_error(asked, tmp_path, capsys):
    make(tmp_path / "kit", "--max-mb", "1.25")
    (tmp_path / "kit.tar.001").write_bytes(b"damaged")
    parts = map(str, sorted(tmp_path.glob("kit.tar.*")))
    assert main(["kit", "join", *parts, "--out", str(tmp_path / "back")]) == ExitCode.SETUP
    assert "error: bench kit join: kit.tar.001 is damaged" in capsys.readouterr().err
    assert not (tmp_path / "back").exists()
    assert main(["kit", "join", str(tmp_path / "none.tar.sha256")]) == ExitCode.SETUP
    said = capsys.readouterr().err
    assert said == f"error: bench kit join {tmp_path}/none.tar.sha256: No such file or directory\n"


def test_what_stands_behind_a_kit_is_its_own_command(monkeypatch):
    given = []
    monkeypatch.setattr(box, "main", lambda words: given.append(words) or 3)
    assert main(["kit", "run", "build/kit", "--out", "OUT", "--", "list", "--json"]) == 3
    assert given == [["build/kit", "--out", "OUT", "--", "list", "--json"]]


def test_the_documents_name_the_parts_and_what_is_unpacked(asked, tmp_path, capsys):
    kit = tmp_path / "kit"
    assert make(kit, "--max-mb", "1.25", "--json") == ExitCode.OK
    made = json.loads(capsys.readouterr().out)
    assert made["kit"] == str(kit)
    assert sorted(made["parts"]) == [str(part) for part in sorted(tmp_path.glob("kit.tar.[0-9]*"))]
    parts = [*made["parts"], str(tmp_path / "kit.tar.sha256")]
    assert main(["kit", "join", *parts, "--out", str(tmp_path / "there"), "--json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out) == {"unpacked": [str(tmp_path / "there" / "kit")]}
