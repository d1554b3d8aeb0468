"""Draws images for prompts from a seed, encodes each once, and keeps them as files."""

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from random import Random

import numpy as np

from harness.spec.scenario.images import ImageClass, Images
from harness.workload.prompts.request import ChatRequest, Picture

_CELL = 16  # pixels between two random colours, with a gradient between them
_GRAIN = 6  # of 255: photographs have grain, which makes their files large
_JPEG_QUALITY = 85


@dataclass(frozen=True, slots=True)
class Shelf:
    """Folder of the image files, and the address of a server that has them; "": there is none."""

    folder: Path
    address: str = ""

    def put(self, kind: ImageClass, seed: tuple[int, ...]) -> Picture:
        data = encoded(kind, seed)
        sha256 = hashlib.sha256(data).hexdigest()
        file = self.folder / f"{sha256}.{kind.format}"
        if not file.exists():
            file.write_bytes(data)
        address = f"{self.address}/{file.name}" if self.address else ""
        return Picture(kind, seed, str(file), f"image/{kind.format}", sha256, len(data), address)


def pictured(
    requests: Iterable[ChatRequest], images: Images, seed: int, shelf: Shelf
) -> Iterator[ChatRequest]:
    """Adds images to each request; their class becomes its kind. Classes come equally often, shuffled."""
    repeated: dict[ImageClass, list[Picture]] = {}
    kinds = _drawn(images.classes, Random(seed))
    for number, (request, kind) in enumerate(zip(requests, kinds, strict=False)):
        if kind.state == "repeated":
            sort = kind._replace(images=0)
            if sort not in repeated:
                repeated[sort] = [shelf.put(kind, (seed, 1, each)) for each in range(images.distinct)]
            known = repeated[sort]
            pictures = tuple(known[(number + each) % len(known)] for each in range(kind.images))
        else:
            pictures = tuple(shelf.put(kind, (seed, 0, number, each)) for each in range(kind.images))
        yield replace(request, kind=kind.name, images=pictures)


def _drawn(classes: tuple[ImageClass, ...], random: Random) -> Iterator[ImageClass]:
    while True:
        yield from random.sample(classes, len(classes))


def encoded(kind: ImageClass, seed: tuple[int, ...]) -> bytes:
    """The file of one image: gradients of colours with the grain of a photograph."""
    from PIL import Image  # takes a tenth of a second, which runs without images save

    width, height = kind.pixels
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 256, (height // _CELL + 2, width // _CELL + 2, 3), np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC), np.int16)
    grain = random.integers(-_GRAIN, _GRAIN + 1, (height, width, 1), np.int16)
    image = Image.fromarray(np.clip(smooth + grain, 0, 255).astype(np.uint8))
    file = BytesIO()
    if kind.format == "jpeg":
        image.save(file, "jpeg", quality=_JPEG_QUALITY)
    else:
        image.save(file, "png", compress_level=1)
    return file.getvalue()


@lru_cache(maxsize=64)  # those that are sent repeatedly
def set_apart(picture: Picture, number: int) -> Picture:
    """Draws another image of its kind: a server may have kept what it made of this one."""
    shelf = Shelf(Path(picture.file).parent, picture.address.rpartition("/")[0])
    return shelf.put(picture.kind, (*picture.seed, number))


def url_of(picture: Picture) -> str:
    """Address of the file, or the file itself as a data URL."""
    if picture.address:
        return picture.address
    data = b64encode(Path(picture.file).read_bytes()).decode()
    return f"data:{picture.media_type};base64,{data}"
