"""What `scripted.bench` forks ends and says as a fresh interpreter does, and what cells start is a child."""

import os
import signal
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from harness.engines.speak.server import Server
from harness.mockserver import running
from harness.spec.backend_refs import load_backend
from tests.integration import forks, helpers
from tests.integration.scripted import command
from tests.waiting import until

ENVIRONMENT = {**os.environ, "COLUMNS": "80"}


@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        ("list", "scenarios"),
        ("frobnicate",),
        ("run", *"--scenario fixed-length --backends vllm --launch simulate --dry-run -v".split()),
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


def place(pid):
    """Of a process: (parent, session, working directory)."""
    parent, _group, session = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1:4]
    return int(parent), int(session), Path(f"/proc/{pid}/cwd").readlink()


@pytest.mark.parametrize("module", ["harness.load", "harness.sampling"])
def test_a_helper_is_a_child_in_a_session_of_its_own_that_ends_with_its_pipe(here, module):
    process, pipe = helpers.of_this_process().spawn(module)
    until(lambda: place(process.pid) == (os.getpid(), process.pid, here), "it is where it belongs")
    assert process.poll() is None
    pipe.close()
    assert process.wait(30) == 1


def test_a_helper_that_is_killed_is_waited_for(here):
    process, pipe = helpers.of_this_process().spawn("harness.sampling")
    with pipe:
        process.kill()
        assert process.wait(30) == -signal.SIGKILL


def test_a_scripted_tokenizer_counts_texts_of_one_length_alike():
    texts = ["", "a", "and the", "and two", "längere", "x" * 401, "1 2 " * 100 + "3"]
    with running() as server, closing(Server(load_backend("truth"), server.url, "simulated")) as asked:
        counts = asked.count_tokens(texts)
        assert asked.simulated
        assert forks.by_length(Server.count_tokens)(asked, texts) == counts
    assert len(set(counts)) == 4
