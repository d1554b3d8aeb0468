"""The archive of llama.cpp's sources: one in the cache, of whole files, whoever asks for it meanwhile."""

import io
import shutil
import tarfile

import pytest

from harness.errors import SetupError
from harness.host import paths
from harness.kit import source
from harness.kit.parts import sum_of


@pytest.fixture
def download(tmp_path, monkeypatch):
    """What pip does in place of a download: `download.then()` after the file is there."""
    package = tmp_path / "package.tar.gz"
    with tarfile.open(package, "w:gz") as whole:
        for name in ("CMakeLists.txt", "src/llama.cpp", "docs/build.md"):
            info = tarfile.TarInfo(f"xllamacpp-1/vendor/llama.cpp/{name}")
            info.size = 3
            whole.addfile(info, io.BytesIO(b"abc"))

    class Pip:
        then = staticmethod(lambda: None)
        count = 0

        def __init__(self, *_where):
            pass

        def run(self, _doing, *arguments):
            Pip.count += 1
            folder = arguments[arguments.index("--dest") + 1]
            shutil.copy(package, f"{folder}/xllamacpp-1.tar.gz")
            Pip.then()

    monkeypatch.setattr(source, "Pip", Pip)
    monkeypatch.setattr(source, "SHA256", sum_of(package))
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return Pip


def packed(tmp_path, say=print):
    return source.llama_cpp(tmp_path / "kit.log", say)


def test_only_what_a_server_is_made_of_is_packed_and_once(download, tmp_path):
    with tarfile.open(packed(tmp_path)) as archive:
        assert archive.getnames() == ["llama.cpp/CMakeLists.txt", "llama.cpp/src/llama.cpp"]
    assert packed(tmp_path) == packed(tmp_path)
    assert download.count == 1


def test_a_second_kit_at_once_waits_for_the_archive_of_the_first(download, tmp_path):
    def says(line):
        raise SetupError(line)

    def second():
        with pytest.raises(SetupError, match="another bench that prepares the sources"):
            packed(tmp_path, says)

    download.then = staticmethod(second)
    assert tarfile.is_tarfile(packed(tmp_path))
    assert download.count == 1


def test_an_archive_that_was_broken_off_is_made_again(download, tmp_path, monkeypatch):
    right = source.SHA256
    monkeypatch.setattr(source, "SHA256", "0" * 64)
    with pytest.raises(SetupError, match="another check sum"):
        packed(tmp_path)
    assert not [path for path in (paths.cache_dir() / "kits").iterdir() if path.is_dir()]
    monkeypatch.setattr(source, "SHA256", right)
    assert packed(tmp_path).is_file()
