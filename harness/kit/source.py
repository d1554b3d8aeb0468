"""llama.cpp's sources out of the package that ships them, less what a CUDA or CPU server is not made of."""

import io
import re
import sys
import tarfile
from pathlib import Path

from harness.engines.provide.pip import Pip
from harness.engines.provide.shared_folders import Say, filled
from harness.errors import SetupError
from harness.host import paths
from harness.kit.compile import ARCHIVE, PACKAGE
from harness.kit.parts import sum_of
from harness.spec.files import fingerprint

SDIST = "==".join(PACKAGE.rsplit("-", 1))
SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"  # of its file
_INSIDE = re.compile(r"[^/]+/vendor/llama\.cpp/(.+)")
# 77 MB of vocabularies, pages, back ends for other devices and the web page of the server.
_LEFT_OUT = re.compile(
    r"(docs|models|media|benches|tests|examples|conversion|gguf-py|skills|requirements|pocs|ci|grammars|\.\w+)/"
    r"|scripts/(?!ui-assets\.cmake)"
    r"|ggml/src/ggml-(openvino|webgpu|et|metal|hexagon|sycl|vulkan|opencl|cann|zdnn|virtgpu|zendnn|hip|musa|rpc)/"
    r"|tools/ui/(src|tests|static|\.storybook|package-lock)|tools/(server|mtmd)/(tests|bench|themes)/"
    r"|.*\.(md|svg|png|jpe?g|mp[34])$"
)


def llama_cpp(log: Path, say: Say) -> Path:
    """The archive in the cache, made where it is absent. Raises SetupError."""
    folder = paths.cache_dir() / "kits" / fingerprint([SHA256, _LEFT_OUT.pattern])[:12]
    filled(folder, "the sources of llama.cpp", lambda target: _pack(target, log, say), say)
    return folder / ARCHIVE


def _pack(folder: Path, log: Path, say: Say) -> None:
    # pip asks the package for its metadata, for which its build tools are fetched too.
    flags = ("--no-deps", "--no-binary", ":all:", "--dest", str(folder))
    Pip(Path(sys.executable), log, say, "llama.cpp").run(f"downloading {SDIST}", "download", *flags, SDIST)
    (sdist,) = folder.glob("*.tar.gz")
    if sum_of(sdist) != SHA256:
        raise SetupError(f"{SDIST} has another check sum than {SHA256}", where=str(sdist))
    with tarfile.open(sdist) as whole, tarfile.open(folder / ARCHIVE, "w:xz") as archive:
        for member in whole:
            found = _INSIDE.fullmatch(member.name)
            content = whole.extractfile(member) if found and member.isfile() else None
            if found is None or content is None or _LEFT_OUT.match(found[1]):
                continue
            info = tarfile.TarInfo(f"llama.cpp/{found[1]}")
            info.size, info.mode, info.mtime = member.size, member.mode, member.mtime
            archive.addfile(info, io.BytesIO(content.read()))
    sdist.unlink()
