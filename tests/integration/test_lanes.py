"""The runner of the gate's lanes, on small ones: what it prints, its exit code, what it leaves running."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from types import SimpleNamespace

import pytest

from tests.unit.test_site import ROOT, loaded
from tests.waiting import until

lanes = loaded("lanes")
HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture
def gate(tmp_path, capsys, monkeypatch):
    """`gate(plan)`: exit code and all that was printed. The handlers that it sets are undone afterwards."""
    for inherited in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        monkeypatch.delenv(inherited, raising=False)  # so that they are there again afterwards
    monkeypatch.setattr(lanes, "EVERY_S", 0.02)
    before = {number: signal.getsignal(number) for number in HANDLED}

    def run(plan):
        (tmp_path / "plans.toml").write_text(plan, encoding="utf-8")
        code = lanes.main("gate", tmp_path / "plans.toml", tmp_path / "out")
        return code, capsys.readouterr().out

    yield run
    for number, handler in before.items():
        signal.signal(number, handler)


def lane(name, run, budget_s=60, more=""):
    return f"{{ lane = {json.dumps(name)}, run = {json.dumps(run)}, budget_s = {budget_s}{more} }}"


def phase(**queues):
    return "[[gate]]\n" + "".join(f"{name} = [{', '.join(some)}]\n" for name, some in queues.items())


def test_a_lane_that_yields_has_the_lowest_priority(gate):
    group = "/proc/self/autogroup"
    its_share = f"until ! test -e {group} || grep 'nice 19' {group}; do sleep 0.01; done"
    code, said = gate(
        phase(a=[lane("yields", f"nice; {its_share}", more=", yields = true")], b=[lane("not", "nice")])
    )
    assert code == 0
    assert re.search(r"=== yields: passed in \d+ s\n19\n", said)
    assert re.search(rf"=== not: passed in \d+ s\n{os.nice(0)}\n", said)


def test_lanes_that_pass_end_with_what_was_counted(gate):
    code, said = gate(
        phase(a=[lane("one", "echo '=== 3 passed in 1.20s ==='"), lane("two", "seq 100")])
        + phase(b=[lane("three", "echo 4 passed, 1 skipped in 2.5s")])
    )
    assert code == 0
    assert said.splitlines()[-1].startswith("=== 7 passed in ")
    assert "one: passed  3 passed in 1.20s" in said
    assert "[75 lines before these: " in said
    assert "\n75\n" not in said
    assert "\n76\n" in said
    assert "OVER BUDGET" not in said


def test_a_second_try_hides_nothing_of_the_first(gate):
    first = "echo '=== 2 failed, 1539 passed, 3 skipped in 645.10s (0:10:45) ==='"
    again = "echo 'Again, alone:'; echo '2 passed in 1.69s'"
    code, said = gate(phase(a=[lane("one", f"{first}; {again}"), lane("two", "echo 3 passed in 1.00s")]))
    assert code == 0
    assert (
        "one: passed  2 failed, 1539 passed, 3 skipped in 645.10s (0:10:45); again alone: 2 passed in 1.69s"
    ) in said
    assert re.fullmatch(r"=== 1544 passed in \d+s \(2 of them in a second try\)", said.splitlines()[-1])


def test_a_second_try_in_which_all_fail_is_shown(gate):
    again = "echo 'Again, once:'; echo '1 failed in 2.00s'; exit 2"
    _, said = gate(phase(a=[lane("one", f"echo '1 failed, 4 passed in 9.00s'; {again}")]))
    assert "FAILED (exit 2)  1 failed, 4 passed in 9.00s; again once: 1 failed in 2.00s" in said
    assert re.search(r"^=== 4 passed in \d+s$", said, re.M)


def test_a_row_says_what_a_lane_cost(gate, monkeypatch):
    """In seconds, as rows are: here each counts tenfold."""
    wait4 = os.wait4

    def tenfold(pid, how):
        pid, status, used = wait4(pid, how)
        return pid, status, SimpleNamespace(ru_utime=10 * used.ru_utime, ru_stime=10 * used.ru_stime)

    monkeypatch.setattr(os, "wait4", tenfold)
    burn = f"{sys.executable} -Sc 'import time\nwhile time.process_time() < 0.06: pass'"
    _, said = gate(phase(a=[lane("idle", "sleep 0.1"), lane("busy", burn)]))
    cpu_s = {name: int(cost) for cost, name in re.findall(r" (\d+) s  (idle|busy): passed", said)}
    assert cpu_s["idle"] == 0 < cpu_s["busy"]


def test_queues_of_a_phase_run_at_the_same_time_and_lanes_of_a_queue_in_turn(gate, tmp_path):
    """Each of the first two waits for what the other one makes."""
    waits = "until [ -e {0}/{1} ]; do sleep 0.02; done; touch {0}/{2}"
    a = lane("a", f"touch {tmp_path}/a; {waits.format(tmp_path, 'b', 'a2')}")
    b = lane("b", f"{waits.format(tmp_path, 'a', 'b')}")
    after = lane("after", f"test -e {tmp_path}/a2")
    code, said = gate(phase(left=[a, after], right=[b]))
    assert code == 0, said


def test_a_lane_that_fails_is_printed_whole_and_what_did_not_run_is_named(gate):
    code, said = gate(
        phase(a=[lane("bad", "seq 100; exit 7"), lane("behind", "true")], b=[lane("good", "sleep 0.3")])
        + phase(c=[lane("later", "true")])
    )
    assert code == 1
    assert re.search(r"=== bad: FAILED \(exit 7\) in 0 s\n1\n2\n3\n", said)
    assert "good: passed" in said, "what runs at the same time is finished"
    assert "behind: NOT RUN" in said
    assert "later: NOT RUN" in said
    assert said.splitlines()[-1] == "=== NOT PASSED: bad, behind, later"


def test_a_lane_over_its_budget_is_named_and_passes(gate):
    code, said = gate(phase(a=[lane("slow", "sleep 0.3", budget_s=0.1)]))
    assert code == 0
    assert "OVER BUDGET: slow took " in said


def test_a_lane_beyond_its_limit_is_ended_and_fails(gate):
    code, said = gate(phase(a=[lane("stuck", "sleep 600", more=", limit_s = 0.3")]))
    assert code == 1
    assert "stuck: FAILED (ended after 0 s)" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_every_process_of_every_lane(tmp_path, number):
    """One lane's process has a session of its own, another's heeds no Ctrl-C."""
    pids = tmp_path / "pids"
    marked = f"echo $$ >>{pids}; exec sleep 600"
    apart = f"setsid bash -c {shlex.quote(marked)} & {marked}"
    (tmp_path / "plans.toml").write_text(
        phase(a=[lane("apart", apart)], b=[lane("deaf", f"trap '' INT; {marked}")]), encoding="utf-8"
    )
    program = "import runpy, sys; lanes = runpy.run_path(sys.argv[1]); sys.exit(lanes['main'](*sys.argv[2:]))"
    words = [str(ROOT / ".ci/lanes.py"), "gate", str(tmp_path / "plans.toml"), str(tmp_path / "out")]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "LANES_GRACE_S": "0.5"},
    )
    until(lambda: pids.exists() and len(pids.read_text().split()) == 3, "three processes")
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "=== NOT PASSED: apart, deaf" in said
    assert [pid for pid in map(int, pids.read_text().split()) if lanes.alive(pid)] == []


def test_the_plans_name_what_there_is():
    plans = tomllib.loads((ROOT / ".ci" / "lanes.toml").read_text(encoding="utf-8"))
    for plan in plans.values():
        some = [lanes.Lane(**one) for part in plan for queue in part.values() for one in queue]
        assert len({one.lane for one in some}) == len(some)
        assert all(one.budget_s < one.limit_s for one in some)
