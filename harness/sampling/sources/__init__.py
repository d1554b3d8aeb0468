"""Says where samples come from. A source that is not there says why; one that fails is asked again."""

from collections.abc import Callable
from typing import Protocol

Put = Callable[..., None]  # Spill.put


class UnavailableError(Exception):
    """This machine, driver or engine does not offer the source; the text is shown."""


class UnreadableError(Exception):
    """This time it could not be read."""


class Source(Protocol):
    """Lives in a thread of its own, from `open` to `close`."""

    period_s: float

    def open(self) -> None:
        """Raises UnavailableError."""

    def read(self, put: Put) -> None:
        """Raises UnreadableError when nothing could be read; what a partial read lacks is in `missing`."""

    def close(self) -> None: ...

    @property
    def missing(self) -> dict[str, str]:
        """Series that cannot be read, with the reason; a `*` in a name stands for the rest of it."""

    @property
    def about(self) -> dict[str, object]:
        """Facts about what is read: devices, processes."""
