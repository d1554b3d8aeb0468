"""A credential in what a server says is masked however it is spelled, and ordinary text stays as it is."""

import base64
import html
import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.untrusted import Secrets, inert

KEY = "sk-proj-Very/Secret+0123456789"
MARKS = "it was <", "> he said"


def every(char):
    """`char` with what stands for each character of the key."""
    return "".join(map(char, KEY))


def encoded(encode, text):
    return encode(text.encode()).decode()


BYTES = "".join(f"%{byte:02X}" for byte in KEY.encode())
SPELLINGS = {
    "as it is": KEY,
    "upper case": KEY.upper(),
    "percent where needed": quote(KEY, safe=""),
    "percent everywhere": BYTES,
    "percent twice": quote(BYTES, safe=""),
    "percent three times": quote(quote(BYTES, safe=""), safe=""),
    "percent of one letter": KEY.replace("V", "%56"),
    "backslash u": every(lambda char: f"\\u{ord(char):04x}"),
    "backslash x": every(lambda char: f"\\x{ord(char):02x}"),
    "JSON in JSON": json.dumps(json.dumps(every(lambda char: f"\\u{ord(char):04x}"))),
    "entities": every(lambda char: f"&#{ord(char)};"),
    "entities in hexadecimal": every(lambda char: f"&#x{ord(char):X};"),
    "entities by name": KEY.replace("/", "&sol;").replace("+", "&plus;").replace("-", "&hyphen;"),
    "entities escaped": html.escape(every(lambda char: f"&#{ord(char)};")),
    "entities in percent": quote(every(lambda char: f"&#{ord(char)};"), safe=""),
    "hexadecimal": KEY.encode().hex(),
    "hexadecimal with colons": KEY.encode().hex(":").upper(),
    "base64": encoded(base64.b64encode, KEY),
    "base64 of a header": encoded(base64.b64encode, f"Bearer {KEY}"),
    "base64 of user and key": encoded(base64.urlsafe_b64encode, f"u:{KEY}"),
    "base64 in lines": encoded(base64.encodebytes, f"Authorization: Bearer {KEY} {'.' * 40}"),
    "base64 in percent": quote(encoded(base64.b64encode, KEY), safe=""),
    "base32": encoded(base64.b32encode, KEY),
    **{f"base32 after {lead}": encoded(base64.b32encode, "u" * lead + KEY) for lead in range(1, 5)},
    "spaced out": " ".join(KEY),
    "a line for each": "\n".join(KEY),
    "with dashes": "-".join(KEY),
    "other punctuation": KEY.replace("-", "_").replace("/", "."),
    "zero width": "\u200b".join(KEY),
    "joiners": "\u2060\ufeff".join(KEY),
    "soft hyphens": "\u00ad".join(KEY),
    "direction marks": inert("\u200e".join(KEY)),
    "controls": inert("\x00".join(KEY)),
}


@pytest.mark.parametrize("said", SPELLINGS.values(), ids=SPELLINGS)
def test_it_is_masked_however_it_is_spelled(said):
    text = said.join(MARKS)
    hidden = Secrets([KEY]).hidden(text)
    assert len(hidden) == len(text)
    assert hidden.startswith(MARKS[0])
    assert hidden.endswith(MARKS[1])
    assert not any(piece in hidden for piece in (KEY[4:10], "Secret", "c2Vjcm", "456"))
    assert not Secrets([KEY])._holds(hidden)
    assert hidden.count("*") >= len(KEY), "of some spellings no piece can be read in any case"


def test_two_keys_and_each_place_are_masked():
    other = "another-key-of-mine"
    text = f"{KEY} {other} {quote(KEY, safe='')} {' '.join(other)}"
    hidden = Secrets([KEY, other]).hidden(text)
    assert set(hidden) == {"*", " "}
    assert len(hidden) == len(text)


def raised(key):
    """In capitals, apart from letters that have none of their own, as ß, which becomes SS."""
    return "".join(one.upper() if one.upper().lower() == one else one for one in key)


@given(
    st.text(st.characters(exclude_categories=("C", "Z")), min_size=6, max_size=40),
    st.text(max_size=60),
    st.sampled_from([str, raised, quote, html.escape, lambda key: encoded(base64.b64encode, key)]),
)
def test_of_any_key_nothing_stays_and_the_length_does(key, around, spelled):
    said = f"{around}{spelled(key)}{around}"
    hidden = Secrets([key]).hidden(said)
    assert len(hidden) == len(said)
    assert key not in hidden
    assert spelled(key) not in hidden or len(spelled(key)) < 10  # base64 of what is hardly letters


ORDINARY = (
    "There is none: 100%, a&b, C:\\new\\table, &copy; 2024, %zz, \\u12, &#99999999; and more.",
    "The token is a word; the tokens are words. To ken, an atoken.",
    "Zürich \u200b \ufffd 😀 \ud800".encode("utf-8", "replace").decode(),
    "",
)


@pytest.mark.parametrize("text", ORDINARY)
@pytest.mark.parametrize("keys", [(), ("none",), ("to-ken",), (KEY,), ("ein-Schlüssel-€",)])
def test_ordinary_text_stays(text, keys):
    assert Secrets(keys).hidden(text) == text


def test_a_short_key_is_masked_as_it_is_and_encoded_but_no_sentence_is():
    short = Secrets(["the-cat"])
    assert short.hidden("was THE-CAT here") == "was ******* here"
    assert short.hidden("was the%2dcat here") == "was ********* here"
    assert "*" in short.hidden(b"the-cat".hex())
    assert short.hidden("was the cat here") == "was the cat here"


def test_a_key_of_other_letters_is_masked():
    key = "schlüssel-für-дверь"
    for said in (key, quote(key), key.encode().hex()):
        assert set(Secrets([key]).hidden(said)) == {"*"}, said


@pytest.mark.parametrize(
    "piece", ["\\", "%", "&", "%25", "&amp;", "\\\\u005c", "&#", KEY[:-1], " ".join(KEY), "a"], ids=repr
)
def test_no_text_takes_long(piece):
    """Of what nearly is an escape, or the key: far from a time that grows with its square.

    Such a time would be 20 s for a megabyte where it is 1.8 s here.
    """
    text = piece * (300_000 // len(piece))
    began = time.process_time()
    assert len(Secrets([KEY]).hidden(text)) == len(text)
    assert time.process_time() - began < 1.8
