"""A server may say anything for ever: outside the load it is heard within limits, and its error is one."""

import gzip
import json
import re
import select
import socket
from contextlib import closing
from unittest.mock import Mock
from urllib.parse import urlsplit

import pytest

from harness.client import look_up as look_up_module
from harness.client.answer import NoAnswer, NoAnswerError
from harness.client.client import Client
from harness.client.limits import Account, Limits
from harness.client.look_up import LookUp
from harness.errors import SetupError
from harness.host.access import Access
from harness.host.resolve import resolve
from harness.untrusted import BadDocumentError
from tests.factories.answers import CHUNKED, chunked
from tests.factories.hostile import HARMS, head, serving, sized
from tests.factories.sockets import PEM, hanging, server_tls
from tests.integration.load_server import serve
from tests.waiting import in_time

TIGHT = Limits(total_s=0.3, wire_bytes=1 << 20, body_bytes=2 << 20)
BRIEF = Limits(total_s=5.0)  # less than it takes to give up connecting
ROOMY = Limits(total_s=60, wire_bytes=1 << 20, body_bytes=2 << 20)  # so that size is passed before time


def ask(say, limits=ROOMY, credentials=(), headers=None, method="GET", **more):
    with (
        serving(lambda request: iter([say]) if isinstance(say, bytes) else say()) as url,
        closing(Client(url, Access(headers or {}, credentials=credentials))) as client,
    ):
        return client.ask(method, "/v1/models", limits=limits, **more)


@pytest.mark.parametrize("harm", HARMS)
def test_every_harm_ends_within_the_limits_with_one_error(harm):
    with pytest.raises(SetupError) as raised:
        in_time(lambda: ask(HARMS[harm], TIGHT))
    assert raised.value.where.startswith("http://127.0.0.1:")
    assert "/v1/models" in str(raised.value)
    assert re.search(r"longer than \d+ bytes|within 0.3 s", raised.value.what)


@pytest.mark.parametrize("harm", HARMS)
def test_every_harm_ends_for_the_look_ups_of_the_sampler_too(harm):
    with serving(lambda _: HARMS[harm]()) as url, closing(LookUp(Access(), TIGHT)) as look_up:
        try:
            assert in_time(lambda: look_up.ask(f"{url}/metrics")).status == 103  # it goes on no more
        except SetupError as error:
            said = str(error)
            assert re.search(rf"{url}/metrics: .*(longer than|within 0.3 s|more than|line)", said)


def looked_up(said):
    with serving(lambda _: iter([said]), stay=False) as url, closing(LookUp(Access(), ROOMY)) as look_up:
        return in_time(lambda: look_up.ask(f"{url}/metrics"))


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (head(f"content-length: {10**15}") + b"abc", "longer than 2097152 bytes"),
        (head("content-length: -5") + b"abc", "an impossible length"),
        (head("content-length: many") + b"abc", "an impossible length"),
        (head("content-length: 5") + b"abc", "ended 2 bytes early"),
        (head("transfer-encoding: chunked") + b"fffffffffffff\r\nabc", "IncompleteRead"),
        (head("transfer-encoding: chunked") + b"-5\r\nabc", "/metrics"),
        (head("content-encoding: br", "content-length: 3") + b"abc", "content-encoding 'br', not asked for"),
        (head("content-encoding: gzip", "content-length: 3") + b"abc", "compressed answer is damaged"),
    ],
)
def test_a_look_up_takes_no_more_memory_than_its_limits_whatever_is_announced(said, error):
    with pytest.raises(SetupError, match=error):
        looked_up(said)


@pytest.mark.parametrize("size", [0, 1, 1000, 100_000])
def test_a_look_up_reads_what_is_within_the_limits_whole(size):
    body = b"x" * size
    chunked = head("transfer-encoding: chunked") + (b"%x\r\n%b\r\n" % (size, body) if size else b"")
    for said in (
        sized(body),
        sized(gzip.compress(body), "content-encoding: gzip"),
        chunked + b"0\r\n\r\n",
        head() + body,
    ):
        assert looked_up(said).body == body


def test_a_url_without_a_port_is_looked_up_at_that_of_its_scheme(monkeypatch):
    asked = []

    def refuse(address, *_more):
        asked.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "getaddrinfo", Mock(side_effect=socket.gaierror))
    monkeypatch.setattr(socket, "create_connection", refuse)
    with closing(LookUp(Access(), ROOMY)) as look_up:
        for url in ("https://gate", "http://gate", "https://gate:81"):
            with pytest.raises(SetupError):
                look_up.ask(f"{url}/metrics")
    assert asked == [("gate", 443), ("gate", 80), ("gate", 81)]


