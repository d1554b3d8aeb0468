"""One bug planted in each of six rooms, and the unit tests of that room that notice it.

    python -m tests.bench.planted [--only ROOM]

Works on a copy of what git tracks, in a temporary folder. `tests.bench.mutants` tries hundreds in twenty.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.command import options

ROOT = Path(__file__).resolve().parents[2]
# Room: file, what stands there, what is planted in its place.
BUGS = {
    "metrics": ("distribution.py", "trials_needed(percentile / 100)", "trials_needed(percentile / 101)"),
    "validity": ("requests.py", "failed / total > MAX_FAILED_SHARE", "failed / total > 2 * MAX_FAILED_SHARE"),
    "verdicts": ("pairs.py", "better = (span.estimate < 1) ==", "better = (span.estimate > 1) =="),
    "load": ("sse.py", "EventKind.TOOL_CALL and not text", "EventKind.TOOL_CALL and text"),
    "store": ("seal.py", "sums[name] = [sha256, *", "sums[name] = [*"),
    "engines": (
        "start/launch_choice.py",
        'if mode == "attach" and not ref.url',
        'if mode == "attach" and ref.url',
    ),
}


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--only", choices=BUGS, help="this room")
    only = parser.parse_args().only
    missed = [room for room in BUGS if only in (None, room) and not _noticed(room)]
    return 1 if missed else 0


def _noticed(room: str) -> bool:
    file, stands, planted = BUGS[room]
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        _copy(Path(folder))
        path = Path(folder, "harness", room, file)
        text = path.read_text(encoding="utf-8")
        assert text.count(stands) == 1, f"{path} has changed: plant another bug"
        path.write_text(text.replace(stands, planted), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", f"tests/unit/{room}", "-q", "-x", "-p", "no:cacheprovider"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": folder},
            capture_output=True,
            text=True,
        )
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    print(
        f"{room}/{file}: {stands!r} -> {planted!r}: {found[1] if found else 'NOTICED BY NO TEST'}", flush=True
    )
    return done.returncode == 1 and found is not None


def _copy(folder: Path) -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in filter(None, tracked.stdout.split("\0")):
        if not name.startswith("results/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)


if __name__ == "__main__":
    sys.exit(main())
