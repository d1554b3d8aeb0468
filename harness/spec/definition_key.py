"""Fingerprint of a definition, by which noise floors and a resumed run know that it is the same."""

import dataclasses
from functools import reduce

from harness.spec import files
from harness.spec.backend import Backend

# What people read, what only other commands use, and what another device or API has: `as_launched` puts
# [process_cuda] in the place of [process] where it runs, and `dialect` itself is of the API in use.
_LEFT_OUT = (
    "facts", "attach", "variants", "process_cuda", "backend.title", "backend.licence", "backend.homepage",
    "backend.bias", "backend.note", "backend.status", "server.loading", "server.failures", "engine.tunable",
    "process.not_run", "process.install.size_mb", "image.cuda.note", "image.rocm.note", "image.cpu.note",
    "metrics.note", "metrics.json.note", "prefix_cache.note", "dialect.apis",
)  # fmt: skip


def definition_key(definition: Backend) -> str:
    """Fingerprint of everything that changes how the engine runs; remarks and sources are left out."""
    content = dataclasses.asdict(definition)
    for path in _LEFT_OUT:
        *tables, key = path.split(".")
        table = reduce(lambda outer, name: outer and outer[name], tables, content)
        if table:
            table.pop(key, None)
    return files.fingerprint(content)
