"""`bench compose`: the Compose files for use by hand, from the definitions."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from harness.cli.display.result import Result
from harness.cli.typed import Flags
from harness.errors import SpecError, writing


@dataclass(frozen=True)
class Options(Flags):
    names: tuple[str, ...]
    write: Path | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="BACKEND", help="backends (default: every one with an image)"
    )
    parser.add_argument(
        "--write", type=Path, metavar="DIR", help="write all files to DIR (default: print compose.yaml)"
    )


def main(given: Options) -> Result:
    from harness.engines.start.containers.files import MAIN, compose_files
    from harness.spec.backend_refs import load_backend
    from harness.spec.files import names

    chosen = given.names or names("backends")
    definitions = [load_backend(name) for name in chosen]
    without = [definition.name for definition in definitions if definition.compose is None]
    if given.names and without:
        raise SpecError(f"backend '{without[0]}' has no [compose] and no image", where="bench compose")
    files = compose_files(definitions)
    if given.write is None:
        return Result(files[MAIN])
    for name, text in files.items():
        path = given.write / name
        with writing(f"--write {given.write}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return Result([str(given.write / name) for name in files])
