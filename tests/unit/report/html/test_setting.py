"""What makes backends unequal, on the page."""

import pytest

from harness.model import Manifest
from harness.report.findings.manifest_lines import leaf
from harness.report.html.setting import unequal
from harness.report.html.source import Source
from tests.factories.documents import made
from tests.factories.summaries import cell, summary

KNOWN = {"engine": {"version": "1"}}
ALONE, SAME = "One backend: nothing to tell apart.", "Nothing recorded differs."
UNKNOWN = "No settings of the backends are known."


@pytest.mark.parametrize(
    ("labels", "backends", "said"),
    [
        (("a",), {"a": KNOWN}, ALONE),
        (("a", "b"), {"a": KNOWN, "b": KNOWN}, SAME),
        (("a", "b"), {"a": {"launch": {"mode": "import", "why": ""}}, "b": {}}, UNKNOWN),
        (("a",), {"a": {}}, ALONE),
        (("a", "b"), None, UNKNOWN),
        (("a",), {"a": KNOWN, "b": {"engine": None}}, f"b was never started.</p><p>{ALONE}"),
    ],
)
def test_backends_are_never_started_or_alone_only_where_the_run_says_so(labels, backends, said):
    manifest = None if backends is None else made(Manifest, backends=backends)
    page = unequal(Source(summary(*map(cell, labels)), manifest, {}, (), (), {}, {}, ()))
    told = page.partition("</h2>")[2].partition("<details>")[0]
    assert told.removesuffix("</section>") == f"<p>{said}</p>"


def test_one_backend_whose_own_cells_differ_is_not_called_equal():
    differs = {"code": "power", "labels": ["a"], "text": "power limit: 300 W | 400 W", "matters": False}
    page = unequal(Source(summary(cell("a"), unequal=[differs]), None, {}, (), (), {}, {}, ()))
    assert "300 W | 400 W" in page
    assert ALONE not in page


def test_a_list_of_sentences_does_not_read_as_one():
    assert leaf(["a is b", "c is d"]) == "a is b; c is d"
    assert leaf(["serve", "--model", "a b"]) == "serve --model a b"
    assert leaf([]) == "none"
