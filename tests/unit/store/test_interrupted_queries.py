import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from duckdb import DuckDBPyConnection

from harness.store import parquet
from harness.store.confined import Confined
from harness.store.database import database


@pytest.fixture(autouse=True)
def _alarm_is_ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def interrupted(connected: DuckDBPyConnection) -> None:
    """A query of minutes, and Ctrl-C after 50 ms."""
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    connected.execute("select sum(a.range * b.range) from range(1000000) a, range(1000000) b")


def test_of_a_file(tmp_path: Path) -> None:
    files = Confined(tmp_path)
    parquet.write(files, "some.parquet", [{"one": parquet.Column(np.arange(3))}])
    with pytest.raises(KeyboardInterrupt), parquet.reading(files, "some.parquet") as source:
        interrupted(source.connected)


def test_of_runs() -> None:
    with pytest.raises(KeyboardInterrupt), database([], lambda _folder, _cell: np.zeros(0)) as (connected, _):
        interrupted(connected)


def test_another_error_stays_what_it_is() -> None:
    with pytest.raises(RuntimeError, match="other"), parquet.interruptible():
        raise RuntimeError("other")
