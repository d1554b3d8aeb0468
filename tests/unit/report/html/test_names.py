"""Tables name a backend with the mark that it has in the charts."""

from harness.report.html.source import Source
from tests.factories.summaries import cell, summary


def test_of_many_backends_no_two_marks_are_alike():
    """There are eight colours."""
    labels = [f"engine-{number}" for number in range(12)]
    source = Source(summary(*map(cell, labels)), None, {}, (), (), {}, {}, ())
    names = [source.name(label) for label in labels]
    assert all(name.endswith(label) for name, label in zip(names, labels, strict=True))
    assert len({name.removesuffix(label) for name, label in zip(names, labels, strict=True)}) == 12
