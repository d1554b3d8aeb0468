"""Reports requests that are longer than an engine's context, before they fail one by one."""

from collections.abc import Mapping

import numpy as np

from harness.metrics.prefix import reusable
from harness.records.request_table import RequestTable
from harness.spec.backend import Value

_TEMPLATE = 64  # tokens that a chat template may add


def too_long(requested: RequestTable, values: Mapping[str, Value] | None) -> tuple[str, int] | None:
    """A problem if prompt and answer together exceed `context_tokens`, and a context for all; None: they fit.

    The chat template is not counted, so a request that barely fits here may still be too long.
    """
    context = (values or {}).get("context_tokens")
    if context is None:
        return None
    needed = reusable(requested)[1] + requested.numbers["max_tokens"]
    items = requested.items()
    if items is not None:  # each text is read apart
        needed = -(-needed // items)
    over = int(np.count_nonzero(needed > int(context)))
    if not over:
        return None
    longest = int(needed.max())
    return (
        f"{over} of {len(requested)} requests need more than its context of {context} tokens: "
        f"up to {longest}",
        longest + _TEMPLATE,
    )
