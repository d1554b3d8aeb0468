"""workloads/*.toml: what is asked of a server, in what order and how fast. Complete in itself.

One file per table: `load`, `text`, `generators` ([prompts]), `verdict` (and [slo]); `definition` puts them
together.
"""

from harness.spec.scenario.definition import (
    PROFILES,
    Profile,
    Request,
    Scenario,
    check_api,
    load_scenario,
    parse_scenario,
    with_profile,
)
from harness.spec.scenario.generators import GENERATORS, PromptFile, Prompts, TraceReplay, turns_of
from harness.spec.scenario.images import Images
from harness.spec.scenario.load import Load, Segment
from harness.spec.scenario.lora import LoraMix, adapter_names
from harness.spec.scenario.synthetic import FixedLength, SharedPrefix
from harness.spec.scenario.text import Text
from harness.spec.scenario.verdict import Verdict
