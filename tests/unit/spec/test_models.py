"""A list of models in the working directory, over the shipped one."""

import pytest

from harness.errors import SpecError
from harness.spec.models import choose_model, load_models

MINE = """[models.mine]
title = "Mine"
licence = "MIT"
tracks.bf16 = { weights = "hf", quantisation = "bf16", repo = "a/b" }
"""
VECTORS = """[models.embedder]
title = "Vectors"
licence = "MIT"
gives = "vectors"
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    shipped = load_models()
    (tmp_path / "backends").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "backends" / "models.toml", shipped


def test_a_list_of_ones_own_adds_to_the_shipped_one(own):
    path, shipped = own
    path.write_text(MINE)
    known = load_models()
    assert list(known.models) == ["mine", *shipped.models]
    assert choose_model(None) == (shipped.default, shipped.models[shipped.default])


def test_its_default_and_its_models_come_before_the_shipped_ones(own):
    path, shipped = own
    path.write_text(f'default = "mine"\n{MINE}{VECTORS}')
    assert choose_model(None)[0] == "mine"
    assert choose_model(None, "vectors")[0] == "embedder"
    path.write_text(MINE.replace("mine", shipped.default))
    known = load_models()
    assert list(known.models[shipped.default].tracks) == ["bf16"]
    assert set(known.models) == set(shipped.models)


def test_a_default_that_neither_list_has_is_named(own):
    path, _ = own
    path.write_text(f'default = "nobody"\n{MINE}')
    with pytest.raises(SpecError, match="unknown model 'nobody'"):
        load_models()


def test_models_with_random_weights_of_text_or_vision_are_known():
    known = {name for name, model in load_models().models.items() if model.random_weights}
    assert known == {"random-llama-tiny", "random-llama-1b", "random-llama-8b", "smollm2-random-vision"}
