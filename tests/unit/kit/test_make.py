import struct

import pytest

from harness.errors import SpecError
from harness.kit.make import Asked, make
from harness.kit.vocabulary import vocabulary_of


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def test_a_vocabulary_is_the_file_without_its_tensors():
    tokens = struct.pack("<IQ", 8, 2) + text("a") + text("bc")
    pairs = [
        text("general.architecture") + struct.pack("<I", 8) + text("llama"),
        text("tokenizer.ggml.tokens") + struct.pack("<I", 9) + tokens,
        text("tokenizer.ggml.scores") + struct.pack("<IIQ2f", 9, 6, 2, 0.5, 1.5),
        text("tokenizer.ggml.add_bos") + struct.pack("<I?", 7, True),
    ]
    known = b"".join(pairs)
    whole = struct.pack("<4sIQQ", b"GGUF", 3, 1, len(pairs)) + known + b"tensor" * 100
    found = vocabulary_of(whole)
    assert struct.unpack_from("<4sIQQ", found) == (b"GGUF", 3, 0, len(pairs))
    assert found[24 : 24 + len(known)] == known
    assert set(found[24 + len(known) :]) <= {0}


def test_another_file_has_no_vocabulary():
    with pytest.raises(ValueError, match="GGUF"):
        vocabulary_of(b"PK" + bytes(100))


def asked(tmp_path, **changes):
    given = {
        "target": "linux-x86_64-py312",
        "glibc": "2.28",
        "engines": [],
        "models": [],
        "have": None,
        "out": tmp_path / "kit",
    }
    return Asked(**{**given, **changes})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"target": "amiga"}, "--for"),
        ({"glibc": "2.3"}, "--glibc"),
        ({"engines": ["vlm"]}, "vllm"),
        ({"engines": ["openai"]}, "not installed by bench"),
        ({"engines": ["transformers"]}, "--have"),
        ({"models": ["qwen3-8b"]}, "--model PATH"),
    ],
)
def test_what_a_kit_cannot_carry_is_an_error_before_anything_is_fetched(tmp_path, changes, said):
    with pytest.raises(SpecError) as caught:
        make(asked(tmp_path, **changes), lambda _line: None)
    assert said in f"{caught.value} {caught.value.hint}"
    assert list(tmp_path.iterdir()) == []


def test_an_engine_stands_on_the_torch_that_its_machine_has(tmp_path):
    """What is wrong next is the model."""
    have = tmp_path / "have.txt"
    have.write_text("torch==2.11.0\n")
    with pytest.raises(SpecError) as caught:
        make(asked(tmp_path, engines=["transformers"], models=["qwen3-8b"], have=have), lambda _line: None)
    assert "--model PATH" in f"{caught.value} {caught.value.hint}"


def test_a_folder_that_is_no_kit_is_not_replaced(tmp_path):
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "mine.txt").write_text("mine")
    with pytest.raises(SpecError, match="no kit"):
        make(asked(tmp_path), lambda _line: None)
    assert (tmp_path / "kit" / "mine.txt").read_text() == "mine"
