"""What an error text must not repeat."""

import base64

from harness.host.access import Access
from harness.load.wire import secrets


def basic(said):
    return base64.b64encode(said.encode()).decode()


def test_credentials_are_secret_the_longest_first(monkeypatch):
    monkeypatch.delenv("http_proxy", raising=False)
    access = Access(credentials=("sk-1", "Bearer sk-1"))
    assert secrets("http://10.0.0.2/v1", access) == ("Bearer sk-1", "sk-1")


def test_so_are_the_credentials_of_the_url_and_of_the_proxy_in_every_form(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://user:pr0xy@10.0.0.1:3128")
    found = secrets("http://me:w0rd@10.0.0.2/v1", Access())
    assert {"pr0xy", "w0rd", basic("user:pr0xy"), basic("me:w0rd")} <= set(found)
    assert sorted(found, key=len, reverse=True) == list(found)
