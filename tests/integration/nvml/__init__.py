"""NVML without a GPU: a stub of its library, built on the spot, answers the real pynvml."""

import subprocess
from pathlib import Path

STUB = Path(__file__).with_name("stub.c")


def build(folder: Path) -> Path:
    library = folder / "libnvidia-ml.so.1"
    command = ["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", str(library), str(STUB)]
    subprocess.run(command, check=True)
    return library


class Machine:
    """The state of the stub's machine, changed while it is looked at; stub.c names the files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def set(self, name: str, text: str = "") -> None:
        partial = self._folder / f".{name}"
        partial.write_text(text)
        partial.replace(self._folder / name)

    def clear(self, name: str) -> None:
        (self._folder / name).unlink()
