"""Options that no run can be made of."""

import pytest

from harness.errors import SpecError
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare


@pytest.mark.parametrize("seed", [2**63, -(2**63)])
def test_a_seed_that_no_reader_of_the_manifest_takes_is_refused(seed):
    with pytest.raises(SpecError, match=f"^--seed: must be a number of 64 bits, not {seed}$"):
        prepare(RunOptions("fixed-length", "truth", seed=seed))


def test_every_seed_of_64_bits_is_taken():
    for seed in (2**63 - 1, 1 - 2**63):
        assert prepare(RunOptions("fixed-length", "truth", seed=seed)).options.seed == seed
