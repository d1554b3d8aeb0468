"""Whatever is said, the door gives typed values or one error: shapes drawn per field, never a traceback."""

import json
import math
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.metrics.peers import definitions
from harness.metrics.peers.answers import take
from harness.metrics.peers.definitions import TOOLS
from harness.metrics.peers.recompute import recompute
from harness.model import as_json
from harness.records.layout import UNKNOWN
from harness.untrusted import BadDocumentError, Secrets, document, inert, one_line, read_document
from tests.factories.answers import CHUNKED, chunked, delta, event, field, head, play
from tests.factories.recorded import facts, records, summarise_cell
from tests.factories.shapes import KEY, TEXTS, VALUES, holds_harm, texts_in

PUBLISHED = Path(__file__).parents[3] / "results/published"


def numbers_in(value):
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from numbers_in(item)


@given(VALUES)
@example({"a": [math.inf, -math.inf, math.nan, 1e308]})
def test_a_document_is_inert_finite_and_without_the_key(value):
    found = read_document(json.dumps(value), Secrets([KEY]).hidden)
    assert not any(map(holds_harm, texts_in(found)))
    assert all(map(math.isfinite, numbers_in(found)))
    json.dumps(found, allow_nan=False).encode()


@given(
    st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-16", "surrogatepass"))
)
@example(b"[" * 100_000)
@example(b'{"a":' * 100_000)
@example(b"9" * 5000)
def test_bytes_are_a_document_or_one_error(data):
    with suppress(BadDocumentError):
        read_document(data)


@given(VALUES)
@example(["\\", "\\u0041", "\r\n", "\x1b[2J", "\x7f", "\x85", "\u202e", "\u00b5 \u00d7", "\ufeff", "\ud800"])
@example([2**63 - 1, 2**63, -(2**63), 1e300, math.nan, True, None, 0.5])
@example({"\u202e": 1})
@example({"a\u2028": {"b": [{"c": 2**64}]}})
def test_bytes_that_need_no_cleaning_are_the_document_that_cleaning_makes(value):
    """A text goes through the cleaning whatever it has; bytes only where they may have to."""
    for ascii_only in (True, False):
        text = json.dumps(value, ensure_ascii=ascii_only)
        with suppress(UnicodeEncodeError):
            assert repr(read_document(text.encode())) == repr(read_document(text))


@pytest.mark.parametrize("levels", [63, 64, 65])
def test_a_document_in_bytes_is_as_deep_as_one_in_text(levels):
    text = "[" * levels + "]" * levels
    for data in (text, text.encode()):
        if levels <= document.DEEPEST:
            assert read_document(data) == json.loads(text)
        else:
            with pytest.raises(BadDocumentError, match="deeper than 64"):
                read_document(data)


def test_no_text_of_a_published_summary_is_cleaned_one_by_one(monkeypatch):
    monkeypatch.setattr(document, "_clean", None)
    for file in sorted(PUBLISHED.glob("*/summary.json"))[::6]:
        read_document(file.read_bytes())


def test_a_document_has_as_many_values_as_its_length_allows(monkeypatch):
    """Any summary is read, and no values of few characters each, which would grow in memory."""
    monkeypatch.setattr(document, "_FREE_VALUES", 50)
    for file in sorted(PUBLISHED.glob("*/summary.json"))[::6]:
        read_document(file.read_bytes())
    for text in (f"[{'[],' * 50}0]", f"[{'0,' * 50}0]", '{"a":' * 51 + "0" + "}" * 51):
        with pytest.raises(BadDocumentError, match=r"^JSON of more than 50 values$"):
            read_document(text)
        read_document(f"{text}{' ' * 16 * 110}")


def test_a_word_is_no_key():
    for word in ("", "none", "EMPTY"):
        assert Secrets([word]).hidden("there is none, it is empty") == "there is none, it is empty"


@given(TEXTS)
def test_a_line_is_one_short_inert_line(text):
    line = one_line(text, 50)
    assert len(line) <= 50
    assert "\n" not in line
    assert inert(line) == line


# -- the load ----------------------------------------------------------------------------------------


def test_text_of_no_tokens_was_not_counted():
    usage = json.dumps({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 0}}).encode()
    assert (
        field(play([head(CHUNKED), chunked([event(delta("a")), event(usage)])]), "output_tokens") == UNKNOWN
    )
    assert field(play([head(CHUNKED), chunked([event(usage)])]), "output_tokens") == 0


def test_a_key_split_over_events_is_in_no_record():
    body = b"".join(event(delta(char)) for char in "say sk-SECRET again")
    call = {"index": 0, "id": "sk-secret", "function": {"name": "f", "arguments": '{"a":"sk-secret"}'}}
    settled = play([head(CHUNKED), chunked([body, event(delta(tool_calls=[call]))])])
    assert "sk-secret" not in f"{settled.text} {settled.tool_calls} {settled.error}".lower()
    assert settled.text.startswith("say ********* again")
    assert len(settled.text) == settled.events["text_chars"].sum()


COUNTS = st.sampled_from([UNKNOWN, 0, 1, 3, 10_000_000])


@given(st.lists(st.tuples(COUNTS, COUNTS, COUNTS), min_size=1, max_size=6))
def test_a_cell_of_any_counts_has_figures(counts):
    rows = [
        {"sent": i, "texts": [i + 10, i + 20], "tokens": tokens, "prompt": prompt, "cached": cached}
        for i, (tokens, prompt, cached) in enumerate(counts)
    ]
    found = records(*rows)
    json.dumps(as_json(summarise_cell(found, facts(), None)), allow_nan=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(definitions, "_MOST_TOGETHER", 10_000)  # as many as 80 MB of zeros otherwise
        recompute(TOOLS.values(), found, facts())


def test_as_many_tokens_as_a_server_says_share_an_event_up_to_a_limit():
    found = records({"sent": 0, "texts": [10, 20], "tokens": 2**31 - 1})
    figures = definitions.TOOLS["inference-perf"].compute(take(found, None, "chat"))
    assert len(figures["ITL"].values) == 10_000_001
