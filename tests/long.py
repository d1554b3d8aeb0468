"""Cases of a test of which some are run with every change, and the others with the long tests (`-m long`)."""

import pytest


def others_long(cases, often):
    """Parameters for `pytest.mark.parametrize`: `cases` are tuples or single values.

    `often`: whether a case, given as its values, is run with every change.
    """
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        yield pytest.param(*values, marks=() if often(*values) else pytest.mark.long)
