"""Puts the commit that a package is built from into it, for `bench --version`."""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = "harness/_commit"  # read by harness/host/installation.py


class CommitHook(BuildHookInterface[Any]):
    """A checkout tells its commit itself, a source distribution has the file already."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or Path(self.root, PLACE).is_file():
            return
        if commit := os.environ.get("BENCH_COMMIT") or _commit(self.root):
            self._folder = tempfile.TemporaryDirectory()
            file = Path(self._folder.name, "commit")
            file.write_text(f"{commit}\n", encoding="ascii")
            build_data["force_include"][str(file)] = PLACE

    def finalize(self, *_: object) -> None:
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def _commit(root: str) -> str:
    """Of the repository whose top `root` is; "" without one, or with changes that no commit has."""
    if not Path(root, ".git").exists():
        return ""
    try:
        changed = _git(root, "status", "--porcelain", "--untracked-files=no")
        return "" if changed else _git(root, "rev-parse", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _git(root: str, *words: str) -> str:
    done = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()
