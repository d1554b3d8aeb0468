"""Weights that lie in several files are known, copied and read as all of them."""

import pytest

from harness.engines.provide.models import find_model, local_model
from harness.engines.provide.weights import digest, pieces
from harness.engines.start.command import write_files
from harness.errors import SpecError
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


def test_a_folder_here_is_a_model_unless_a_known_one_has_its_name(tmp_path, monkeypatch):
    """Else `--model Qwen2.5-7B-Instruct` would name the one to be fetched, by a hint."""
    monkeypatch.chdir(tmp_path)
    for name in ("Qwen2.5-7B-Instruct", "qwen3-8b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    _, model = find_model("Qwen2.5-7B-Instruct")
    assert model.tracks["local"].path == str(tmp_path / "Qwen2.5-7B-Instruct")
    assert "local" not in find_model("qwen3-8b")[1].tracks
    (tmp_path / "empty").mkdir()
    with pytest.raises(SpecError, match=r"no config\.json in this folder"):
        find_model("empty")
    with pytest.raises(SpecError, match="unknown model 'nowhere'"):
        find_model("nowhere")


def test_a_gguf_of_the_hubs_cache_keeps_the_name_that_its_link_has(tmp_path):
    repository = tmp_path / "models--org--Big-GGUF"
    write_files(repository, {"blobs/aa11bb22": "GGUF"})
    link = repository / "snapshots/abc/Big-00001-of-00002.gguf"
    link.parent.mkdir(parents=True)
    link.symlink_to("../../blobs/aa11bb22")
    name, model = local_model(str(link))
    assert (name, model.tracks["gguf"].path) == (link.stem, str(link))


def test_any_other_link_to_weights_is_followed(tmp_path):
    write_files(tmp_path, {"Big-00001-of-00002.gguf": "GGUF"})
    (tmp_path / "newest.gguf").symlink_to("Big-00001-of-00002.gguf")
    assert local_model(str(tmp_path / "newest.gguf"))[0] == "Big-00001-of-00002"
