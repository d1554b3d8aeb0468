"""Whatever a server counts and whenever it answers: what is written can be read, shown and compared."""

import json
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from harness.cli.main import main
from harness.errors import ExitCode, StorageError
from harness.model import as_json
from harness.records.layout import UNKNOWN
from harness.records.request_table import Part, RequestTable
from harness.records.series import Samples, Telemetry
from harness.store import RunFolder, seal
from harness.summary import summarise_folder
from tests.factories.documents import changed
from tests.factories.runs import SMALL, make_run

COUNTS = ("prompt_tokens", "cached_tokens", "output_tokens", "output_chars", "text_events", "first_tokens")
STAMPS = ("connect_ns", "headers_ns", "first_text_ns", "last_text_ns", "end_ns")
SERIES = (
    "engine.running",
    "engine.kv_use",
    "engine.cached_tokens",
    "gpu.0.power_w",
    "host.cpu_busy_s",
    "x.y",
)
MOST = settings.default.max_examples  # of the profile
_INT = np.iinfo(np.int32)
_COUNT = st.sampled_from([UNKNOWN, 0, 1, 2, _INT.max, _INT.max - 1])
_VALUE = st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e18, -1e18, 1e-300, float("nan"), float("inf"), 1e308])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.report.plots.draw", lambda *_arguments, **_options: [])
        yield make_run(tmp_path_factory.mktemp("runs"), SMALL)


@st.composite
def alterations(draw):
    """By cell: counts by column, answers that take no time, and samples."""
    every = draw(st.booleans())
    column = st.dictionaries(
        st.sampled_from(COUNTS), st.lists(_COUNT, min_size=1, max_size=1 if every else 10)
    )
    return [
        {
            "counts": draw(column),
            "together": draw(st.booleans()),
            "samples": draw(
                st.dictionaries(st.sampled_from(SERIES), st.lists(_VALUE, min_size=1, max_size=5))
            ),
            "shares": draw(st.booleans()),
        }
        for _ in range(2)
    ]


def write_altered(folder: RunFolder, cell: str, written, how) -> None:
    records, facts = written
    rows = records.requests
    for name, values in how["counts"].items():
        rows[name] = np.resize(values, len(rows))
    for name in STAMPS if how["together"] else ():
        rows[name] = np.where(rows[name] == UNKNOWN, UNKNOWN, rows["sent_ns"])
    if how["shares"]:
        table = RequestTable.of([([4, 4], "", (Part(1, 3),))] * len(rows), [])
        file = folder.write_requested(cell, table)
        facts = changed(facts, workload={**as_json(facts.workload), "file": file})
    at_ns = np.arange(5) * 1_000_000_000
    samples = {name: Samples(at_ns, np.resize(values, 5)) for name, values in how["samples"].items()}
    folder.write_cell(records, facts, Telemetry(samples))


@settings(
    max_examples=MOST if MOST > 10 else 4,
    phases=[Phase.generate],  # an example is whole commands: shrinking one takes minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(alterations())
def test_what_is_written_of_any_counts_can_be_read_shown_and_compared(whole, tmp_path_factory, hows):
    place = tmp_path_factory.mktemp("altered") / "run"
    place.mkdir()
    folder = RunFolder(place)
    for name in ("cells", "logs"):
        folder.files.make_folder(name)
    folder.write_manifest(whole.read_manifest())
    for cell, how in zip(whole.cells(), hows, strict=True):
        write_altered(folder, cell, whole.read_cell(cell), how)
    summary = summarise_folder(folder)
    folder.write_summary(summary)
    assert len(summary.cells) == 2, summary.warnings
    assert folder.read_summary() == summary
    json.loads((place / "summary.json").read_bytes(), parse_constant=pytest.fail)
    commands = [["report", str(place)]]
    if summary.cells != whole.read_summary().cells:  # else it is a copy, which compare refuses
        commands.append(["compare", str(place), str(whole.path), "--force"])
    for words in commands:
        with redirect_stdout(StringIO()) as said:
            assert main(words) in (ExitCode.OK, ExitCode.LIMIT_FAILED)
        assert not any(f" {bad} " in said.getvalue() for bad in ("nan", "inf", "-inf"))


def test_a_document_that_could_not_be_read_again_is_not_written(whole, tmp_path, monkeypatch):
    folder = RunFolder.create(tmp_path, "x")
    summary = whole.read_summary()
    folder.write_summary(summary)
    before = folder.files.read("summary.json")
    first = summary.cells[0]
    load = replace(first.load, value=float("nan"))
    broken = replace(summary, cells=(replace(first, load=load), *summary.cells[1:]))
    with pytest.raises(StorageError, match=r"would not be read again.*cells\[0\]\.load\.value"):
        folder.write_summary(broken)
    monkeypatch.setattr("harness.store.folder.MOST_BYTES", len(before))
    longer = replace(summary, cells=(*summary.cells, first))
    with pytest.raises(StorageError, match=r"would not be read again: [\d,]+ bytes, more than"):
        folder.write_summary(longer)
    assert folder.files.read("summary.json") == before
    assert seal.faults(folder.files)[1] == []
