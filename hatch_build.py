"""Builds: the commit goes into the package, for `bench --version`; the links of README.md become absolute."""

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PLACE = "harness/_commit"  # read by harness/host/installation.py
_RELATIVE = re.compile(r"(!?)(\[[^\]]*\]\()(?!\w+:|#)([^)]+)\)")


class ReadmeHook(MetadataHookInterface):
    """Sets the long description. A package index has none of the files that README.md links to."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        source = metadata["urls"]["Source"]
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, source)}


def absolute(text: str, source: str) -> str:
    """Markdown whose relative links lead to the repository `source`, those of pictures to the bare file."""

    def link(match: re.Match[str]) -> str:
        picture, words, path = match.groups()
        return f"{picture}{words}{source}/{'raw' if picture else 'blob'}/main/{path})"

    return _RELATIVE.sub(link, text)


class CommitHook(BuildHookInterface[Any]):
    """Adds the commit. An editable installation asks git, and a source distribution has the file already."""

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
    """The commit that is checked out at `root`; "" without a repository, or with uncommitted changes."""
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
