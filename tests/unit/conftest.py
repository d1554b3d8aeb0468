"""The order of the unit tests."""

# Files whose tests take seconds each. Begun first, so that no worker is left with one at the end.
_LONG = """
contributing_code seal baseline extremes notebook queues load verified exchange frames page_server
""".split()


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.stem.removeprefix("test_") not in _LONG)
