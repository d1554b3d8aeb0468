"""[images]: pictures that go with the prompts."""

import re
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple

from harness.errors import SpecError
from harness.spec.scenario.limits import Count

NO_IMAGE = "no image"
_SIZE = re.compile(r"([1-9]\d{0,3})x([1-9]\d{0,3})")

Format = Literal["png", "jpeg"]
State = Literal["fresh", "repeated"]


class ImageClass(NamedTuple):
    """A class of requests: a number of images, all of one sort."""

    images: int
    size: str = ""
    format: Format = "png"
    state: State = "fresh"

    @property
    def sort(self) -> str:
        """Size, format and state of its images: `512x512 jpeg, fresh`."""
        return f"{self.size} {self.format}, {self.state}"

    @property
    def name(self) -> str:
        return f"{self.images} x {self.sort}" if self.images else NO_IMAGE

    @property
    def pixels(self) -> tuple[int, int]:
        """Width and height of an image."""
        width, _, height = self.size.partition("x")
        return int(width), int(height)


@dataclass(frozen=True, slots=True)
class Images:
    """Images drawn from a seed. Each count with each size, format and state is a class of requests."""

    counts: tuple[int, ...] = ()  # images of a request; (): no request has any
    sizes: tuple[str, ...] = ("512x512",)  # width and height in pixels
    formats: tuple[Format, ...] = ("jpeg",)
    states: tuple[State, ...] = ("fresh",)  # new in each request, or of a few that are sent again and again
    distinct: Count = 4  # those few, of each size and format
    send: Literal["data", "url"] = "data"  # in the request, or from a server that bench starts on 127.0.0.1
    place: Literal["after", "before"] = "after"  # the text: in front of it a prefix cache finds them too

    @property
    def classes(self) -> tuple[ImageClass, ...]:
        sorts = product(self.sizes, self.formats, self.states)
        with_some = [ImageClass(count, *sort) for sort in sorts for count in self.counts if count]
        return (*([ImageClass(0)] if 0 in self.counts else []), *with_some)

    @property
    def words(self) -> str:
        """The settings on one line, which a comparison of conditions looks at; "" without images."""
        if not self.counts:
            return ""
        parts = (self.counts, self.sizes, self.formats, self.states)
        sorts = " ".join("/".join(map(str, part)) for part in parts)
        return f"{sorts}, {self.send}, {self.place} the text"

    def check(self, where: str) -> None:
        for key in ("counts", "sizes", "formats", "states"):
            given = getattr(self, key)
            if len(set(given)) < len(given) or not (given or key == "counts"):
                raise SpecError("must be one or more different values", where=f"{where}.{key}")
        for count in self.counts:
            if not 0 <= count <= 64:
                raise SpecError(f"must be from 0 to 64, not {count}", where=f"{where}.counts")
        for size in self.sizes:
            if not _SIZE.fullmatch(size):
                hint = 'width and height in pixels, below 10,000: "512x512"'
                raise SpecError(f"'{size}' is no size", where=f"{where}.sizes", hint=hint)
