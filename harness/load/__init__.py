"""The timed window: requests out at their intended times, bytes and arrival stamps back."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.load.run import run_load

__all__ = ["run_load"]


def __getattr__(name: str) -> Any:
    """Imports `run_load` on first use: a job can be described, and a worker started, without it."""
    if name == "run_load":
        from harness.load.run import run_load

        return run_load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
