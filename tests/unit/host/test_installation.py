"""`bench --version`, and the one place that the version stands in."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from harness import __version__
from harness.host import installation, paths
from harness.model import GitRevision

ROOT = Path(__file__).resolve().parents[3]
COMMIT = "0d483a2c91f0aa11bb22cc33dd44ee55ff667788"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder in place of the checkout, whose commit is asked for once: forgotten before and after."""
    monkeypatch.setattr(paths, "CHECKOUT", tmp_path)
    installation.revision.cache_clear()
    yield tmp_path
    installation.revision.cache_clear()


def git(folder, *words):
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True)


def test_a_checkout_tells_where_its_commit_and_whether_it_was_changed(checkout):
    git(checkout, "init", "--quiet")
    git(checkout, "commit", "--quiet", "--allow-empty", "--message", "first")
    commit = installation.revision().revision
    assert installation.version_text() == f"{__version__} (checkout {checkout}, commit {commit[:12]})"
    (checkout / "new").touch()
    assert installation.revision() == GitRevision(revision=commit, dirty=False)  # what has been loaded
    installation.revision.cache_clear()
    assert installation.version_text().endswith(", with changes)")


def test_asking_for_the_commit_leaves_the_index_of_the_checkout_alone(checkout):
    """Git would lock and write it; killed by the time limit, it would leave the lock to whoever commits."""
    git(checkout, "init", "--quiet")
    (checkout / "file").write_text("text")
    git(checkout, "add", "file")
    git(checkout, "commit", "--quiet", "--message", "first")
    index = (checkout / ".git" / "index").read_bytes()
    os.utime(checkout / "file", (0, 0))
    assert installation.revision().dirty is False
    assert (checkout / ".git" / "index").read_bytes() == index


@pytest.mark.parametrize(("told", "kind"), [("", "package"), ("container image", "container image")])
def test_a_package_tells_the_commit_it_was_built_from(checkout, monkeypatch, told, kind):
    monkeypatch.setattr(installation, "_COMMIT", checkout / "_commit")
    monkeypatch.setenv("BENCH_INSTALL", told)
    assert installation.version_text().startswith(f"{__version__} ({kind}")
    assert installation.version_text().endswith(", commit unknown)")
    assert installation.revision() is None
    (checkout / "_commit").write_text(f"{COMMIT}\n")
    installation.revision.cache_clear()
    assert installation.version_text().endswith(", commit 0d483a2c91f0)")
    assert installation.revision() == GitRevision(revision=COMMIT, dirty=False)


def test_a_package_tells_what_installed_it(checkout, monkeypatch):
    named = installation.DISTRIBUTION.replace("-", "_")
    record = checkout / f"{named}-{__version__}.dist-info"
    record.mkdir()
    (record / "METADATA").touch()
    (record / "INSTALLER").write_text("pipx\n")
    monkeypatch.syspath_prepend(checkout)
    monkeypatch.delenv("BENCH_INSTALL", raising=False)
    assert f"{__version__} (package installed by pipx, commit " in installation.version_text()


def test_the_command_says_it():
    done = subprocess.run([sys.executable, "-m", "harness", "--version"], capture_output=True, text=True)
    assert re.fullmatch(rf"bench {re.escape(__version__)} \(.+, commit \w+(, with changes)?\)\n", done.stdout)


def test_the_version_stands_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "version" not in project
    assert "version" in project["dynamic"]
    assert re.search(rf"^## \[{re.escape(__version__)}\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
