"""Write or read 5 million events with one library: CPU time and memory, as in docs/metrics.md.

python tests/bench/parquet_libraries.py write|read pyarrow|duckdb|fastparquet FILE
"""

import resource
import sys
import time
from pathlib import Path

import numpy as np

EVENTS, GROUP, UNKNOWN = 5_000_000, 1_000_000, -1
NAMES = ["text", "reasoning", "usage", "other"]
DTYPE = np.dtype([("seq", "<i8"), ("kind", "u1"), ("tokens", "<i8"), ("bytes", "<i8"), ("at_ns", "<i8")])


def made():
    rng, events = np.random.default_rng(0), np.zeros(EVENTS, DTYPE)
    events["seq"] = np.arange(EVENTS) // 250
    events["kind"] = (np.arange(EVENTS) % 250 == 249) * 2
    events["tokens"] = UNKNOWN
    events["bytes"] = rng.integers(180, 260, EVENTS)
    events["at_ns"] = np.cumsum(rng.integers(100_000, 90_000_000, EVENTS))
    return events


def groups(events):
    for start in range(0, EVENTS, GROUP):
        rows = events[start : start + GROUP]
        yield {name: np.ascontiguousarray(rows[name]) for name in DTYPE.names}


def write_pyarrow(path, events):
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for columns in groups(events):
        made = {name: pa.array(values, mask=values == UNKNOWN) for name, values in columns.items()}
        made["kind"] = pa.DictionaryArray.from_arrays(pa.array(columns["kind"].astype(np.int8)), NAMES)
        table = pa.table(made)
        writer = writer or pq.ParquetWriter(path, table.schema, compression="snappy", write_statistics=False)
        writer.write_table(table, row_group_size=GROUP)
    writer.close()


def write_duckdb(path, events):
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    connection.execute(f"create type kind as enum {tuple(NAMES)}")
    connection.register("events", {name: np.ascontiguousarray(events[name]) for name in DTYPE.names})
    known = ", ".join(f"nullif({name}, -1) as {name}" for name in ("tokens", "bytes", "at_ns"))
    connection.execute(
        f"copy (select seq, ({NAMES})[kind + 1]::kind as kind, {known} from events) to '{path}' "
        f"(format parquet, compression snappy, row_group_size {GROUP})"
    )


def write_fastparquet(path, events):
    import fastparquet
    import pandas as pd

    for index, columns in enumerate(groups(events)):
        frame = {n: pd.arrays.IntegerArray(values, values == UNKNOWN) for n, values in columns.items()}
        frame["kind"] = pd.Categorical.from_codes(columns["kind"].astype(np.int8), categories=pd.Index(NAMES))
        fastparquet.write(
            path,
            pd.DataFrame(frame),
            compression="SNAPPY",
            append=index > 0,
            object_encoding="utf8",
            stats=False,
        )


def read_pyarrow(path, out):
    import pyarrow as pa
    import pyarrow.parquet as pq

    file, start = pq.ParquetFile(path), 0
    for index in range(file.num_row_groups):
        table = file.read_row_group(index)
        part = out[start : start + len(table)]
        for name in DTYPE.names:
            column = table.column(name).combine_chunks()
            if name != "kind":
                part[name] = column.fill_null(UNKNOWN).to_numpy(zero_copy_only=False)
                continue
            column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            codes = np.array([NAMES.index(name) for name in column.dictionary.to_pylist()], np.uint8)
            part[name] = codes[column.indices.to_numpy(zero_copy_only=False)]
        start += len(table)


def read_duckdb(path, out):
    import duckdb

    known = ", ".join(f"coalesce({name}, -1) as {name}" for name in ("tokens", "bytes", "at_ns"))
    kind = f"list_position({NAMES}, kind::varchar) - 1 as kind"
    connection = duckdb.connect(config={"threads": 1})
    found = connection.execute(f"select seq, {kind}, {known} from read_parquet('{path}')").fetchnumpy()
    for name in DTYPE.names:
        out[name] = found[name]


def read_fastparquet(path, out):
    import fastparquet

    frame = fastparquet.ParquetFile(path).to_pandas()
    for name in DTYPE.names:
        if name == "kind":
            codes = {kind: code for code, kind in enumerate(NAMES)}
            out[name] = frame[name].astype(object).map(codes).to_numpy(np.uint8)
        else:
            out[name] = frame[name].fillna(UNKNOWN).to_numpy(dtype=DTYPE[name])


def peak_mib():
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def main(what, library, path):
    events = made() if what == "write" else np.zeros(EVENTS, DTYPE)
    __import__(library)
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM counts from here
    before, usage = peak_mib(), resource.getrusage(resource.RUSAGE_SELF)
    cpu_s, began = usage.ru_utime + usage.ru_stime, time.perf_counter()
    globals()[f"{what}_{library}"](path, events)
    wall_s, usage = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = usage.ru_utime + usage.ru_stime - cpu_s
    print(f"{library} {what}: {wall_s:.2f} s, CPU {cpu_s:.2f} s, +{peak_mib() - before:.0f} MiB")
    if what == "read":
        assert (events["kind"] == made()["kind"]).all()
        assert (events["at_ns"] == made()["at_ns"]).all()


if __name__ == "__main__":
    main(*sys.argv[1:])
