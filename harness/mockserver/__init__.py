"""The scripted OpenAI-compatible server: known timing, every real write time, engines' habits, faults."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.mockserver.process import MockServer, running

__all__ = ["MockServer", "running"]


def __getattr__(name: str) -> Any:
    """Late, because `bench --help` imports this package for its flags and starts no process."""
    if name in __all__:
        from harness.mockserver import process

        return getattr(process, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
