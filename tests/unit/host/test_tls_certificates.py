"""Files of a client certificate that lack something: the error says what, and which flag gives it."""

from pathlib import Path

import pytest

from harness.errors import SetupError
from harness.host.tls import Certificates

_PEM = Path(__file__).parents[2] / "integration" / "load_tls.pem"


@pytest.fixture
def files(tmp_path):
    """The certificate alone, its key alone, and a text."""
    whole = _PEM.read_text()
    begin = whole.index("-----BEGIN CERTIFICATE")
    end = whole.index("-----END CERTIFICATE-----\n") + len("-----END CERTIFICATE-----\n")
    texts = {"torn.pem": "-----BEGIN CERTIFICATE-----\nabc\n"}
    texts |= {"c.pem": whole[begin:end], "k.pem": whole[:begin] + whole[end:], "notes.txt": "no PEM at all\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("key", ["", "c.pem"])
def test_a_certificate_without_its_key_is_asked_for_the_key(files, key):
    with pytest.raises(SetupError, match="holds a certificate and no key") as caught:
        Certificates(client=str(files / "c.pem"), client_key=key and str(files / key)).context()
    assert caught.value.where == str(files / "c.pem")
    assert caught.value.hint == "name the file of its key: --client-key FILE"


@pytest.mark.parametrize(
    ("client", "key"),
    [("notes.txt", ""), ("k.pem", ""), ("c.pem", "notes.txt"), ("torn.pem", ""), ("torn.pem", "k.pem")],
)
def test_a_file_that_lacks_more_is_not_pem(files, client, key):
    with pytest.raises(SetupError, match="cannot be used: not pem"):
        Certificates(client=str(files / client), client_key=key and str(files / key)).context()


def test_a_certificate_with_its_key_is_shown(files):
    Certificates(client=str(files / "c.pem"), client_key=str(files / "k.pem")).context()
    Certificates(client=str(_PEM)).context()
