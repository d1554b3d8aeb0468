"""Names of torchvision, whose wheels in the package index need CUDA and fail next to a CPU build of torch.

Nothing is computed here. SGLang imports it for text models too, where no image is processed; a call raises
NotImplementedError, so models of images and video do not run.
"""

import sys
from collections.abc import Callable
from enum import Enum
from types import ModuleType
from typing import NoReturn

__version__ = "0.0.0"


class InterpolationMode(Enum):
    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


class _Absent(ModuleType):
    """A module with a function of every name, except for those that Python itself looks for."""

    InterpolationMode = InterpolationMode

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []  # modules can be imported from it, as from any package

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        if name.startswith("__"):
            raise AttributeError(name)

        def function(*_arguments: object, **_named: object) -> NoReturn:
            raise NotImplementedError(f"{self.__name__}.{name} has no build for a CPU here")

        return function


for _name in ("io", "transforms", "transforms.functional", "transforms.v2", "transforms.v2.functional"):
    _module = _Absent(f"{__name__}.{_name}")
    _parent, _, _child = _module.__name__.rpartition(".")
    setattr(sys.modules[_parent], _child, _module)
    sys.modules[_module.__name__] = _module
