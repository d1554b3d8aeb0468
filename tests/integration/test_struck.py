"""One process of a run is killed: nothing stays behind, the dead one is named, what was measured is kept."""

import pytest

from tests.integration.struck import Strike, broken

STRIKES = (Strike("bench", "KILL", "load"), Strike("load worker", "KILL", "load"))


@pytest.mark.long
@pytest.mark.parametrize("strike", STRIKES, ids=str)
def test_what_is_promised_holds_whoever_is_killed(strike, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert broken(tmp_path, strike) == []
