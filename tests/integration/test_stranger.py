"""Run folders of a stranger, one of each kind, through every command; `make chaos` tries a thousand."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.chaos.hostile import KINDS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_no_promise_is_broken():
    words = ("folders", "--count", str(len(KINDS)), "--seed", "7")
    command = [sys.executable, "-m", "tests.bench.chaos", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert all(f"| {kind} | 1 |" in done.stdout for kind in KINDS)
