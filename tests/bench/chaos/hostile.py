"""What a stranger may put into a run folder, drawn from a seed. `outside` is what none of it may reach."""

import gzip
import json
import os
import random
import shutil
import socket
from collections.abc import Callable, Mapping
from contextlib import chdir, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from harness.store import RunFolder, parquet, seal

LISTS, LONG_TEXT = 300_000, 40 << 20
_TARGETS = (".bashrc", ".ssh/authorized_keys", "pictures", "new", "run/summary.json", ".")
_NAMES = (
    "run[1]",
    "a*",
    "seq=5",
    "$(touch pwned)",
    "\x1b]0;owned\x07",
    "\u202etxt.exe",
    "-rf",
    "a b'c\"d",
    "{a,b}",
)
_NUMBERS = (1e308, -1e308, 1e-320, 0, -1, 2**63, 2**31, 10**400, None, True, "", [], {}, "1e9", float("nan"))
_TEXTS = (
    "\x1b]8;;http://127.0.0.1:1\x07click\x1b]8;;\x07",
    "<script>fetch('http://127.0.0.1:1')</script>",
    "../../../.bashrc",
    "$(touch pwned)",
    "x" * 1_000_000,
    "\x00",
    "\u202e",
    "{{7*7}}",
)


@dataclass(frozen=True)
class Place:
    """Of one case: the folder to spoil, the sandbox's home, and the address that must hear nothing."""

    run: Path
    home: Path
    address: str

    def any_file(self, rng: random.Random) -> Path:
        files = [path for path in sorted(self.run.rglob("*")) if path.is_file() and not path.is_symlink()]
        return rng.choice(files)

    def new_name(self, rng: random.Random) -> Path:
        """Where bench reads or writes: a file that is there, one it makes, or the partial of one."""
        written = (
            "table.txt",
            "table.md",
            "report.html",
            "plots/x.png",
            "logs/engine.log",
            "agreement/questions.json",
        )
        path = self.any_file(rng) if rng.random() < 0.4 else self.run / rng.choice(written)
        if rng.random() < 0.3:
            path = path.with_name(f".{path.name}.partial")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        return path


def links(place: Place, rng: random.Random) -> None:
    place.new_name(rng).symlink_to(place.home / rng.choice(_TARGETS))


def hard_links(place: Place, rng: random.Random) -> None:
    place.new_name(rng).hardlink_to(place.home / rng.choice([".bashrc", ".ssh/authorized_keys"]))


def device_links(place: Place, rng: random.Random) -> None:
    place.new_name(rng).symlink_to(rng.choice(["/dev/zero", "/dev/stdin", "/dev/tty", "/proc/self/environ"]))


def folder_links(place: Place, rng: random.Random) -> None:
    name = rng.choice(["plots", "cells", "logs", "agreement", "workloads", "set-aside", "cells/x"])
    path = place.run / name
    if path.is_dir():
        shutil.rmtree(path)
    path.symlink_to(place.home / rng.choice(["pictures", ".", "run"]))


def pipes(place: Place, rng: random.Random) -> None:
    path = place.new_name(rng)
    if rng.random() < 0.8:
        os.mkfifo(path)
        return
    with chdir(path.parent), socket.socket(socket.AF_UNIX) as one, suppress(OSError):
        one.bind(path.name[:90])


def holes(place: Place, rng: random.Random) -> None:
    with place.any_file(rng).open("r+b") as file:
        file.truncate(1 << rng.randint(27, 42))


def names(place: Place, rng: random.Random) -> None:
    """Of files in it; of the folder itself see `Place` in folders.py."""
    path = place.any_file(rng)
    with suppress(OSError):
        path.rename(path.with_name(rng.choice(_NAMES) + rng.choice(["", path.suffix])))


def crowds(place: Place, rng: random.Random) -> None:
    if rng.random() < 0.5:
        deep = place.run / rng.choice(["cells", "."])
        for _ in range(60):
            deep /= "d" * 60
        with suppress(OSError):
            deep.mkdir(parents=True)
        return
    inside = place.run / rng.choice(["cells", "agreement/backends", "workloads", "."])
    inside.mkdir(parents=True, exist_ok=True)
    for number in range(3000):
        (inside / f"{number}.json").write_bytes(b"{}")


def contacts(place: Place, rng: random.Random) -> None:
    """Options that ask a server, with a key of the environment, or start a program."""
    manifest = place.run / "manifest.json"
    document = json.loads(manifest.read_bytes())
    definition = place.run / "evil.toml"
    definition.write_text('[backend]\nname = "evil"\n[process]\ncommand = ["touch", "pwned"]\n')
    document["state"] = "interrupted"
    document["options"] = {
        "scenario": "fixed-length",
        "out": "results",
        "backends": rng.choice(
            [f"openai=http://{place.address}", f"vllm=http://{place.address}", str(definition)]
        ),
        "api_key_env": rng.choice(["AWS_SECRET_ACCESS_KEY", None]),
        "metrics_urls": rng.choice([[], [f"http://{place.address}/metrics"]]),
        "launch": rng.choice(["attach", "auto", "process", "compose"]),
    }
    manifest.write_text(json.dumps(document))
    for cell in (place.run / "cells").iterdir():
        shutil.rmtree(cell)


def values(place: Place, rng: random.Random) -> None:
    """Numbers and texts of documents, of any type, anywhere."""
    documents = [path for path in sorted(place.run.rglob("*.json")) if path.name != seal.FILE]
    path = rng.choice(documents)
    document = json.loads(path.read_bytes())
    for _ in range(rng.randint(1, 6)):
        _set(document, rng)
    path.write_text(json.dumps(document))


