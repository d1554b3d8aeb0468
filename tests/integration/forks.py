"""`bench` in a process of its own that has imported everything before: the half of a short run's CPU time.

One server for each pytest process. It never runs anything itself, so that what it forks is as a fresh
interpreter that has reached `main`: own pid, streams, environment, directory, signals and exit code. Where a
test sets what Python or the loader reads before that, a fresh interpreter is started. What is forked asks the
tokenizer of a scripted server for one text of each length, not for all 600 words that prompts are made of.
"""

import atexit
import gc
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import traceback
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.integration import helpers

ROOT = Path(__file__).resolve().parents[2]
_OURS = dict(os.environ)
_LATER = (
    "duckdb",
    "harness.report.plots",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
)


def run(words, environment, cwd=None, limit_s=120, *, pictures=False):
    """As subprocess.run does: CompletedProcess with text, or TimeoutExpired.

    `pictures`: a report draws them, which takes seconds.
    """
    if helpers.before_main(environment) != helpers.before_main(_OURS):
        command = [sys.executable, "-m", "harness", *words]
        return subprocess.run(
            command, env=environment, cwd=cwd, timeout=limit_s, capture_output=True, text=True
        )
    with TemporaryDirectory() as folder:
        out, err = f"{folder}/out", f"{folder}/err"
        code = start(words, environment, out=out, err=err, cwd=cwd, limit_s=limit_s, pictures=pictures)
        texts = (Path(path).read_text(encoding="utf-8") for path in (out, err))
        return subprocess.CompletedProcess(words, code, *texts)


def start(words, environment, *, out, err, cwd=None, limit_s=120, pictures=False):
    """Its exit code. `out` and `err` are paths of files, or of a terminal."""
    return _asked([words, environment, str(cwd or Path.cwd()), out, err, pictures], limit_s)


def _asked(job, limit_s):
    server = _server()
    server.stdin.write(json.dumps(job).encode() + b"\n")
    pid = int(server.stdout.readline())
    ended, _, _ = select.select([server.stdout], [], [], limit_s)
    if not ended:
        with suppress(ProcessLookupError):  # it ends at the same time
            os.kill(pid, signal.SIGKILL)
    code = int(server.stdout.readline())
    if not ended:
        raise subprocess.TimeoutExpired(job[0], limit_s)
    return code


@cache
def _server():
    command, pipe = [sys.executable, "-m", __name__], subprocess.PIPE
    # Unbuffered: a reader that took the exit code along with the pid would wait for it in `select`.
    server = subprocess.Popen(command, cwd=ROOT, env=_OURS, bufsize=0, stdin=pipe, stdout=pipe)
    atexit.register(server.communicate)
    return server


def by_length(count_tokens):
    """`Server.count_tokens` with fewer requests, for the scripted server: it counts characters alone."""

    def counted(server, texts):
        if not server.simulated:
            return count_tokens(server, texts)
        ones = {len(text): text for text in texts}
        counts = count_tokens(server, list(ones.values()))
        if counts is None:
            return None
        known = dict(zip(ones, counts, strict=True))
        return [known[len(text)] for text in texts]

    return counted


def _serve():
    from harness.claims import load_catalog
    from harness.cli.flags.parsers import COMMANDS
    from harness.client.client import Client
    from harness.conditions.settings import classified
    from harness.engines.speak import server as speak
    from harness.workload.prompts.text import TextMaker

    for module in (
        *(module for module, _help in COMMANDS.values()),
        "harness.cli.commands.run_session",
        *helpers.USERS,
        *helpers.PRELOADED,
        *_LATER,
    ):
        import_module(module)
    # Once for all: the certificates of the system, the catalogue of claims, the table of settings, sentences.
    Client("http://nowhere").close()
    load_catalog()
    classified("flag", "", "")
    TextMaker(None)
    speak.Server.count_tokens = by_length(speak.Server.count_tokens)
    gc.freeze()  # what is here stays: no fork looks through it for garbage in the midst of a load
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            _become(*json.loads(line))
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _become(words, environment, cwd, out, err, pictures):
    code = 1
    try:
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(environment)
        for descriptor, path in enumerate((os.devnull, out, err)):
            opened = os.open(path, os.O_RDWR | os.O_CREAT)
            os.dup2(opened, descriptor)
            os.close(opened)
        streams = [open(at, mode, encoding="utf-8", closefd=False) for at, mode in enumerate("rww")]  # noqa: SIM115
        sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__ = streams
        starter = helpers.forked()
        for name in helpers.USERS:
            sys.modules[name].spawn = starter.spawn
        if not pictures:
            sys.modules["harness.report.plots"].draw = lambda *_arguments, **_options: []
        sys.argv, sys.path[0] = ["harness", *words], cwd
        runpy.run_module("harness", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
