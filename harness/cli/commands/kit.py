"""`bench kit`: everything for a machine without network, in one folder."""

import argparse
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from harness.cli.display.output import progress_display
from harness.cli.display.result import Result, put
from harness.cli.flags import options
from harness.cli.typed import Flags
from harness.errors import SetupError, SpecError, reason
from harness.kit.target import GLIBC
from harness.model.numbers import counted


@dataclass(frozen=True)
class Options(Flags):
    action: str
    out: Path = Path()  # of make and join, as the next one
    json: bool = False
    target: str = ""  # of make, as the next five
    glibc: str = GLIBC
    engines: str = ""
    model: tuple[str, ...] = ()
    have: Path | None = None
    max_mb: float | None = None
    kit: Path = Path()  # of run, as the next one
    rest: tuple[str, ...] = ()
    parts: tuple[Path, ...] = ()  # of join


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    make = actions.add_parser("make", help="collect packages, sources and models")
    make.add_argument(
        "--for",
        dest="target",
        required=True,
        metavar="TARGET",
        help="processor and Python of the machine, such as linux-x86_64-py312",
    )
    make.add_argument(
        "--glibc",
        default=GLIBC,
        metavar="2.N",
        help="oldest C library there, as `ldd --version` says: vLLM needs 2.31, SGLang 2.34 "
        "(default: %(default)s)",
    )
    make.add_argument(
        "--engines", default="", metavar="LIST", help="engines to collect, such as llamacpp,transformers"
    )
    make.add_argument(
        "--model", action="append", default=[], metavar="NAME|PATH", help="model to collect (repeatable)"
    )
    make.add_argument(
        "--have", type=Path, metavar="FILE", help="output of `pip list` on the machine: packages to leave out"
    )
    make.add_argument("--max-mb", type=float, metavar="N", help="write the kit as parts of at most N MB too")
    make.add_argument("--out", type=Path, required=True, metavar="KIT", help="folder to write the kit to")
    options.add_json(make)
    run = actions.add_parser("run", help="run bench out of a kit, without network")
    run.add_argument("kit", type=Path, metavar="KIT", help="folder of the kit")
    run.add_argument(
        "rest", nargs=argparse.REMAINDER, metavar="ARGUMENTS", help="arguments of `python3 KIT/run.py`"
    )
    join = actions.add_parser("join", help="check and unpack parts")
    join.add_argument(
        "parts",
        nargs="+",
        type=Path,
        metavar="PART",
        help="parts of kits or results, with their lists of check sums",
    )
    join.add_argument(
        "--out", type=Path, default=Path(), metavar="FOLDER", help="folder to unpack into (default: here)"
    )
    options.add_json(join)


def main(given: Options) -> Result:
    return {"make": _make, "run": _run, "join": _join}[given.action](given)


def _run(given: Options) -> Result:
    from harness.kit import box

    return Result(code=box.main([str(given.kit), *given.rest]))


def _join(given: Options) -> Result:
    from harness.kit.parts import PartsError, join

    try:
        unpacked = [str(path) for path in join(given.parts, given.out)]
    except PartsError as error:
        raise SetupError(str(error), where="bench kit join") from None
    except OSError as error:
        where = f"bench kit join {error.filename}" if error.filename else "bench kit join"
        raise SetupError(reason(error), where=where) from None
    return Result(unpacked, lambda: {"unpacked": unpacked})


def _make(given: Options) -> Result:
    import shutil

    from harness.kit import parts
    from harness.kit.make import Asked, listing, make

    if given.max_mb is not None and not given.max_mb > 0:
        raise SpecError("must be above 0", where=f"--max-mb {given.max_mb:g}")
    engines = [name.strip() for name in given.engines.split(",") if name.strip()]
    asked = Asked(given.target, given.glibc, engines, list(given.model), given.have, given.out)
    with closing(progress_display()) as ui:
        kit = make(asked, ui.stage)
    put(Result([f"{kit}: for {given.target}", *listing(kit)]), as_json=given.json)  # to split it takes long
    lines, written = list[str](), list[Path]()
    if given.max_mb:
        archive = kit.with_name(f"{kit.name}.tar")
        written = parts.split(kit, archive, given.max_mb)
        shutil.copy(parts.__file__, kit.with_name("join.py"))
        lines += [
            f"{counted(len(written), 'part')} of at most {given.max_mb:g} MB: {written[0]} …",
            f"join them with `python3 join.py`, which lies next to them as {archive.name}.sha256 does",
        ]
    lines.append(f"there: python3 {kit.name}/run.py --help")
    return Result(lines, lambda: {"kit": str(kit), "parts": [str(part) for part in written]})
