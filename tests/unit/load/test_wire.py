"""What an error text must not repeat."""

import base64

import numpy as np

from harness.host.access import Access
from harness.load.exchange import Exchange
from harness.load.job import ClosedLoop, LoadJob, Sessions
from harness.load.wire import in_session, render, secrets


def basic(said):
    return base64.b64encode(said.encode()).decode()


def test_credentials_are_secret_the_longest_first(monkeypatch):
    monkeypatch.delenv("http_proxy", raising=False)
    access = Access(credentials=("sk-1", "Bearer sk-1"))
    assert secrets("http://10.0.0.2/v1", access) == ("Bearer sk-1", "sk-1")


def test_so_are_the_credentials_of_the_proxy_in_every_form(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://user:pr0xy@10.0.0.1:3128")
    said = basic("user:pr0xy")
    assert secrets("http://10.0.0.2/v1", Access()) == (f"Basic {said}", said, "pr0xy")


def job(sessions=None):
    access = Access({"x-chat": "c-{session}"}, query="v=1")
    return LoadJob("http://h/v1", access, [b"{}"] * 3, ClosedLoop(1), sessions)


def test_a_header_names_the_session_or_the_place_in_the_workload():
    chats = Sessions(np.array([7, 7, 9], np.int32), np.zeros(3, np.int64))
    for made, named in ((job(), (10, 11, 14)), (job(chats), (7, 7, 9))):
        wire = render("http://h/v1", made, made.bodies, [10, 11, 14])
        heads = [wire.request(index)[0] for index in range(3)]
        assert all(head.startswith(b"POST /v1?v=1 HTTP/1.1\r\n") for head in heads)
        assert [head.partition(b"x-chat: ")[2].partition(b"\r\n")[0] for head in heads] == [
            b"c-%d" % number for number in named
        ]
        others = [
            in_session([(b"x-chat", b"c-{session}")], made, Exchange(seq, 0, index))
            for index, seq in enumerate((10, 11, 14))
        ]
        assert others == [[(b"x-chat", b"c-%d" % number)] for number in named]