def test_a_page_that_is_refused_is_an_error_without_the_number_of_the_system():
    with closing(LookUp(Access(), ROOMY)) as look_up, pytest.raises(SetupError) as caught:
        look_up.ask("http://127.0.0.1:9/metrics")
    assert str(caught.value) == "http://127.0.0.1:9/metrics: Connection refused"


@pytest.mark.parametrize("outside", [True, False])
def test_an_address_that_hangs_holds_up_no_question(outside, monkeypatch):
    """The name of the server has it first."""
    known = socket.getaddrinfo
    with serving(lambda _: iter([sized(b"x 1\n")])) as url, hanging() as silent:
        place = urlsplit(url)

        def named(host, *more, **rest):
            if host != "two.test":
                return known(host, *more, **rest)
            both = (silent, (place.hostname, place.port))
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in both]

        monkeypatch.setattr(socket, "getaddrinfo", named)
        url = f"http://two.test:{place.port}"
        with closing(Client(url) if outside else LookUp(Access(), BRIEF)) as asking:
            answer = asking.ask("GET", "/m", limits=BRIEF) if outside else asking.ask(f"{url}/m")
    assert answer.body == b"x 1\n"


def test_a_key_at_the_end_of_a_shortened_error_is_hidden_whole():
    """The error was cut first: most of the key stood at its end, and was no key any more."""
    key = "sk-0123456789abcdef"
    with serving(lambda _: iter([b"x" * 190 + key.encode() + b"\r\n\r\n"]), stay=False) as url:
        access = Access({"authorization": f"Bearer {key}"}, credentials=(key,))
        with closing(LookUp(access, ROOMY)) as look_up, pytest.raises(SetupError) as caught:
            in_time(lambda: look_up.ask(f"{url}/metrics"))
    assert "xxx*" in str(caught.value)
    assert key[:6] not in str(caught.value)


def test_a_key_in_a_line_that_is_no_header_is_hidden_whole():
    key = "sk-0123456789abcdef"
    answer = b"HTTP/1.1 200 OK\r\n" + b"x" * 160 + key.encode() + b"\r\n\r\n"
    with serving(lambda _: iter([answer]), stay=False) as url:
        access = Access({"authorization": f"Bearer {key}"}, credentials=(key,))
        with closing(Client(url, access)) as client, pytest.raises(NoAnswerError) as caught:
            in_time(lambda: client.ask("GET", "/v1/models", limits=ROOMY))
    assert "xxx*" in str(caught.value)
    assert key[:6] not in str(caught.value)


def test_look_ups_open_again_what_was_closed():
    heads = []

    def say(request):
        heads.append(request)
        return iter([sized(b"x 1\n", "connection: close")])

    with serving(say) as url, closing(LookUp(Access({"a": "b"}), ROOMY)) as look_up:
        assert (look_up.ask(f"{url}/m?x=1").status, look_up.ask(f"{url}/m").body) == (200, b"x 1\n")
    assert heads[0].startswith(b"GET /m?x=1 HTTP/1.1\r\n")
    assert b"a: b\r\n" in heads[0]


def test_look_ups_open_again_what_was_closed_without_a_word(monkeypatch):
    """As llama.cpp does after each answer. The addresses of its name are tried once: each read opened a
    connection more to find the one that answers.
    """
    found = Mock(wraps=resolve)
    monkeypatch.setattr(look_up_module, "resolve", found)
    with (
        serving(lambda _: iter([sized(b"x 1\n")]), stay=False) as url,
        closing(LookUp(Access(), ROOMY)) as look_up,
    ):
        for _ in range(3):
            assert look_up.ask(f"{url}/m").body == b"x 1\n"
            (connection,) = look_up._connections.values()
            select.select([connection.sock], [], [])  # the close has arrived
    assert found.call_count == 1


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_question_meets_the_close_of_a_kept_connection_and_is_asked_again(method, reset):
    """A server may close one as the next request leaves. What is not a question is not repeated."""

    def answer(peer):
        if peer.served == 1:
            peer.say(sized(b"{}"))
        else:
            (peer.reset if reset else peer.close)()

    with serve(answer) as server, closing(Client(server.url.removesuffix("/v1/chat/completions"))) as client:
        client.ask("GET", "/v1/models", limits=ROOMY)
        if method == "GET":
            assert client.ask("GET", "/v1/models", limits=ROOMY).ok
        else:
            with pytest.raises(NoAnswerError) as caught:
                client.ask("POST", "/reset", limits=ROOMY)
            assert caught.value.kind is NoAnswer.LOST
        assert server.connections == (2 if method == "GET" else 1)


