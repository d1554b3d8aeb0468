"""Certificates: what is trusted, and errors that say what a file lacks and which flag gives it."""

import ssl
from pathlib import Path

import pytest

from harness.errors import SpecError
from harness.host.tls import Certificates

_PEM = Path(__file__).parents[2] / "integration" / "load_tls.pem"


@pytest.fixture
def files(tmp_path):
    """The certificate alone, its key alone, and a text."""
    whole = _PEM.read_text()
    begin = whole.index("-----BEGIN CERTIFICATE")
    end = whole.index("-----END CERTIFICATE-----\n") + len("-----END CERTIFICATE-----\n")
    texts = {"torn.pem": "-----BEGIN CERTIFICATE-----\nabc\n"}
    texts["empty.pem"] = ""
    texts |= {"c.pem": whole[begin:end], "k.pem": whole[:begin] + whole[end:], "notes.txt": "no PEM at all\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def shown(client, key):
    """One authority: the hundreds of the environment take longer to read than all else."""
    return Certificates(str(_PEM), client, key).context()


@pytest.mark.parametrize("key", ["", "c.pem"])
def test_a_certificate_without_its_key_is_asked_for_the_key(files, key):
    with pytest.raises(SpecError, match="holds a certificate and no key") as caught:
        shown(str(files / "c.pem"), key and str(files / key))
    assert caught.value.where == str(files / "c.pem")
    assert caught.value.hint == "name the file of its key: --client-key FILE"


@pytest.mark.parametrize(
    ("client", "key"),
    [
        *[("notes.txt", ""), ("k.pem", ""), ("c.pem", "notes.txt"), ("torn.pem", ""), ("torn.pem", "k.pem")],
        *[("empty.pem", ""), ("notes.txt", "missing.pem")],
    ],
)
def test_a_file_that_lacks_more_is_not_pem(files, client, key):
    with pytest.raises(SpecError, match="cannot be used: not pem"):
        shown(str(files / client), key and str(files / key))


@pytest.mark.parametrize("name", ["notes.txt", "missing.pem"])
def test_a_file_without_authorities_is_a_wrong_flag(files, name):
    with pytest.raises(SpecError, match="cannot be read"):
        Certificates(str(files / name)).context()


def test_a_certificate_with_its_key_is_shown(files):
    shown(str(files / "c.pem"), str(files / "k.pem"))
    Certificates(client=str(_PEM)).context()


def test_clients_share_what_they_trust_until_the_environment_names_other_files(monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    usual = Certificates().shared()
    assert Certificates().shared() is usual
    monkeypatch.setenv("SSL_CERT_FILE", str(_PEM))
    assert Certificates().shared().cert_store_stats()["x509"] == 1
    assert Certificates(client=str(_PEM)).shared() is not Certificates().shared()
    monkeypatch.delenv("SSL_CERT_FILE")
    assert Certificates().shared() is usual


@pytest.mark.parametrize("authorities", ["", str(_PEM)], ids=["of the environment", "named"])
def test_an_authority_that_every_python_took_is_taken_by_the_newer_ones_too(monkeypatch, authorities):
    usual = ssl.create_default_context

    def since_3_13(*given, **named):
        context = usual(*given, **named)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", since_3_13)
    context = Certificates(authorities).context()
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_a_server_that_answers_without_tls_is_named_as_one():
    ours, theirs = ssl.MemoryBIO(), ssl.MemoryBIO()
    secure = Certificates(str(_PEM)).context().wrap_bio(ours, theirs, server_hostname="gate")
    ours.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with pytest.raises(ssl.SSLError) as caught:
        secure.do_handshake()
    hint = Certificates().hint(str(caught.value))
    assert hint == "the server answers without TLS: its URL may begin with http://"


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("certificate has expired", "renew the server's certificate"),
        ("certificate is not yet valid", "renew the server's certificate"),
        ("unable to get local issuer certificate", "trust the authority"),
        ("IP address mismatch, certificate is not valid for '127.0.0.1'", "use the name"),
    ],
)
def test_no_authority_is_asked_for_where_the_certificate_itself_is_not_valid(words, first):
    failure = f"[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {words} (_ssl.c:992)"
    assert Certificates().hint(failure).startswith(first)
