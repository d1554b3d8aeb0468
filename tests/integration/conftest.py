import pytest


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty directory to run in, with a cache of its own and room for backends."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "backends").mkdir()
    return tmp_path