def _set(document: Any, rng: random.Random) -> None:
    inside = document
    while True:
        keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(inside[key], dict | list) and rng.random() < 0.9:
            inside = inside[key]
            continue
        inside[key] = rng.choice(_NUMBERS if rng.random() < 0.6 else _TEXTS)
        return


def document_bombs(place: Place, rng: random.Random) -> None:
    text = rng.choice(
        [
            b"[" * LISTS,
            b"[" + b"[]," * (10 * LISTS) + b"0]",
            b'{"schema":2,"a":"' + b"x" * LONG_TEXT + b'"}',
            b'{"schema":2,"cells":[' + b"{}," * LISTS + b"{}]}",
            b'{"schema":' + b"9" * 1_000_000 + b"}",
            "😀".encode() * (LONG_TEXT // 8),
        ]
    )
    documents = [*sorted(place.run.rglob("*.json"))]
    rng.choice(documents).write_bytes(text)


def workload_bombs(place: Place, rng: random.Random) -> None:
    head = b'{"expectations": []}\n'
    line = rng.choice([b"{}\n", b"x" * 4096, b'{"shared":[[1,2],[3,4]]}\n', b"[" * 1000 + b"\n"])
    many = line * ((1 << 20) // len(line))
    (place.run / "workloads").mkdir(exist_ok=True)
    with gzip.open(place.run / "workloads" / "bomb.jsonl.gz", "wb", compresslevel=1) as file:
        file.write(head)
        for _ in range(rng.choice([64, 512])):
            file.write(many)
    for path in sorted(place.run.glob("cells/*/cell.json")):
        document = json.loads(path.read_bytes())
        document["workload"]["file"] = rng.choice(["workloads/bomb.jsonl.gz", "../../.bashrc", "/dev/zero"])
        path.write_text(json.dumps(document))


_EVENT = "'text' kind, 1::int text_chars, 1::int wire_bytes"
_TABLES: Mapping[str, tuple[str, ...]] = {
    "events": (
        "select 0::int seq, EVENT, 5::bigint stamp_ns from range(20000000)",
        "select (i % 9 - 1)::int seq, EVENT, i stamp_ns from range(99) t(i)",
        "select 0::int seq, EVENT, 9223372036854775807 stamp_ns",
        "select null::int seq, EVENT, 1::bigint stamp_ns",
        "select 0::int seq, 'nothing' kind, 1::int text_chars, 1::int wire_bytes, 1::bigint stamp_ns",
    ),
    "requests": (
        "select * replace (2147483647::int as seq) from read_parquet($1)",
        "select * replace (-1::int as seq) from read_parquet($1)",
        "select * replace (null::int as seq) from read_parquet($1)",
        "select * replace (0::int as seq) from read_parquet($1)",
        "select * replace (repeat('x', 1000000) as text) from read_parquet($1), range(100)",
        "select * replace (repeat(seq::varchar, 1000000) as text) from read_parquet($1)",
        "select * replace (chr(27) || ']0;owned' as text, '<script>' as error) from read_parquet($1)",
        "select * replace (-9223372036854775808 as sent_ns) from read_parquet($1)",
        "select * replace (2147483647::int as output_tokens, 0::int as prompt_tokens) from read_parquet($1)",
        "select * replace (9223372036854775807 as end_ns, 32767::smallint as replica) from read_parquet($1)",
        "select 1 as a",
    ),
    "telemetry": (
        "select i::varchar series, 1::bigint at_ns, 1::double as value from range(300000) t(i)",
        "select 'a' series, i at_ns, 1e308 as value from range(99) t(i)",
        "select repeat('x', 1000000) series, i at_ns, 'nan'::double as value from range(9) t(i)",
        "select 'host.cpu_busy_s' series, -9223372036854775807 at_ns, 1::double as value",
    ),
}


def tables(place: Place, rng: random.Random) -> None:
    kind = rng.choice(list(_TABLES))
    query = rng.choice(_TABLES[kind])
    cell = rng.choice(sorted((place.run / "cells").iterdir()))
    path, made = cell / f"{kind}.parquet", cell / "made"
    codec = rng.choice(["zstd", "snappy", "gzip"])
    with duckdb.connect(config={"threads": 1}) as connected:
        source = query.replace("$1", parquet.literal(str(path))).replace("EVENT", _EVENT)
        options = f"(format parquet, compression {codec})"
        connected.execute(f"copy ({source}) to {parquet.literal(str(made))} {options}")
    made.rename(path)


def noise(place: Place, rng: random.Random) -> None:
    path = place.any_file(rng)
    data = bytearray(path.read_bytes())
    for _ in range(rng.randint(1, 20)):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
    path.write_bytes(bytes(data)[: rng.choice([len(data), len(data) // 2, 0])])


KINDS: Mapping[str, Callable[[Place, random.Random], None]] = {
    one.__name__.replace("_", " "): one
    for one in (
        links,
        hard_links,
        device_links,
        folder_links,
        pipes,
        holes,
        names,
        crowds,
        contacts,
        values,
        document_bombs,
        workload_bombs,
        tables,
        noise,
    )
}


def seal_again(run: Path) -> None:
    """Checksums that are right, as whoever sends a folder can make them; as far as its files can be read."""
    with suppress(Exception):
        folder = RunFolder(run)
        seal.begin(folder.files)
        listed = [name for pattern in seal._DATA for name in folder.files.names(pattern) if name != seal.FILE]
        seal.enter(folder.files, {name: folder.files.sha256(name) for name in listed})
