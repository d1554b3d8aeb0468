"""What is behind standard output and error, or what the machine refuses, ends no command with a traceback."""

import errno
import json
import os
import signal
import subprocess
import sys

import pytest

from harness.cli.main import main
from harness.errors import ExitCode
from harness.host.helper_process import asked_to_stop, in_words
from tests.integration.scripted import bench_here
from tests.long import others_long

LIST, MISTAKE = ("list", "scenarios"), ("run", "--scenario", "nope", "--backends", "vllm")


def bench(words, redirection, **environment):
    line = f'exec "$0" -m harness {" ".join(words)} {redirection}'
    done = subprocess.run(
        ["/bin/sh", "-c", line, sys.executable], capture_output=True, env={**os.environ, **environment}
    )
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr
    return done


STREAMS = [
    (LIST, ">/dev/full", ExitCode.SETUP),
    (LIST, ">/dev/full 2>&1", ExitCode.SETUP),
    (LIST, "<&- >&- 2>&-", ExitCode.OK),
    (MISTAKE, "2>/dev/full", ExitCode.USAGE),
    (MISTAKE, "2>&-", ExitCode.USAGE),
]


def often(words, redirection, _code, unbuffered):
    """A mistake is refused by modules whose import takes a second."""
    if words is MISTAKE:
        return (redirection, unbuffered) == ("2>&-", "")
    return not unbuffered or redirection == ">/dev/full"


@pytest.mark.parametrize(
    ("words", "redirection", "code", "unbuffered"),
    list(others_long([(*case, unbuffered) for case in STREAMS for unbuffered in ("", "1")], often)),
)
def test_a_full_or_closed_stream(words, redirection, code, unbuffered):
    done = bench(words, redirection, PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == code
    assert done.stdout == b"", "a mistake goes to no other stream"


@pytest.mark.parametrize("unbuffered", list(others_long(["", "1"], lambda unbuffered: not unbuffered)))
def test_output_that_nobody_reads_is_no_success(unbuffered):
    """With `pipefail` a gate that was cut off has not passed."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "harness", *LIST],
        stdout=writing,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (ExitCode.UNREAD, b"")


def test_a_mistake_is_a_document_where_documents_are_asked_for():
    done = bench_here(*MISTAKE, "--json", code=ExitCode.USAGE)
    document = json.loads(done.stdout)
    assert done.returncode == document["exit_code"] == ExitCode.USAGE
    assert document["error"] == "unknown scenario 'nope'"
    assert "agent-tree" in document["hint"]
    assert "error: unknown scenario 'nope'" in done.stderr


def test_every_character_can_be_printed():
    code = "from harness.cli.display import streams; streams.prepare(); print('≈ é')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert done.returncode == 0
    assert done.stdout == b"~ \\xe9" + os.linesep.encode()


@pytest.mark.parametrize("ignored", [True, False])
def test_a_closed_terminal_asks_to_stop_unless_nohup_said_otherwise(ignored):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
    try:
        assert (signal.SIGHUP not in asked_to_stop()) is ignored
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "TMPDIR"),
        (errno.EFBIG, "ulimit -f"),
        (errno.EROFS, "TMPDIR"),
        (errno.EMFILE, "ulimit"),
        (errno.ENOMEM, "less load"),
    ],
)
def test_what_the_machine_refuses_is_an_error_in_words(number, hint, monkeypatch, capsys):
    def refused(_):
        raise OSError(number, os.strerror(number), "/x/y")

    monkeypatch.setattr("harness.cli.commands.listing.main", refused)
    assert main(["list", "runs"]) == ExitCode.SETUP
    told, advice = capsys.readouterr().err.splitlines()
    assert told == f"error: /x/y: {os.strerror(number).lower()}"
    assert hint in advice


def test_a_defect_is_not_hidden_behind_an_error(monkeypatch):
    def missing(_):
        raise FileNotFoundError(errno.ENOENT, "No such file", "/x/y")

    monkeypatch.setattr("harness.cli.commands.listing.main", missing)
    with pytest.raises(FileNotFoundError):
        main(["list", "runs"])


def test_a_child_says_in_a_line_what_the_machine_refused(capsys):
    with pytest.raises(SystemExit), in_words("load worker"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert capsys.readouterr().err == "error: load worker: No space left on device\n"
