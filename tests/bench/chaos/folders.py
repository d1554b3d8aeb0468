"""Run folders of a stranger, each through every command that reads one.

Nothing outside the folder may change, nobody may be contacted, no secret may be printed. A command ends
soon, in little memory, with its figures or one error.
"""

import argparse
import hashlib
import os
import random
import re
import resource
import shutil
import signal
import socket
import stat
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness.cli.main import main
from harness.store import seal
from tests.bench.chaos.cheaper import cheaper
from tests.bench.chaos.hostile import KINDS, Place, seal_again
from tests.bench.chaos.page import Table
from tests.factories.runs import SMALL, make_run
from tests.factories.sockets import accepting

SECRET = "sk-Qm7pZ2vL9rT4xW8c"
COMMANDS: Mapping[str, Sequence[str]] = {
    "verify": ["verify", "RUN"],
    "report": ["report", "RUN"],
    "compare": ["compare", "RUN", "OTHER"],
    "claims": ["claims", "RUN"],
    "history": ["history", "RUN", "--out", "OUT"],
    "export": ["export", "RUN", "--what", "requests"],
    "query": ["query", "select * from cells, requests limit 5", "--out", "OUT"],
    "list": ["list", "runs", "--out", "OUT"],
    "trace": ["run", "--trace", "RUN", "--backends", "vllm", "--launch", "simulate", "--dry-run"],
    "resume": ["resume", "RUN", "--no-report"],
}
LIMIT_S, MOST_BYTES = 20.0, 500 << 20
WRONG = ("outside", "contact", "secret", "hang", "memory", "traceback", "raw", "exit code")
_RAW = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]")
_CODES = (0, 1, 2, 3, 4)


@dataclass(frozen=True)
class Outcome:
    """`seconds` by the clock, of a machine that others may use."""

    code: int
    seconds: float
    memory_bytes: int
    said: bytes


@dataclass
class Tally:
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    memory_bytes: int = 0

    @property
    def cells(self) -> list[str]:
        counts = [f"{self.counts[one]:,}" for one in ("folders", "commands", "refused", *WRONG)]
        return [*counts, f"{self.seconds:.1f}", f"{self.memory_bytes >> 20}"]


def folders(arguments: argparse.Namespace) -> int:
    """`--only`: a kind of hostility."""
    kinds = [name for name in KINDS if arguments.only in name]
    began, tallies = time.monotonic(), {name: Tally() for name in kinds}
    with tempfile.TemporaryDirectory(prefix="chaos-") as room, _listener() as (address, heard):
        os.environ |= {
            "BENCH_CACHE": f"{room}/cache",
            "HOME": f"{room}/home",
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }
        cheaper()
        _in_child(lambda: _make_whole(Path(room)))
        (whole,) = (Path(room) / "template").iterdir()
        for number in range(arguments.count):
            if time.monotonic() > began + arguments.seconds:
                break
            kind = kinds[number % len(kinds)]
            case = random.Random(f"{arguments.seed} {number}")
            tallies[kind].counts["folders"] += 1
            for story in _case(Path(room), whole, kind, case, address, heard, tallies[kind]):
                print(f"{kind}, case {number}: {story}", file=sys.stderr, flush=True)
    columns = ("folder", "folders", "commands", "refused", *WRONG, "longest, s", "most, MiB")
    rows = {name: tally.cells for name, tally in tallies.items() if tally.counts["folders"]}
    Table("folders", columns, tuple(KINDS)).publish(rows, arguments)
    wrong = sum(tally.counts[one] for tally in tallies.values() for one in WRONG)
    return 1 if wrong or not rows else 0


def _in_child(work: Callable[[], None]) -> None:
    """DuckDB starts threads, and this process is forked for each command: it must never use DuckDB itself."""
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _make_whole(room: Path) -> None:
    """A run to be spoilt, and the home of the user who gets it."""
    home = room / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".bashrc").write_text("echo mine\n")
    (home / ".ssh" / "authorized_keys").write_text(f"ssh-ed25519 {SECRET}\n")
    (home / "pictures").mkdir()
    for name in ("a.png", "b.svg", "table.txt"):
        (home / "pictures" / name).write_text("a picture of mine")
    made = make_run(room / "template", SMALL)
    seal_again(made.path)
    shutil.copytree(made.path, home / "run")


