"""The limit of open files, against the connections of a load."""

import resource

import pytest

from harness.host import descriptors

WITHOUT = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "set_to", "fit"),
    [
        (1024, 4096, 100, None, 1024 - descriptors.SPARE),
        (1024, 4096, 2000, 2000 + descriptors.SPARE, 2000),
        (1024, 4096, 9000, 4096, 4096 - descriptors.SPARE),
        (1024, WITHOUT, 9000, 9000 + descriptors.SPARE, 9000),
    ],
)
def test_the_limit_is_raised_as_far_as_needed_and_allowed(monkeypatch, soft, hard, wanted, set_to, fit):
    changed = []
    monkeypatch.setattr(descriptors.resource, "getrlimit", lambda _kind: (soft, hard))
    monkeypatch.setattr(descriptors.resource, "setrlimit", lambda _kind, limits: changed.append(limits))
    assert descriptors.allow(wanted) == fit
    assert changed == ([(set_to, hard)] if set_to else [])
