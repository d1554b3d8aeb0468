"""What a folder says of servers, keys and programs counts only as far as this machine knows it."""

import json
import socket
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.errors import ExitCode
from harness.model import from_json
from harness.run.keep import origin
from harness.run.setup.options import RunOptions
from tests.factories.runs import SMALL, make_run

RUN = "20261120T051744Z-shared-prefix-a1b2c3"


pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        yield server


def options(**changes):
    return RunOptions(**{"scenario": "shared-prefix", "backends": "vllm,sglang", "repeats": 3} | changes)


def test_a_run_that_was_begun_here_is_known_whatever_was_typed_and_wherever_it_lay():
    given = options(overrides={"load.requests": 8}, gpus=("0",), out=Path("a"), command=("x",))
    origin.keep(RUN, given, {})
    same = options(overrides={"load.requests": 8}, gpus=("0",), out=Path("b"), command=("y",))
    assert origin.differences(RUN, same) == []


@pytest.mark.parametrize(
    "change",
    [
        {"backends": "openai=http://203.0.113.9"},
        {"api_key_env": "AWS_SECRET_ACCESS_KEY"},
        {"metrics_urls": ("http://203.0.113.9",)},
        {"headers": ("X-Team=ENV:AWS_SECRET_ACCESS_KEY",)},
        {"query": ("a=ENV:AWS_SECRET_ACCESS_KEY",)},
        {"client_cert": ("/root/me.pem",)},
        {"engine_values": {"port": "1"}},
        {"overrides": {"prompts.file": "/etc/passwd"}},
        {"launch": "compose"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_each_option_that_differs_is_a_line_with_both_values(change):
    origin.keep(RUN, options(), {})
    (line,) = origin.differences(RUN, options(**change))
    (name,) = change
    assert line.startswith(f"{name} = ")
    assert ", was " in line


def test_of_an_unknown_run_every_option_that_is_not_the_default_is_a_line():
    assert origin.differences(RUN, options(api_key_env="KEY")) == [
        "scenario = shared-prefix",
        "backends = vllm,sglang",
        "repeats = 3",
        "api_key_env = KEY",
    ]


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"options": 3}', b"\xff", b"{}"])
def test_a_damaged_record_is_none(cache, damage):
    origin.keep(RUN, options(), {})
    (cache / "begun" / f"{RUN}.json").write_bytes(damage)
    assert origin.differences(RUN, options())


def test_old_records_go(cache):
    (cache / "begun").mkdir(parents=True)
    for number in range(1002):
        (cache / "begun" / f"2026{number:04d}.json").write_text("{}")
    origin.keep(RUN, options(), {})
    kept = [path.name for path in (cache / "begun").iterdir()]
    assert len(kept) == 1000
    assert f"{RUN}.json" in kept
    assert "20260000.json" not in kept


def hostile_run(tmp_path, listener):
    """C2 of the audit: a manifest that names a server, and the variable that is to be its key."""
    folder = make_run(tmp_path / "got", SMALL)
    manifest = json.loads((folder.path / "manifest.json").read_bytes())
    address = "http://{}:{}".format(*listener.getsockname())
    given = {
        "scenario": "fixed-length",
        "backends": f"openai={address}",
        "api_key_env": "AWS_SECRET_ACCESS_KEY",
        "out": "results",
    }
    changed = {**manifest, "state": "interrupted", "options": given}
    (folder.path / "manifest.json").write_text(json.dumps(changed))
    return folder, address


def heard(listener):
    try:
        listener.accept()
    except TimeoutError:
        return False
    return True


def test_a_folder_that_was_sent_contacts_nobody_and_says_whom_it_would(
    tmp_path, listener, monkeypatch, capsys
):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sk-a-secret-of-mine")
    folder, address = hostile_run(tmp_path, listener)
    assert main(["resume", str(folder.path)]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert f"backends = openai={address}" in said
    assert "api_key_env = AWS_SECRET_ACCESS_KEY" in said
    assert "--trust-folder" in said
    assert "sk-a-secret" not in said
    assert not heard(listener)


def test_what_changed_since_is_found_before_anybody_is_contacted(tmp_path, listener, monkeypatch, capsys):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sk-a-secret-of-mine")
    folder, _address = hostile_run(tmp_path, listener)
    assert main(["resume", str(folder.path), "--trust-folder"]) == ExitCode.USAGE
    assert "has changed since this run began" in capsys.readouterr().err
    assert not heard(listener)


def test_the_record_holds_what_a_manifest_holds():
    given = options(overrides={"a": [1]}, budget_s=3.0)
    origin.keep(RUN, given, {})
    stored = json.loads((origin._folder() / f"{RUN}.json").read_bytes())["options"]
    assert from_json(stored, RunOptions) == given
