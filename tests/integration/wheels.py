"""Tiny wheels, and a pip that sees nothing else."""

import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def make_wheel(
    folder: Path,
    name: str,
    version: str,
    files: Mapping[str, bytes] | None = None,
    requires: Sequence[str] = (),
) -> Path:
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    content = {
        **(files or {f"{name}.py": f"VERSION = {version!r}\n".encode()}),
        f"{info}/METADATA": (metadata + "".join(f"Requires-Dist: {line}\n" for line in requires)).encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    content[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*content, f"{info}/RECORD"]).encode()
    folder.mkdir(exist_ok=True)
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, data in content.items():
            archive.writestr(path, data)
    return wheel


def only_these(monkeypatch, folder: Path) -> None:
    """pip sees no index, whatever this machine's settings say."""
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))


def no_network(monkeypatch) -> None:
    """An index at an address that refuses."""
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