def test_a_body_of_bytes_is_said_to_be_json():
    """vLLM and SGLang answer 400 to anything else."""
    heads = []

    def say(request):
        heads.append(request)
        return iter([sized(b"{}", "connection: close")])

    with serving(say) as url, closing(Client(url)) as client:
        client.ask("POST", "/v1/chat/completions", content=b"{}")
    assert b"content-type: application/json\r\n" in heads[0].lower()


def test_an_answer_that_begins_with_control_bytes_is_named_as_no_http():
    """A TLS server says so to a request in clear: 21 is an alert."""
    for said in (b"\x15\x03\x01\x00\x02\x02\x16", b"SSH-2.0-x\r\n\r\n"):
        with pytest.raises(SetupError, match=r"no answer to GET /v1/models: what came is not HTTP$"):
            ask(said)


def test_the_limit_that_was_passed_is_named():
    with pytest.raises(SetupError, match=r"models: the answer is longer than 1048576 bytes"):
        ask(HARMS["endless body"], ROOMY)
    with pytest.raises(SetupError, match=r"models: the head of the answer is longer than 65536 bytes"):
        ask(HARMS["endless headers"], ROOMY)
    with pytest.raises(
        SetupError, match=r"models: the answer is longer than 2097152 bytes once decompressed"
    ):
        ask(HARMS["small gzip bomb"], ROOMY)
    with pytest.raises(SetupError, match=r"models: the answer has more than 200 headers"):
        ask(sized(b"{}", *["a: b"] * 201), ROOMY)


@pytest.mark.parametrize(
    ("total_s", "words"), [(29.9998, "30 s"), (0.3, "0.3 s"), (1234, "1234 s"), (12345.6, "12346 s")]
)
def test_a_time_limit_is_named_without_what_is_lost_of_a_deadline(total_s, words):
    assert Account(Limits(total_s=total_s)).late == f"the answer did not end within {words}"


@pytest.mark.parametrize("size", [0, 1, 1000, 100_000])
def test_what_is_within_the_limits_comes_whole(size):
    body = json.dumps(["é" * size]).encode()
    assert ask(sized(body)).document() == ["é" * size]
    assert ask(sized(gzip.compress(body), "content-encoding: gzip")).body == body


def test_every_member_of_a_compressed_answer_is_read():
    packed = gzip.compress(b'["a",') + gzip.compress(b'"b"]')
    assert ask(sized(packed, "content-encoding: gzip")).document() == ["a", "b"]
    assert ask(sized(packed + bytes(9), "content-encoding: gzip")).document() == ["a", "b"]
    answer = head(CHUNKED, "content-encoding: gzip") + chunked([packed + bytes(3), bytes(6)])
    assert ask(answer).document() == ["a", "b"]
    assert ask(sized(b"", "content-encoding: gzip")).body == b""


@pytest.mark.parametrize("lost", [1, 8, 12])
def test_a_compressed_answer_that_ends_early_is_not_taken_for_whole(lost):
    packed = gzip.compress(json.dumps(["é" * 50]).encode())[:-lost]
    with pytest.raises(SetupError, match="the compressed answer is damaged: it ends early"):
        ask(sized(packed, "content-encoding: gzip"))


def test_an_upload_is_sent_whole(tmp_path):
    (tmp_path / "weights").write_bytes(bytes(300_000))
    with (tmp_path / "weights").open("rb") as file:
        assert ask(sized(b"{}"), method="POST", content=file).ok


@pytest.mark.parametrize(
    "place", ["http://169.254.169.254/key", "https://127.0.0.1/v1/models", "file:///etc/passwd"]
)
def test_a_redirect_is_told_and_not_followed(place):
    answer = ask(sized(b"", f"location: {place}", status="302 Found"))
    assert not answer.ok
    assert place in answer.said


def test_what_is_no_http_is_an_error_and_no_traceback():
    for said in (b"\0" * 100, b"HTTP/1.1 abc\r\n\r\n", head("a b: c"), b"HTTP/1.1 200 OK\r\n: x\r\n\r\n"):
        with pytest.raises(SetupError, match="no answer to GET /v1/models"):
            ask(said)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"SSH-2.0-x\r\n\r\n", NoAnswer.UNREADABLE),
        (b"\x15\x03\x01\x00\x02\x02\x16", NoAnswer.UNREADABLE),
        (head("content-length: x"), NoAnswer.UNREADABLE),
        (sized(b"{}", "content-encoding: gzip"), NoAnswer.UNREADABLE),
        (sized(b"{}", "content-encoding: zstd"), NoAnswer.UNREADABLE),
        (sized(b"{}", *["a: b"] * 201), NoAnswer.UNREADABLE),
        (head("a: " + "b" * 70_000), NoAnswer.UNREADABLE),
        (b"", NoAnswer.LOST),
        (head("content-length: 9") + b"{}", NoAnswer.LOST),
        (head("transfer-encoding: chunked") + b"2\r\n{}", NoAnswer.LOST),
    ],
)
def test_an_error_says_what_kind_of_answer_did_not_come(answer, kind):
    with (
        serving(lambda _: iter([answer]), stay=False) as url,
        closing(Client(url)) as client,
        pytest.raises(NoAnswerError) as raised,
    ):
        client.ask("GET", "/v1/models")
    assert raised.value.kind is kind


