"""The same records under the definitions of other tools, so that one sees why two tools disagree. Pure.

Every definition was read in the source of the version that is named; docs/peers.md tells how it was checked.
"""

from harness.metrics.peers.definitions import ANSWERS, LEAVES_OUT, TEXT_SINCE_SEND, TOOLS, WHOLE_RUN, Tool
from harness.metrics.peers.recompute import Figure, View, recompute
from harness.metrics.peers.versions import READ_IN, changed, tool_named
