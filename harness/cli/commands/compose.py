"""`bench compose`: the Compose files for use by hand, from the definitions."""

import argparse
from pathlib import Path

from harness.errors import ExitCode, SpecError, writing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="BACKEND", help="backends (default: every one with an image)"
    )
    parser.add_argument(
        "--write", type=Path, metavar="DIR", help="write all files to DIR (default: print compose.yaml)"
    )


def main(arguments: argparse.Namespace) -> int:
    from harness.engines.start.containers.files import MAIN, compose_files
    from harness.spec.backend_refs import load_backend
    from harness.spec.files import names

    chosen = arguments.names or names("backends")
    definitions = [load_backend(name) for name in chosen]
    without = [definition.name for definition in definitions if definition.compose is None]
    if arguments.names and without:
        raise SpecError(f"backend '{without[0]}' has no [compose] and no image", where="bench compose")
    files = compose_files(definitions)
    if arguments.write is None:
        print(files[MAIN], end="")
        return ExitCode.OK
    for name, text in files.items():
        path = arguments.write / name
        with writing(f"--write {arguments.write}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        print(path)
    return ExitCode.OK
