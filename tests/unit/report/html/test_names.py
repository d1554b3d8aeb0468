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


def test_the_backends_of_a_page_are_listed_once(monkeypatch):
    """Every row of every table asks for the number of its backend, in a run of a thousand too."""
    listed = []
    monkeypatch.setattr("harness.report.html.source.labels", lambda found: listed.append(found) or ["a", "b"])
    source = Source(summary(), None, {}, (), (), {}, {}, ())
    assert [source.index(label) for label in "abab"] == [0, 1, 0, 1]
    assert len(listed) == 1