def _case(
    room: Path, whole: Path, kind: str, rng: random.Random, address: str, heard: list[bytes], tally: Tally
) -> Iterator[str]:
    out = room / "results"
    shutil.rmtree(out, ignore_errors=True)
    run = out / (whole.name if rng.random() < 0.8 else rng.choice(["run[1]", "a*", "seq=5", "-x", "a'b"]))
    shutil.copytree(whole, run)
    (run / seal.FILE).unlink() if rng.random() < 0.3 else None
    sealed = rng.random() < 0.5
    _in_child(lambda: _spoil(kind, Place(run, room / "home", address), rng, sealed=sealed))
    before = _snapshot(room, run)
    for name, words in COMMANDS.items():
        heard.clear()
        tally.counts["commands"] += 1
        done = _run(words, run, whole, room)
        tally.seconds = max(tally.seconds, done.seconds)
        tally.memory_bytes = max(tally.memory_bytes, done.memory_bytes)
        tally.counts["refused"] += done.code == 2
        after = _snapshot(room, run)
        changed = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
        for what in _judged(done, changed, heard, is_data=name == "export"):
            tally.counts[what] += 1
            yield f"{name}: {what}: {done.code} {done.seconds:.1f} s {changed[:3]} {done.said[-400:]!r}"
        before = after


def _spoil(kind: str, place: Place, rng: random.Random, *, sealed: bool) -> None:
    KINDS[kind](place, rng)
    if sealed:
        seal_again(place.run)


def _judged(done: Outcome, changed: Sequence[str], heard: Sequence[bytes], *, is_data: bool) -> Iterator[str]:
    """`is_data`: rows for a program, which have every character that was recorded."""
    wrong = {
        "outside": bool(changed),
        "contact": bool(heard),
        "secret": SECRET.encode() in done.said,
        "hang": done.seconds > LIMIT_S,
        "memory": done.memory_bytes > MOST_BYTES,
        "traceback": b"Traceback" in done.said,
        "raw": not is_data and _RAW.search(done.said) is not None,
        "exit code": done.code not in _CODES and done.seconds <= LIMIT_S,
    }
    return (name for name, is_wrong in wrong.items() if is_wrong)


def _run(words: Sequence[str], run: Path, whole: Path, room: Path) -> Outcome:
    """In a child that was forked, with everything imported: a command costs its own work alone."""
    places = {"RUN": str(run), "OTHER": str(whole), "OUT": str(run.parent)}
    said = room / "said"
    began = time.monotonic()
    child = os.fork()
    if not child:
        _become(said, room / "work", [places.get(word, word) for word in words])
    status, usage = _ended(child, began + 2 * LIMIT_S)
    return Outcome(
        os.waitstatus_to_exitcode(status), time.monotonic() - began, usage.ru_maxrss << 10, said.read_bytes()
    )


def _become(said: Path, work: Path, words: list[str]) -> None:
    """Never returns."""
    code = 99
    try:
        output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        work.mkdir(exist_ok=True)
        os.chdir(work)
        code = main(words)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 98
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _ended(child: int, until: float) -> tuple[int, resource.struct_rusage]:
    while time.monotonic() < until:
        pid, status, usage = os.wait4(child, os.WNOHANG)
        if pid:
            return status, usage
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    _pid, status, usage = os.wait4(child, 0)
    return status, usage


def _snapshot(room: Path, run: Path) -> dict[str, tuple[object, ...]]:
    """Everything but the folder itself, the cache and what the history of the results gains."""
    found: dict[str, tuple[object, ...]] = {}
    for top in ("home", "template", "work", "results"):
        for folder, folders_in, files in os.walk(room / top):
            here = Path(folder)
            folders_in[:] = [name for name in folders_in if here / name != run and name != "history"]
            for name in (*folders_in, *files):
                path = here / name
                status = path.lstat()
                is_file = stat.S_ISREG(status.st_mode)
                digest = hashlib.sha256(path.read_bytes()).hexdigest() if is_file else ""
                links = str(path.readlink()) if stat.S_ISLNK(status.st_mode) else ""
                found[str(path.relative_to(room))] = (status.st_mode, digest, links)
    return found


@contextmanager
def _listener() -> Iterator[tuple[str, list[bytes]]]:
    """An address, and what anybody sent there."""
    heard: list[bytes] = []

    def listen(connection: socket.socket, _number: int) -> None:
        with connection:
            connection.settimeout(1)
            try:
                heard.append(connection.recv(65536))
            except OSError:
                heard.append(b"")

    with accepting(listen) as address:
        yield address, heard
