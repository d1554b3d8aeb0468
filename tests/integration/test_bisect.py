"""`git bisect run` with a build of a good commit next to each other one, as docs/compare.md shows it."""

import shlex
import subprocess

import pytest

from tests.integration.scripted import command, define

GAPS_MS = {"first": 10, "broken": None, "docs": 10, "slow": 16, "later": 16}  # by commit, the oldest first
BENCH = shlex.join(command())
STEP = f"""\
#!/bin/sh
out=$(mktemp -d -p .git)
{BENCH} run --scenario fixed-length --concurrency 2 --requests 16 --output-tokens 12 \\
    --set verdict.primary=tpot_ms.p50 --set verdict.cool_down_s=0 --set load.warmup_requests=2 \\
    --no-agreement --no-probe --no-report --out "$out" --backends engine@good,engine@here \\
    --variant good=.git/good --variant here=./server || exit 125
{BENCH} compare "$out"/* --baseline engine@good --fail-on slower --undecided skip --floor 20
code=$?
[ $code -le 1 ] || code=125
exit $code
"""


def script(path, text):
    path.write_text(text)
    path.chmod(0o755)


def build(path, commit, gap_ms):
    start = "exit 1" if gap_ms is None else f'exec {BENCH} truth "$@" --gap-ms {gap_ms}'
    script(path, f"#!/bin/sh\n# {commit}\n{start}\n")


def git(*words):
    identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@localhost")
    done = subprocess.run(["git", *identity, *words], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.time
def test_the_commit_that_made_it_slower_is_found_past_one_that_does_not_start(here):
    git("init", "--quiet")
    define("engine", ttft_ms=60)
    build(here / ".git" / "good", "good", 10)
    script(here / ".git" / "step", STEP)
    for commit, gap_ms in GAPS_MS.items():
        build(here / "server", commit, gap_ms)
        git("add", "server")
        git("commit", "--quiet", "--message", commit)
        git("tag", commit)
    git("bisect", "start", "later", "first")
    git("bisect", "run", ".git/step")
    assert git("log", "-1", "--format=%s", "refs/bisect/bad").strip() == "slow"
