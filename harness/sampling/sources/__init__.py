"""Sources of samples. A source that is not available says why; one that fails is asked again."""

import time
from collections.abc import Callable
from typing import Any, Protocol

Put = Callable[..., None]  # Spill.put
OWNERS = "gpu.*.engine_memory_bytes"  # in `missing`, where it is not known whose memory it is
UNKNOWN_PROCESSES = "the GPU lists processes unknown here"  # of a container, or of the host of this one


class UnavailableError(Exception):
    """This machine, driver or engine does not offer the source. The text is shown."""


class UnreadableError(Exception):
    """Raised for a source that could not be read this time."""


class Source(Protocol):
    """Lives in a thread of its own, from `open` to `close`."""

    period_s: float
    missing: dict[str, str]  # why a series cannot be read. A `*` in its name stands for the rest of it.
    about: dict[str, Any]  # facts about what is read: devices, processes

    def open(self) -> None:
        """Raises UnavailableError."""
        return

    def read(self, put: Put) -> None:
        """Raises UnreadableError if nothing could be read. What a partial read lacks is in `missing`."""

    def close(self) -> None:
        return


def lose(source: Source, device: str, library: str, error: Exception) -> None:
    """Names a GPU that does not answer, so that the sums of the others are not taken for all."""
    source.missing[f"{device}.*"] = f"{library}: {error}"
    source.about.setdefault("lost", {})[device] = {"why": str(error), "at_ns": time.monotonic_ns()}
