"""`bench init`: files that are valid as they are written."""

import errno
import json
import re
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import pytest

from harness.cli.main import main
from harness.errors import ExitCode
from harness.spec.backend_refs import load_backend
from harness.spec.scenario import load_scenario

KEY = re.compile(r"^# (\[[a-z_.]+\]|(?!rate)[a-z_0-9.]+ = .*)$")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "path"), [("scenario", "workloads/mine.toml"), ("backend", "backends/mine.toml")]
)
def test_what_is_written_is_valid_found_by_name_and_never_overwritten(here, capsys, kind, path):
    assert main(["init", kind, "mine"]) == ExitCode.OK
    text = (here / path).read_text()
    assert main(["validate", path]) == ExitCode.OK
    load = load_scenario if kind == "scenario" else load_backend
    assert load("mine").name == "mine"
    (here / path).write_text(text + "# edited\n")
    assert main(["init", kind, "mine"]) == ExitCode.USAGE
    assert (here / path).read_text().endswith("# edited\n")
    assert path in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["scenario", "backend"])
def test_what_is_commented_out_is_valid_too(here, kind):
    """Every line that a person is invited to uncomment: keys that are alternatives of others excepted."""
    main(["init", kind, "mine"])
    (path,) = here.glob("*/mine.toml")
    lines = path.read_text().splitlines()
    opened = [KEY.sub(r"\1", line) for line in lines]
    assert opened != lines
    assert main(["validate", str(path)]) == ExitCode.OK


def test_what_the_disk_has_no_room_for_is_not_found_by_its_name(here, capsys, monkeypatch):
    @contextmanager
    def full(path, *_mode, **_named):
        path.touch()
        yield Mock(write=Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))

    with monkeypatch.context() as changed:
        changed.setattr(Path, "open", full)
        assert main(["init", "scenario", "mine"]) == ExitCode.SETUP
    assert "cannot be written: No space left on device" in capsys.readouterr().err
    assert main(["init", "scenario", "mine"]) == ExitCode.OK


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".", "shared-prefix"])
def test_names_that_lead_elsewhere_or_are_taken(here, name):
    assert main(["init", "scenario", name]) == ExitCode.USAGE
    assert not list(here.rglob("*.toml"))


@pytest.mark.parametrize("kind", ["scenario", "backend"])
def test_the_document_names_the_file_and_no_mark_is_left_in_it(here, capsys, kind):
    assert main(["init", kind, "mine", "--json"]) == ExitCode.OK
    text = (here / json.loads(capsys.readouterr().out)["file"]).read_text()
    assert "mine" in text
    assert "https://" in text
    assert re.findall(r"\{\w+\}", text) == []
