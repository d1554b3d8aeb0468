"""The timed window: requests out at their intended times, bytes and arrival stamps back.

Who calls whom, the parent above the line and each worker process below it:

    run -> sharding, transport          one job in parts; what carries them
        -> worker_pool                  workers started, followed and merged (spill, client_stats)
    ------ messages
    worker -> window                    decides what leaves, what ends a request, what ends the load
                -> dispatcher, balance      what is due when, and at which replica
                -> carrier                  carries bytes and stamps, and reports sends and ends
                     socket_carrier -> connection_pool -> connection; http1
                     task_carrier -> http2 -> http2_connection, or httpx_carrier
                -> tally -> finalize (sse, form) -> spill; turns
"""

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
