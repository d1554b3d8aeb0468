"""A kit at work on the machine without network: `python3 KIT/run.py`. The standard library only."""

import argparse
import contextlib
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from harness.host import kit_env
from harness.host.kit_env import KitError
from harness.kit import compile as compiling
from harness.kit import parts
from harness.kit.steps import STEPS, Step

_ABOUT = """Runs bench out of a kit, without a network. What it measures comes to --out, packed small.

what to run:
  -- COMMAND …   any command of bench, as `-- run --scenario shared-prefix --backends llamacpp`
  build          compile llama-server, and wait for it
  look           step 1: what the machine has, the GPU tests, `bench doctor`, transformers; compiles meanwhile
  small          step 2: llama.cpp and transformers on random weights of a 1B shape
  large          step 3: the same on an 8B shape
Each step ends within --minutes."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line and a hint, as of every command of bench."""
        print(f"error: {message}\nhint: --help shows what {self.prog} takes", file=sys.stderr)
        sys.exit(2)


def main(words: Sequence[str]) -> int:
    """`words`: the kit's folder, and the arguments. Returns the exit code."""
    try:
        if not {"-h", "--help"}.intersection(words):
            kit_env.facts(Path(words[0]))  # its lack explains more than that of a flag
        return _run(*_parsed(words))
    except (KitError, parts.PartsError, OSError, subprocess.SubprocessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _parsed(words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    own = list(words)
    command = own[own.index("--") + 1 :] if "--" in own else []
    parser = _Parser(
        prog="run.py",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("kit", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, required=True, help="folder for the packed results")
    parser.add_argument("--work", type=Path, help="folder for environments and weights (default: KIT-work)")
    parser.add_argument("--max-mb", type=_amount, default=16, help="largest file in --out (default: 16)")
    if not command:
        parser.add_argument("--minutes", type=_amount, default=9, help="limit of a step (default: 9)")
        parser.add_argument("--model", help="in place of the step's own")
        parser.add_argument("step", choices=("build", *STEPS))
    return parser.parse_args(own[: own.index("--")] if "--" in own else own), command


def _amount(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 2**31:  # NaN is none of it
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return value


def _run(given: argparse.Namespace, command: list[str]) -> int:
    began = time.monotonic()
    kit = given.kit.resolve()
    check(kit)
    work = (given.work or kit.with_name(f"{kit.name}-work")).resolve()
    out = given.out.resolve()
    for folder in (work, out):
        folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(kit_env.using(kit, os.environ))
    os.environ["BENCH_CACHE"] = str(work / "cache")
    os.environ["PATH"] = f"{compiling.program(work).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    name = re.sub(r"\W", "", command[0]) if command else given.step
    if name == "build" and not command:
        print(f"llama.cpp: {compiling.start(kit, work)}", flush=True)
        state = compiling.wait(work, 60 * given.minutes)
        print(f"llama.cpp: {state}: {compiling.progress(work)}")
        return 0 if state == "built" else 3
    python = kit_env.make(kit, "bench", work / "bench")
    results = work / f"{name}-{time.strftime('%Y%m%dT%H%M%S')}"
    results.mkdir(mode=0o700)  # prompts and answers
    if command:
        code = _ended([str(python), "-P", "-m", "harness", *command], results)
    else:
        step = Step(kit, work, results, python, began + 60 * given.minutes, given.model)
        try:
            code = STEPS[name](step)
        except KeyboardInterrupt:
            step.say("interrupted")
            code = 130
    if not any(results.iterdir()):
        results.rmdir()
        return code
    packed = parts.split(results, out / f"{results.name}.tar.xz", given.max_mb, pack=True)
    size = sum(part.stat().st_size for part in packed) / parts.MB
    print(f"files packed: {len(packed)}, {size:.1f} MB: {packed[0]}")
    print(f"carry them back, then: bench kit join {results.name}.tar.xz.* --out results")
    return code


def _ended(command: Sequence[str], folder: Path) -> int:
    """The exit code of bench. The terminal sends Ctrl-C to it as well: it stores what it has measured."""
    with subprocess.Popen(command, cwd=folder) as bench:
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                return bench.wait()


def _minor(version: str) -> int:
    return int(version.split(".")[1])


def check(kit: Path) -> None:
    """Raises KitError unless it is whole and made for this machine."""
    facts = kit_env.facts(kit)
    target, glibc = str(facts["target"]), str(facts.get("glibc", ""))
    here = f"{sys.platform}-{platform.machine()}-py{sys.version_info[0]}{sys.version_info[1]}"
    if target != here:
        raise KitError(f"the kit is for {target}, and this is {here}: make one with --for {here}")
    library, version = platform.libc_ver()
    if library == "glibc" and glibc and _minor(version) < _minor(glibc):
        raise KitError(f"the kit is for glibc {glibc} or newer, and this is {version}: make one with --glibc")
    try:
        for file, state in parts.states(kit / parts.SUMS):
            name = file.relative_to(kit)
            if state == "missing":
                raise KitError(f"the kit is not whole: {name} is missing")
            if state == "damaged":
                raise KitError(f"the kit is damaged: {name} is not what was packed; carry it again")
    except (OSError, parts.PartsError) as error:
        raise KitError(f"the kit is not whole: {error}") from None
