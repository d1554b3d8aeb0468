"""`bench init`: a file to start from, in the place where `bench` finds it by name."""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

from harness.cli.display.result import Result
from harness.cli.flags import options
from harness.cli.typed import Flags
from harness.errors import SpecError, page_address, writing
from harness.host import paths

EPILOG = """A scenario goes to ./workloads/NAME.toml, a backend to ./backends/NAME.toml: bench run in this
directory finds them by name. Nothing is overwritten."""

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]*")

_KINDS: dict[str, paths.Kind] = {"scenario": "workloads", "backend": "backends"}


@dataclass(frozen=True)
class Options(Flags):
    kind: str
    name: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = f"kind of file to write: {' or '.join(_KINDS)}"
    parser.add_argument("kind", choices=tuple(_KINDS), metavar="KIND", help=kinds)
    parser.add_argument("name", metavar="NAME", help="name of the new file: letters, digits, - and _")
    options.add_json(parser)


def main(given: Options) -> Result:
    folder, name = _KINDS[given.kind], given.name
    if not _NAME.fullmatch(name):
        raise SpecError(f"{name!r} is not made of letters, digits, - and _ alone", where="NAME")
    path = Path(folder) / f"{name}.toml"
    text = Path(__file__).with_name(f"init_{given.kind}.toml").read_text(encoding="utf-8")
    pages = {"{keys}": page_address("scenario"), "{engines}": page_address("adding-an-engine")}
    for mark, value in {"{name}": name, "{path}": str(path), **pages}.items():
        text = text.replace(mark, value)
    if known := paths.definition(folder, name):
        raise SpecError(f"there is a {given.kind} '{name}' already", where=str(known),
                        hint="choose another name; nothing was written")  # fmt: skip
    created = False
    with writing(str(path)):
        try:
            path.parent.mkdir(exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                created = True
                file.write(text)
        except FileExistsError:
            raise SpecError("exists already", where=str(path), hint="nothing was written") from None
        except OSError:
            if created:  # half a file would be found by its name
                path.unlink(missing_ok=True)
            raise
    return Result(f"{path}: written; `bench validate {path}` checks it", lambda: {"file": str(path)})
