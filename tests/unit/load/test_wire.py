"""What an error text must not repeat."""

import base64

from harness.load.wire import secrets

HEADERS = {"Authorization": "Bearer sk-1", "X-Api-Key": "k-2", "content-type": "application/json"}


def basic(said):
    return base64.b64encode(said.encode()).decode()


def test_keys_in_headers_are_secret_with_and_without_their_scheme(monkeypatch):
    monkeypatch.delenv("http_proxy", raising=False)
    assert secrets("http://10.0.0.2/v1", HEADERS) == ("Bearer sk-1", "sk-1", "k-2")


def test_so_are_the_credentials_of_the_url_and_of_the_proxy_in_every_form(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://user:pr0xy@10.0.0.1:3128")
    found = secrets("http://me:w0rd@10.0.0.2/v1", {})
    assert {"pr0xy", "w0rd", basic("user:pr0xy"), basic("me:w0rd")} <= set(found)
    assert sorted(found, key=len, reverse=True) == list(found)
