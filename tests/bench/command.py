"""The command lines of these scripts, and `bench` as they run it."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def options(page: str | None) -> argparse.ArgumentParser:
    """`page` stands in --help, line by line as it was written."""
    return argparse.ArgumentParser(description=page, formatter_class=argparse.RawDescriptionHelpFormatter)


def bench(
    *words: object, limit_s: float, cwd: Path | None = None, **environment: object
) -> "subprocess.CompletedProcess[str]":
    """This checkout's, from any folder; whatever it exits with."""
    more = {name: str(value) for name, value in environment.items()}
    return subprocess.run(
        [sys.executable, "-m", "harness", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=limit_s,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **more},
        check=False,
    )
