"""Images of a scenario: classes, and files from a seed."""

from collections import Counter
from io import BytesIO

import pytest
from PIL import Image

from harness.spec.scenario import FixedLength, Images
from harness.workload.prompts.generate import generate
from harness.workload.prompts.images import Shelf, encoded, pictured, url_of
from harness.workload.prompts.text import TextMaker

MIX = Images((0, 1, 3), ("32x16", "16x16"), ("png", "jpeg"), ("fresh", "repeated"), distinct=2)


def made(folder, images=MIX, seed=4, count=51):
    shelf = Shelf(folder)
    return generate(
        FixedLength(8, 4),
        count,
        seed,
        TextMaker(None),
        lambda requests, drawn: pictured(requests, images, drawn, shelf),
    )


def test_classes_come_equally_often_each_with_its_images(tmp_path):
    requests = list(made(tmp_path).requests)
    kinds = Counter(request.kind for request in requests)
    assert len(kinds) == 1 + 2 * 2 * 2 * 2
    assert set(kinds.values()) == {3}
    for request in requests:
        count = 0 if request.kind == "no image" else int(request.kind.partition(" x ")[0])
        assert len(request.images) == count
        assert all(picture.media_type.removeprefix("image/") in request.kind for picture in request.images)


def test_repeated_images_are_few_and_fresh_ones_never_come_again(tmp_path):
    seen = {"fresh": Counter(), "repeated": Counter()}
    for request in made(
        tmp_path, Images((2,), ("16x16",), states=("fresh", "repeated"), distinct=3)
    ).requests:
        seen[request.kind.rpartition(" ")[2]].update(picture.sha256 for picture in request.images)
    assert set(seen["fresh"].values()) == {1}
    assert len(seen["repeated"]) == 3
    assert not seen["fresh"].keys() & seen["repeated"].keys()


def test_bytes_and_workload_are_those_of_the_seed(tmp_path):
    first, again, other = made(tmp_path), made(tmp_path), made(tmp_path, seed=5)
    assert first.sha256 == again.sha256 != other.sha256
    numbers = first.requested.numbers
    sizes = [sum(picture.size_bytes for picture in request.images) for request in first.requests]
    assert numbers["image_bytes"].tolist() == sizes
    assert numbers["kept"].max() == -1  # it is no call of a session


@pytest.mark.parametrize("kind", MIX.classes[1:4])
def test_files_are_images_of_their_size_and_format(kind, tmp_path):
    image = Image.open(BytesIO(encoded(kind, (1, 2))))
    assert image.size == kind.pixels
    assert image.format.lower() == kind.format
    picture = Shelf(tmp_path).put(kind, (1, 2))
    assert url_of(picture).startswith(f"data:image/{kind.format};base64,")
    assert url_of(Shelf(tmp_path, "http://127.0.0.1:9").put(kind, (1, 2))).startswith("http://127.0.0.1:9/")


def test_more_images_are_more_work_for_a_comparison():
    assert Images((1,)).words != Images((2,)).words
    assert Images((1,), send="url").words != Images((1,)).words
    assert Images().words == ""
