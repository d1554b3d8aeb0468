"""The engines' dialects, by name."""

from harness.mockserver.dialect import Dialect
from harness.mockserver.dialects import fronts, gpu, local, small, vllm

# Each constant of these modules is one, but for those with an underscore, which others are made of.
DIALECTS = {
    dialect.name: dialect
    for module in (vllm, gpu, local, fronts, small)
    for constant, dialect in vars(module).items()
    if isinstance(dialect, Dialect) and not constant.startswith("_")
}
