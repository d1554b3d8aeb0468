"""What `scripted.bench` forks ends and says as a fresh interpreter does."""

import os
import subprocess

import pytest

from tests.integration import forks
from tests.integration.scripted import command

ENVIRONMENT = {**os.environ, "COLUMNS": "80"}


@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        ("list", "scenarios"),
        ("frobnicate",),
        (
            "run",
            "--scenario",
            "fixed-length",
            "--backends",
            "vllm",
            "--launch",
            "simulate",
            "--dry-run",
            "-v",
        ),
    ],
)
def test_it_is_as_a_fresh_interpreter(here, words):
    fresh = subprocess.run(command(*words), capture_output=True, text=True, env=ENVIRONMENT)
    forked = forks.run(words, ENVIRONMENT)
    assert (forked.returncode, forked.stdout, forked.stderr) == (fresh.returncode, fresh.stdout, fresh.stderr)


def test_one_that_does_not_end_is_ended_and_the_next_is_served():
    with pytest.raises(subprocess.TimeoutExpired):
        forks.run(["truth", "--port", "0"], ENVIRONMENT, limit_s=0.5)
    assert forks.run(["--version"], ENVIRONMENT).returncode == 0