def test_a_port_without_a_server_is_a_lost_answer():
    with closing(Client("http://127.0.0.1:9")) as client, pytest.raises(NoAnswerError) as raised:
        client.ask("GET", "/v1/models")
    assert raised.value.kind is NoAnswer.LOST
    assert raised.value.what == "no answer to GET /v1/models: Connection refused"


def test_an_encoding_that_nobody_asked_for_is_refused():
    with pytest.raises(SetupError, match="content-encoding 'zstd'"):
        ask(sized(b"{}", "content-encoding: zstd"))
    with pytest.raises(SetupError, match="damaged"):
        ask(sized(b"{}", "content-encoding: gzip"))


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"data":[', b'[{"error":'])
@pytest.mark.parametrize("levels", [65, 900, 100_000])
def test_deep_json_is_one_error(opening, levels):
    with pytest.raises(BadDocumentError, match=r"deeper than 64 levels|not JSON"):
        ask(sized(opening * levels + b"0" + b"]" * levels), Limits()).document()


def test_the_key_is_in_nothing_that_is_read():
    key = "sk-Very/Secret+0123"
    echo = json.dumps({"error": {"message": f"no: Bearer {key} or {key.upper()}"}, key: "\u202e\x1b[31m"})
    answer = ask(sized(echo.encode(), status="400 No"), credentials=[key])
    for found in (answer.text, answer.said, str(answer.document())):
        assert key.lower() not in found.lower()
        assert "\x1b" not in found
        assert "\u202e" not in found


def by_proxy(monkeypatch, url, scheme):
    """What is answered for engine.invalid, which only the proxy at `url` reaches."""
    kind, _, place = url.removesuffix("/v1/chat/completions").partition("://")
    monkeypatch.setenv(f"{scheme}_proxy", f"{kind}://user:word@{place}")
    monkeypatch.delenv("no_proxy", raising=False)
    with closing(Client(f"{scheme}://engine.invalid")) as client:
        return client.ask("GET", "/v1/models", limits=ROOMY)


@pytest.mark.parametrize("tls", [False, True])
def test_a_server_behind_a_proxy_is_asked_through_it_as_the_load_is(monkeypatch, tls):
    def answer(peer):
        peer.say(sized(b'{"data":[]}'))

    monkeypatch.setenv("SSL_CERT_FILE", str(PEM))
    with serve(answer, tunnel=server_tls() if tls else None) as proxy:
        assert by_proxy(monkeypatch, proxy.url, "https" if tls else "http").status == 200
    first, *others = proxy.heads
    wanted = b"CONNECT engine.invalid:443 " if tls else b"GET http://engine.invalid/v1/models "
    assert first.startswith(wanted)
    assert b"proxy-authorization: basic dxnlcjp3b3jk" in first.lower()
    assert not any(b"proxy-authorization" in head.lower() for head in others)


def test_a_page_is_looked_up_through_a_proxy_too(monkeypatch):
    """What is read while the load runs: the proxy that the load takes was not asked for it."""
    with serve(lambda peer: peer.say(sized(b"up 1\n"))) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1/chat/completions"))
        monkeypatch.delenv("no_proxy", raising=False)
        with closing(LookUp(Access(), ROOMY)) as look_up:
            assert look_up.ask("http://engine.invalid/metrics").body == b"up 1\n"
    assert proxy.heads[0].startswith(b"GET http://engine.invalid/metrics ")


def test_a_proxy_that_refuses_is_named_with_the_way_round_it(monkeypatch):
    def refuse(peer):
        peer.say(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")

    with serve(refuse) as proxy, pytest.raises(NoAnswerError) as raised:
        by_proxy(monkeypatch, proxy.url, "https")
    assert str(raised.value) == "https://engine.invalid: no answer to GET /v1/models: 403 Forbidden"
    assert raised.value.hint == (
        "https_proxy names a proxy: set NO_PROXY=engine.invalid to send straight to the server"
    )


def test_a_wrong_proxy_is_one_error(monkeypatch):
    with pytest.raises(SetupError) as raised:
        by_proxy(monkeypatch, "ftp://h:1", "https")
    assert "word" not in str(raised.value)
    assert raised.value.where == "https_proxy"
