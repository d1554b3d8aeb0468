import pytest

# Minutes each: begun first, so that two workers end together.
_LONG = ("test_verdicts", "test_run", "test_cache_state", "test_nights", "test_capacity", "test_stopping")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.stem not in _LONG)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty directory to run in, with a cache of its own and room for backends."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "backends").mkdir()
    return tmp_path
