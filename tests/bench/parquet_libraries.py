"""Events to a Parquet file and back: CPU time and memory of the harness, and of pyarrow.

python tests/bench/parquet_libraries.py write|read harness|pyarrow FOLDER EVENTS
"""

import resource
import sys
import threading
from pathlib import Path

import numpy as np

from harness.records.layout import EVENT_DTYPE, EventKind, Records, empty_requests
from harness.store import columns
from harness.store.confined import Confined

GROUP, UNKNOWN = 1_000_000, -1
NAMES = [kind.name.lower() for kind in EventKind]


def mapped(path, count):
    """A cell's events as the load leaves them: a file that is mapped."""
    if not path.exists():
        rng, events = np.random.default_rng(0), np.memmap(path, EVENT_DTYPE, "w+", shape=count)
        for start in range(0, count, GROUP):
            part = events[start : start + GROUP]
            at = np.arange(start, start + len(part))
            part["seq"] = at // 250
            part["kind"] = np.where(at % 250 == 249, EventKind.USAGE, EventKind.TEXT)
            part["text_chars"] = rng.integers(1, 9, len(part))
            part["text_chars"][at % 250 == 249] = UNKNOWN
            part["wire_bytes"] = rng.integers(180, 260, len(part))
            part["stamp_ns"] = at * 50_000 + rng.integers(0, 90_000, len(part))
        events.flush()
    return np.memmap(path, EVENT_DTYPE, "r", shape=count)


def write_harness(folder, events):
    requests = empty_requests(int(events["seq"][-1]) + 1)
    requests["seq"] = np.arange(len(requests))
    none = [""] * len(requests)
    records = Records(requests, events, none, none, none)
    columns.write_records(records, Confined(folder.parent), folder.name)


def read_harness(folder, count):
    return columns.read_records(Confined(folder.parent), folder.name, closed_loop=True).events


def write_pyarrow(folder, events):
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for start in range(0, len(events), GROUP):
        values = {
            name: np.ascontiguousarray(events[start : start + GROUP][name]) for name in EVENT_DTYPE.names
        }
        made = {name: pa.array(column, mask=column == UNKNOWN) for name, column in values.items()}
        made["kind"] = pa.DictionaryArray.from_arrays(pa.array(values["kind"].astype(np.int8)), NAMES)
        table = pa.table(made)
        writer = writer or pq.ParquetWriter(
            folder / "events.parquet", table.schema, compression="snappy", write_statistics=False
        )
        writer.write_table(table, row_group_size=GROUP)
    writer.close()


def read_pyarrow(folder, count):
    import pyarrow as pa
    import pyarrow.parquet as pq

    file, start, events = pq.ParquetFile(folder / "events.parquet"), 0, np.zeros(count, EVENT_DTYPE)
    for index in range(file.num_row_groups):
        table = file.read_row_group(index)
        part = events[start : start + len(table)]
        for name in EVENT_DTYPE.names:
            column = table.column(name).combine_chunks()
            if name != "kind":
                part[name] = column.fill_null(UNKNOWN).to_numpy(zero_copy_only=False)
                continue
            column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            codes = np.array([NAMES.index(one) for one in column.dictionary.to_pylist()], np.uint8)
            part[name] = codes[column.indices.to_numpy(zero_copy_only=False)]
        start += len(table)
    return events


def own_mib():
    """Without pages of mapped files, which the system takes back when it needs them."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon")) / 1024


class Peak(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.first = self.most = own_mib()
        self.done = threading.Event()

    def run(self):
        while not self.done.wait(0.005):
            self.most = max(self.most, own_mib())


def cpu_s():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main(what, library, folder, count):
    folder, count = Path(folder), int(count)
    events = mapped(folder / f"{count}.bin", count)
    for name in ("duckdb", "pandas") if library == "harness" else ("pyarrow.parquet",):
        __import__(name)
    peak, began = Peak(), cpu_s()
    peak.start()
    back = globals()[f"{what}_{library}"](folder, events if what == "write" else count)
    took = cpu_s() - began
    peak.done.set()
    print(f"{library} {what} {count}: CPU {took:.2f} s, +{peak.most - peak.first:.0f} MiB")
    assert what == "write" or (back == events).all()


if __name__ == "__main__":
    main(*sys.argv[1:])
