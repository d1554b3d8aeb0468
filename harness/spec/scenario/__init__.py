"""workloads/*.toml: what is asked of a server, in what order and how fast. Complete in itself.

One file per table: `load`, `generators` ([prompts]), `verdict` (and [slo]); `definition` puts them together.
"""

from harness.spec.scenario.definition import (
    Cache,
    Header,
    Request,
    Scenario,
    load_scenario,
    parse_scenario,
)
from harness.spec.scenario.generators import (
    GENERATORS,
    FixedLength,
    PromptFile,
    Prompts,
    SharedPrefix,
    TraceReplay,
)
from harness.spec.scenario.load import Load, Segment
from harness.spec.scenario.verdict import Verdict

__all__ = [
    "GENERATORS",
    "Cache",
    "FixedLength",
    "Header",
    "Load",
    "PromptFile",
    "Prompts",
    "Request",
    "Scenario",
    "Segment",
    "SharedPrefix",
    "TraceReplay",
    "Verdict",
    "load_scenario",
    "parse_scenario",
]
