"""Whatever the environment of a command is, it works or says in one line what is wrong: never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.host import paths
from tests.factories.runs import TWO, Shape, make_run
from tests.integration.scripted import define
from tests.long import others_long

QUICK = (
    *("--no-probe", "--no-agreement", "--repeats", "1", "--concurrency", "1"),
    *("--requests", "2", "--output-tokens", "2", "--set", "load.warmup_requests=0"),
    *("--set", "load.min_answers=1", "--set", "load.min_seconds=0"),
)
RUN = ("run", "--scenario", "fixed-length", "--backends", "{backend}", *QUICK)
COMMANDS = {
    "list": ("list", "scenarios"),
    "dry": (*RUN, "--dry-run"),
    "report": ("report", "{run}"),
    "run": (*RUN, "--no-report", "--out", "{out}"),
}
# What `python -m harness` does, but of the pictures of a report the first alone is drawn: each takes a while.
ONE_PICTURE = """
import runpy, sys
from importlib.util import find_spec
from itertools import islice


class OnePicture:
    def find_spec(self, name, *_):
        if name != "harness.report.plots":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        load = spec.loader.exec_module

        def loaded(module):
            load(module)
            draw = module.draw
            module.draw = lambda *arguments: islice(draw(*arguments), 1)

        spec.loader.exec_module = loaded
        return spec


sys.meta_path.insert(0, OnePicture())
runpy.run_module("harness", run_name="__main__", alter_sys=True)
"""
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
    "1 GB of memory": ({}, "ulimit -v 1000000", NO_MEMORY),  # OpenBLAS ended with 1 at a little less
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
            names, others = fitting[0]
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
            yield command, names, variables


# Each environment is in one of these, with every change; the first of a group stands for all of it.
OFTEN = {
    "list": {"folder deleted", "output full", "output closed", "60 MB of memory"},
    "dry": {"certificates bad", "certificates a folder", "60 MB of memory"},
    "report": {"certificates missing", "files of 4 KiB", "1 GB of memory"},
    "run": {
        *("certificates missing", "certificates' folder missing", "files of no byte"),
        *("home of nobody", "errors closed", "16 open files"),
    },
}
CASES = list(cases())


def often(command, names, _variables):
    return names[0] in OFTEN[command]


def test_each_environment_is_tried_with_every_change():
    assert {name for case in CASES if often(*case) for name in case[1]} == ENVIRONMENTS.keys()


@pytest.mark.parametrize(
    ("command", "names", "variables"),
    list(others_long(CASES, often)),
    ids=[f"{command}: {', '.join(names)}" for command, names, _ in CASES],
)
def test_a_command_works_or_says_in_one_line_why_not(command, names, variables, here, stored):
    _, first, codes = ENVIRONMENTS[names[0]]
    environment = {**os.environ, "PYTHONPATH": str(paths.CHECKOUT), **variables}
    # So slow that a busy machine spoils no cell, which would be measured again.
    backend = here / define("calm", ttft_ms=600)
    words = [word.format(run=stored, out=here / "results", backend=backend) for word in COMMANDS[command]]
    one_picture = command == "report" and often(command, names, variables)
    start = ("-c", ONE_PICTURE) if one_picture else ("-m", "harness")
    done = subprocess.run(
        ["/bin/bash", "-c", f'{first or ":"} && exec "$@"', "sh", sys.executable, *start, *words],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        env={key: value for key, value in environment.items() if value is not None},
    )
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    assert "Exception ignored" not in said
    assert "Matplotlib" not in said, "its advice on a home folder is for programmers"
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    wanted = codes.get(command, OK)
    assert done.returncode == wanted, said
    assert len(errors) == (1 if wanted else 0), said
    assert not any(Path(here).glob("gone*"))
