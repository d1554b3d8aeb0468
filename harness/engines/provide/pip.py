"""pip in an engine's environment: logged, and with its failures put into one sentence."""

import json
import re
import shutil
import sys
from pathlib import Path

from harness.engines.provide.logged import Log, run_logged
from harness.engines.provide.shared_folders import Say
from harness.errors import SetupError
from harness.model.numbers import counted

_CAUSES = (
    (
        r"No space left on device",
        "the disk is full: free some space, or name another folder with BENCH_CACHE",
    ),
    (
        r"Failed to establish a new connection|Temporary failure in name resolution|Name or service not known"
        r"|Connection refused|ConnectTimeout|Network is unreachable|NewConnectionError|ProxyError",
        "the package index cannot be reached: check the network and pip's index and proxy settings",
    ),
    (
        r"from versions: none",
        "the package index does not have it, or cannot be reached: check the network and pip's settings",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED",
        "the package index's certificate is not trusted: see pip's --cert setting",
    ),
    (
        r"has no usable wheels",
        "a package has no wheel for that machine: if its C library is newer, say so with --glibc 2.35",
    ),
)

NO_PROJECT = "/"  # uv reads the settings of a project: not those of the folder that bench is run in


def find_uv() -> str | None:
    """Returns uv's path; None where there is none. It may be next to our Python, and not in PATH."""
    return shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))


def _state(log: Log) -> str:
    """`87 packages found`, then that they are unpacked, which takes minutes without another line."""
    output = log.tail(10_000)
    collected = len(re.findall(r"^Collecting ", output, re.MULTILINE))
    if "Installing collected packages" in output:
        return "unpacking"
    return f"{counted(collected, 'package')} found" if collected else ""


class Pip:
    """`label` names in progress lines what is installed; everything pip prints goes to `log`."""

    def __init__(self, python: Path, log: Path, say: Say, label: str) -> None:
        self.log, self.label, self._python, self._say = log, label, python, say

    def run(self, doing: str, *arguments: str) -> None:
        """Raises SetupError with pip's own last words."""
        # -I: neither PYTHONPATH nor the current folder may shadow what is being installed.
        self._run(
            doing, [str(self._python), "-I", "-m", "pip", "--no-input", *arguments, "--progress-bar", "off"]
        )

    def download(self, package: str, folder: Path) -> None:
        """The wheel of the package alone, into `folder`."""
        flags = ("--no-deps", "--only-binary", ":all:", "--dest", str(folder))
        self.run(f"downloading {package}", "download", *flags, package)

    def run_uv(self, uv: str, doing: str, *arguments: str) -> None:
        """`uv pip install ARGUMENTS` into the same environment, under the same care."""
        into = ("--project", NO_PROJECT, "--python", str(self._python))
        self._run(doing, [uv, "pip", "install", *into, *arguments])

    def compile_uv(self, doing: str, *arguments: str, project: str = NO_PROJECT) -> None:
        """`uv pip compile ARGUMENTS`: installs nothing. `project`: the folder whose settings hold."""
        uv = find_uv()
        if uv is None:
            raise SetupError(
                "needs uv, which resolves packages without fetching them",
                where=self.label,
                hint="pip install uv",
            )
        self._run(doing, [uv, "pip", "compile", "--quiet", "--project", project, *arguments])

    def resolve(self, doing: str, *arguments: str) -> dict[str, str]:
        """The distributions that `pip install ARGUMENTS` would bring, and their versions."""
        report = self.log.with_suffix(".report.json")
        self.run(doing, "install", "--dry-run", "--ignore-installed", "--report", str(report), *arguments)
        entries = json.loads(report.read_text(encoding="utf-8"))["install"]
        report.unlink()
        return {entry["metadata"]["name"]: entry["metadata"]["version"] for entry in entries}

    def newest(self, project: str, *options: str) -> str:
        """Version of it that pip finds for its own Python. Downloads nothing."""
        doing = f"asking for the newest {project}"
        # At the end of a night the question must not hold it up.
        quick = ("--no-input", "--retries", "1", "--timeout", "10")
        command = [str(self._python), "-I", "-m", "pip", *quick, "index", "versions", *options, project]
        added = self._run(doing, command)
        found = re.search(r"^\S+ \(([^)]+)\)$", added.tail(400), re.MULTILINE)
        if found is None:
            raise self._failure(doing, added.tail(400))
        return found[1]

    def _run(self, doing: str, command: list[str]) -> Log:
        """Returns what the command wrote."""
        added = Log.continued(self.log)
        self._say(f"{self.label}: {doing}")
        if run_logged(command, self.log, self._say, f"{self.label}: {doing}", state=_state) != 0:
            raise self._failure(doing, added.tail(400))
        return added

    def _failure(self, doing: str, output: str) -> SetupError:
        errors = re.findall(r"^\s*(?:ERROR|error|×):?\s*(.+)$", output, re.MULTILINE)
        message = " / ".join((errors or output.splitlines())[-3:])
        hint = next((text for pattern, text in _CAUSES if re.search(pattern, output)), "read the log")
        return SetupError(f"{doing} failed: {message}", where=self.label, hint=f"{hint}; log: {self.log}")
