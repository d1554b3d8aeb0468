"""Whatever the environment of a command is, it works or says in one line what is wrong: never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.host import paths
from tests.factories.runs import TWO, Shape, make_run

QUICK = (
    *("--launch", "simulate", "--no-probe", "--no-agreement", "--repeats", "1", "--concurrency", "1"),
    *("--requests", "4", "--output-tokens", "2", "--set", "load.warmup_requests=1"),
    *("--set", "load.min_answers=1", "--set", "load.min_seconds=0"),
)
RUN = ("run", "--scenario", "fixed-length", "--backends", "vllm", *QUICK)
COMMANDS = {
    "list": ("list", "scenarios"),
    "dry": (*RUN, "--dry-run"),
    "report": ("report", "{run}"),
    "run": (*RUN, "--no-report", "--out", "{out}"),
}
OK, SETUP = 0, 3
NO_MEMORY = {"dry": SETUP, "report": SETUP, "run": SETUP}
NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}  # else Python keeps files of it that were cut off

# Name -> variables (None: unset), what a shell does first, and the exit codes that are not 0.
ENVIRONMENTS = {
    "certificates missing": ({"SSL_CERT_FILE": "/no/such"}, "", {"run": SETUP}),
    "certificates bad": ({"SSL_CERT_FILE": "/etc/passwd"}, "", {"run": SETUP}),
    "certificates a folder": ({"SSL_CERT_FILE": "/etc"}, "", {"run": SETUP}),
    "certificates' folder missing": ({"SSL_CERT_DIR": "/no/such"}, "", {}),
    "certificates of other programs": ({"REQUESTS_CA_BUNDLE": "/no/such", "CURL_CA_BUNDLE": "/no"}, "", {}),
    "folder deleted": (
        {},
        "mkdir gone && cd gone && rmdir ../gone",
        {"list": SETUP, "dry": SETUP, "run": SETUP},
    ),
    "files of no byte": (NO_BYTECODE, "ulimit -f 0", {"report": SETUP, "run": SETUP}),
    "files of 4 KiB": (NO_BYTECODE, "ulimit -f 4", {"report": SETUP, "run": SETUP}),
    "home missing": ({"HOME": "/proc/no/such", "BENCH_CACHE": None}, "", {}),
    "home unset": ({"HOME": None}, "", {}),
    "home of nobody": ({"BENCH_CACHE": "~no-such-user/x"}, "", {"run": SETUP}),
    "cache in a file": ({"BENCH_CACHE": "/etc/passwd"}, "", {}),
    "temporary folder missing": ({"TMPDIR": "/no/such"}, "", {}),
    "output full": ({}, "exec >/dev/full", dict.fromkeys(COMMANDS, SETUP)),
    "output closed": ({}, "exec >&-", {}),
    "errors closed": ({}, "exec 2>&-", {}),
    "plain ASCII": ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "", {}),
    "locale unknown": ({"LC_ALL": "xx_YY.nope"}, "", {}),
    "hash seed": ({"PYTHONHASHSEED": "4294967295"}, "", {}),
    "16 open files": ({}, "ulimit -n 16", {"run": SETUP}),
    "60 MB of memory": ({}, "ulimit -v 60000", NO_MEMORY),
    "plots' settings in a file": ({"MPLCONFIGDIR": "/etc/passwd"}, "", {}),
    "plots' backend unknown": ({"MPLBACKEND": "nope"}, "", {}),
    "no columns": ({"COLUMNS": "0"}, "", {}),
    "one column": ({"COLUMNS": "1"}, "", {}),
    "columns in letters": ({"COLUMNS": "abc"}, "", {}),
    "no colour": ({"NO_COLOR": "1", "TERM": "dumb"}, "", {}),
    "no terminal": ({"TERM": None}, "", {}),
    "proxies that are none": (
        {"HTTP_PROXY": "nonsense", "ALL_PROXY": "socks9://x", "http_proxy": "://"},
        "",
        {},
    ),
    "time zone unknown": ({"TZ": "Nope/Nope"}, "", {}),
    "threads in letters": ({"OMP_NUM_THREADS": "abc", "OPENBLAS_NUM_THREADS": "-1"}, "", {}),
    "no programs": ({"PATH": ""}, "", {}),
}


@pytest.fixture(scope="session")
def stored(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("stored"), Shape(TWO[:1], (1,), requests=8)).path


def together(command):
    """(names, variables) of environments that change nothing for this command; no group sets one twice."""
    groups = []
    for name, (variables, first, codes) in ENVIRONMENTS.items():
        if first or command in codes:
            continue
        fitting = [group for group in groups if not group[1].keys() & variables.keys()]
        if fitting:
            names, others = min(fitting, key=lambda group: len(group[0]))
            names.append(name)
            others.update(variables)
        else:
            groups.append(([name], dict(variables)))
    return groups


def cases():
    """Harmless environments share a command, since each is a process that imports or draws for seconds."""
    for command in COMMANDS:
        groups = together(command)
        shared = {name for names, _ in groups for name in names}
        groups += [([name], ENVIRONMENTS[name][0]) for name in ENVIRONMENTS if name not in shared]
        for names, variables in groups:
            yield pytest.param(command, names, variables, id=f"{command}: {', '.join(names)}")


@pytest.mark.parametrize(("command", "names", "variables"), list(cases()))
def test_a_command_works_or_says_in_one_line_why_not(command, names, variables, here, stored):
    _, first, codes = ENVIRONMENTS[names[0]]
    environment = {**os.environ, "PYTHONPATH": str(paths.CHECKOUT), **variables}
    words = [word.format(run=stored, out=here / "results") for word in COMMANDS[command]]
    done = subprocess.run(
        ["/bin/bash", "-c", f'{first or ":"} && exec "$@"', "sh", sys.executable, "-m", "harness", *words],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        env={key: value for key, value in environment.items() if value is not None},
    )
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    assert "Exception ignored" not in said
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    wanted = codes.get(command, OK)
    assert done.returncode == wanted, said
    assert len(errors) == (1 if wanted else 0), said
    assert not any(Path(here).glob("gone*"))
