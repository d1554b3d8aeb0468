"""The origin of this installation: a checkout and its commit, or a package."""

import os
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path

from harness import __version__
from harness.host import paths
from harness.host.helper_process import without_credentials
from harness.model import GitRevision

DISTRIBUTION = "llm-servebench"
_COMMIT = Path(__file__).parents[1] / "_commit"  # written by hatch_build.py


def version_text() -> str:
    """`0.2.0 (checkout /src/bench, commit 0d483a2c91f0, with changes)`."""
    return f"{__version__} ({', '.join(_parts())})"


def requirements() -> list[str]:
    """What this package needs, without its extras: `numpy>=2.0`. Empty where it is not installed."""
    try:
        found = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return []
    return [line.partition(";")[0].strip() for line in found if "extra ==" not in line]


def _parts() -> list[str]:
    git = revision()
    commit = f"commit {git.revision[:12]}" if git else "commit unknown"
    if not _is_checkout():
        return [os.environ.get("BENCH_INSTALL") or f"package{_installer()}", commit]
    return [f"checkout {paths.CHECKOUT}", commit, *(["with changes"] if git and git.dirty else [])]


def _is_checkout() -> bool:
    return (paths.CHECKOUT / ".git").exists()


def _installer() -> str:
    try:
        name = (metadata.distribution(DISTRIBUTION).read_text("INSTALLER") or "").strip()
    except metadata.PackageNotFoundError:
        return " not installed"
    return f" installed by {name}" if name else ""


@cache
def revision() -> GitRevision | None:
    """The commit of the checkout that this code runs from, or that the package was built from; None if
    unknown.

    Asked for once: what a process has loaded stays as it is, and Git looks at every file of a checkout.
    """
    try:
        if _is_checkout():
            return GitRevision(revision=_git("rev-parse", "HEAD"), dirty=bool(_git("status", "--porcelain")))
        return GitRevision(revision=_COMMIT.read_text(encoding="ascii").strip(), dirty=False)
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", "--no-optional-locks", "-C", str(paths.CHECKOUT), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
        env=without_credentials(os.environ),
    ).stdout.strip()
