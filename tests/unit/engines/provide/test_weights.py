"""Weights that lie in several files are known, copied and read as all of them."""

from harness.engines.provide.models import local_model
from harness.engines.provide.weights import digest, pieces
from harness.engines.start.command import write_files
from harness.kit import make
from harness.spec.models import Track

NAMES = ["Big-00001-of-00002.gguf", "Big-00002-of-00002.gguf"]


def split(folder, last="b"):
    write_files(folder, {NAMES[0]: "GGUFa", NAMES[1]: last, "Big-00001-of-00003.gguf": "c", "Big.gguf": "d"})
    return folder / NAMES[0]


def test_a_split_file_is_known_by_all_of_its_pieces(tmp_path):
    first = split(tmp_path / "a")
    assert [piece.name for piece in pieces(first)] == NAMES
    assert pieces(tmp_path / "a" / "Big.gguf") == [tmp_path / "a" / "Big.gguf"]
    assert digest(first) == digest(split(tmp_path / "b")) != digest(split(tmp_path / "c", last="other"))


def test_what_reads_a_single_file_does_not_convert_a_split_one(tmp_path):
    """Weights would be made of the first piece alone."""
    assert list(local_model(str(split(tmp_path)))[1].tracks) == ["gguf"]


def test_a_kit_carries_all_pieces(tmp_path):
    first, kit = split(tmp_path / "weights"), tmp_path / "kit"
    (kit / "models").mkdir(parents=True)
    make._carry(Track("gguf", "GGUF", path=str(first)), kit, None, print)
    assert sorted(file.name for file in (kit / "models").iterdir()) == NAMES
