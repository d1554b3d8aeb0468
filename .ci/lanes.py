"""Runs one plan of .ci/lanes.toml: `python3 .ci/lanes.py gate`.

The output of a lane goes to build/lanes and is printed when the lane ends: whole where it failed, its last
lines where it passed. A phase begins when every lane of the one before it has passed. What was not run is
named, and what is still running is ended, with all that it started, on Ctrl-C.
"""

import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHOWN = 25  # lines of a lane that passed
LIMIT_S = 2700  # of a lane that says none
GRACE_S = float(os.environ.get("LANES_GRACE_S", 15))  # from Ctrl-C to SIGKILL
EVERY_S = 0.1
YIELDING = ("nice", "-n", "19")
_COUNTED = re.compile(r"\b\d+ (?:passed|failed|skipped|errors?)\b.* in [\d.]+s")
_PASSED = re.compile(r"\b(\d+) passed\b")
_AGAIN = re.compile(r"Again, (\w+):")  # what the Makefile prints before a second try


@dataclass
class Lane:
    lane: str
    run: str
    budget_s: float
    limit_s: float = LIMIT_S
    yields: bool = False  # the CPU to the lanes next to it
    state: str = "NOT RUN"
    took_s: float = 0.0
    cpu_s: float = 0.0  # of all that it waited for
    output: Path = Path()

    def begin(self, folder):
        self.output = folder / f"{re.sub('[^a-z0-9]+', '-', self.lane.lower())}.log"
        print(f"=== {self.lane}: begins at {time.strftime('%T')}: {self.run}", flush=True)
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(
                [*YIELDING * self.yields, "bash", "-c", self.run],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if self.yields:
            with suppress(OSError):  # where each session has a share of its own, whatever is nice within it
                Path(f"/proc/{self.process.pid}/autogroup").write_text("19")
        self.began, self.state = time.monotonic(), "INTERRUPTED"

    def ended(self):
        """Whether the lane has ended; one that is beyond its limit is ended here."""
        self.took_s = time.monotonic() - self.began
        code = self.code(os.WNOHANG)
        if code is None and self.took_s > self.limit_s:
            end(self.process.pid)
            code = self.code()
            self.state = f"FAILED (ended after {self.limit_s:.0f} s)"
        elif code is not None:
            self.state = "passed" if code == 0 else f"FAILED (exit {code})"
        return code is not None

    def code(self, options=0):
        """The exit code once there is one, with the CPU seconds; None before, with the option WNOHANG."""
        pid, status, used = os.wait4(self.process.pid, options)
        if not pid:
            return None
        self.cpu_s = used.ru_utime + used.ru_stime
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return self.process.returncode

    def lines(self):
        if not self.output.name:  # not begun
            return []
        return self.output.read_text(encoding="utf-8", errors="replace").splitlines()

    def tell(self):
        lines = self.lines()
        if self.state == "passed" and len(lines) > SHOWN:
            lines = [f"[{len(lines) - SHOWN} lines before these: {self.output}]", *lines[-SHOWN:]]
        print(f"=== {self.lane}: {self.state} in {self.took_s:.0f} s", *lines, sep="\n", flush=True)

    def tries(self):
        """Lines in which pytest counts each try; a second try begins with how it was made."""
        counted, how = {}, ""
        for line in self.lines():
            if again := _AGAIN.fullmatch(line):
                how = f"again {again[1]}: "
            elif _COUNTED.search(line):
                counted[how] = how + line.strip(" =")
        return list(counted.values())

    def row(self):
        """A line of the table at the end."""
        seconds = f"{self.took_s:6.0f} s of {self.budget_s:5.0f} s {self.cpu_s:6.0f} s"
        return f"{seconds}  {self.lane}: {self.state}  {'; '.join(self.tries())}".rstrip()

    def passed(self):
        """How many tests passed in each try."""
        found = [_PASSED.search(counted) for counted in self.tries()]
        return [int(match[1]) if match else 0 for match in found]


def descendants(pid):
    """Ids of the processes that this one started, directly or not, the nearest first."""
    children = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:  # ended meanwhile
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    found, ahead = [], deque([pid])
    while ahead:
        ahead.extend(children.get(ahead[0], ()))
        found.extend(children.get(ahead.popleft(), ()))
    return found


def end(pid):
    """Ends the descendants of a process, and a lane itself, as Ctrl-C would, so that fixtures clean up.

    What is left after the grace, or began in it, is killed.
    """
    found = dict.fromkeys(descendants(pid) + [pid] * (pid != os.getpid()))
    for number in (signal.SIGINT, signal.SIGKILL):  # a kill, too, takes effect when they next run
        send(found, number)
        until = time.monotonic() + GRACE_S
        while any(map(alive, found)) and time.monotonic() < until:
            time.sleep(EVERY_S)
            found |= dict.fromkeys(descendants(pid))


def send(pids, number):
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def run_phase(queues, folder):
    """The queues at the same time, the lanes of each in turn; a lane that failed ends its queue."""
    waiting, running = [deque(queue) for queue in queues], {}
    while any(waiting) or running:
        for number, queue in enumerate(waiting):
            if queue and number not in running:
                running[number] = queue.popleft()
                running[number].begin(folder)
        time.sleep(EVERY_S)
        for number, lane in list(running.items()):
            if lane.ended():
                lane.tell()
                del running[number]
                if lane.state != "passed":
                    waiting[number].clear()


def run_phases(phases, folder):
    for phase in phases:
        run_phase(phase, folder)
        if any(lane.state != "passed" for queue in phase for lane in queue):
            return


def report(lanes, took_s):
    print("\n=== seconds, budget on two calm cores, CPU seconds, lane")
    print(*(lane.row() for lane in lanes), sep="\n")
    for lane in lanes:
        if lane.took_s > lane.budget_s:
            print(f"OVER BUDGET: {lane.lane} took {lane.took_s:.0f} s of {lane.budget_s:.0f} s")
    bad = [lane.lane for lane in lanes if lane.state != "passed"]
    passed = [lane.passed() for lane in lanes]
    again = sum(sum(counts[1:]) for counts in passed)
    print(
        f"=== {sum(map(sum, passed))} passed in {took_s:.0f}s"
        + f" ({again} of them in a second try)" * bool(again)
    )
    if bad:
        print(f"=== NOT PASSED: {', '.join(bad)}")
    return 1 if bad else 0


def main(name, plans=ROOT / ".ci" / "lanes.toml", folder=ROOT / "build" / "lanes"):
    phases = [
        [[Lane(**lane) for lane in queue] for queue in phase.values()]
        for phase in tomllib.loads(Path(plans).read_text(encoding="utf-8"))[name]
    ]
    lanes = [lane for phase in phases for queue in phase for lane in queue]
    Path(folder).mkdir(parents=True, exist_ok=True)
    # SIGINT too: a shell starts what runs in the background with SIGINT ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    # The lanes call make themselves, and have nothing to do with the jobs of the make that called this.
    for inherited in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        os.environ.pop(inherited, None)
    began = time.monotonic()
    try:
        run_phases(phases, Path(folder))
    except KeyboardInterrupt:
        print("=== interrupted", flush=True)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        end(os.getpid())
        report(lanes, time.monotonic() - began)
        return 130
    return report(lanes, time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
