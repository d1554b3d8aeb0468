"""What bench writes in formats of others, read by their own package and by bench again."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from llmd_benchmark_report.core import load_benchmark_report
from msgspec import structs
from submission_checker.models.loader import load_result_summary

from harness.errors import SpecError
from harness.imports import Part, imported, read
from harness.imports.taken import LOAD, UNKNOWN_LOAD
from harness.model import STATISTICS
from harness.model.exchanged import REPORT_LATENCIES, REPORT_MORE, REPORT_RATES
from harness.model.json_path import number_at
from harness.report.exchange import FORMATS, documents
from harness.store import open_run
from harness.summary import summarise_folder
from tests.factories import foreign
from tests.factories import summaries as made

PUBLISHED = Path(__file__).resolve().parents[3] / "results" / "published"
PATHS = [
    *REPORT_RATES,
    *REPORT_MORE,
    *(f"{metric}.{name}" for metric in REPORT_LATENCIES for name in STATISTICS),
]


@cache
def summaries():
    """Of every published run, with the first repeat of each backend at each load; no test changes one."""
    paths = sorted(PUBLISHED.glob("*/summary.json"))
    return [first_repeats(open_run(str(path.parent), PUBLISHED).read_summary()) for path in paths]


def first_repeats(summary):
    """Documents of further repeats have other figures in the same places."""
    firsts = {(cell.label, cell.point): cell for cell in reversed(summary.cells)}
    return structs.replace(
        summary, cells=[cell for cell in summary.cells if cell is firsts[cell.label, cell.point]]
    )


@cache
def published(kind):
    """Of those cells: the summary, the cell, and its document, which no test changes."""
    cells = {(summary.run, cell.cell): (summary, cell) for summary in summaries() for cell in summary.cells}
    return [
        (*cells[summary.run, name], document)
        for summary in summaries()
        for name, document in documents(kind, summary)
    ]


@cache
def known_figures():
    """By run and cell, for every format."""
    found = {}
    for summary in summaries():
        for cell in summary.cells:
            figures = ((path, number_at(cell, path)) for path in PATHS)
            found[summary.run, cell.cell] = {path: value for path, value in figures if value is not None}
    return found


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_exported_is_imported_again(tmp_path, kind):
    """Of published cells that are not INVALID: figures, load, counts and model."""
    seen = 0
    for summary, cell, document in published(kind):
        known = known_figures()[summary.run, cell.cell]
        if cell.invalid or not known:
            continue
        _, (taken,) = read(foreign.write(tmp_path / "cell.json", document))
        assert taken.reported.keys() == known.keys()
        # As pytest.approx, which takes as long as the import, but for its margin around 0.
        assert all(abs(taken.reported[path] - value) <= 1e-9 * abs(value) for path, value in known.items())
        assert (taken.label, taken.load) == (cell.label, cell.load)
        assert (taken.answered, taken.failed) == (cell.requests.ok, cell.requests.failed)
        assert taken.tool == "llm-servebench"
        assert taken.took.startswith(f"figures of {cell.requests.ok:,} ")
        assert taken.definitions == {}
        assert taken.model == (summary.model.name if summary.model else None)
        seen += 1
    assert seen > 10


def test_reports_are_valid_by_the_package_of_their_format():
    seen = 0
    for _summary, cell, document in published("report-0.2"):
        report = load_benchmark_report(json.loads(json.dumps(document)))
        issued = cell.requests.ok + cell.requests.failed
        assert report.results.request_performance.aggregate.requests.total == issued
        seen += 1
    assert seen > 10


def test_summaries_are_valid_by_the_checker_of_mlperf(tmp_path):
    """Which makes a rate of its own of tokens and duration, and takes what is missing for 0."""
    seen = 0
    for _summary, cell, document in published("mlperf"):
        found, problems = load_result_summary(foreign.write(tmp_path / "result_summary.json", document))
        assert not problems
        assert found.total_output_tokens == (cell.output_tokens.total or 0)
        for metric, mine in (("ttft_ms.p50", found.ttft_p50_ms), ("tpot_ms.p90", found.tpot_p90_ms)):
            if (value := number_at(cell, metric)) is not None:
                assert mine == pytest.approx(value)
        assert found.n_samples_completed == cell.requests.ok
        seen += found.system_tps > 0
    assert seen > 10


def exported(kind="report-0.2"):
    return next(document for _, document in documents(kind, summaries()[0]))


def ours(document):
    return document["scenario"]["stack"][1]["standardized"]["cell"]


@pytest.mark.parametrize(
    ("kind", "total"),
    [
        (
            "report-0.2",
            lambda found: found["results"]["request_performance"]["aggregate"]["requests"]["total"],
        ),
        ("mlperf", lambda found: found["n_samples_issued"]),
    ],
)
def test_a_request_that_failed_before_it_was_sent_counts_for_any_reader(tmp_path, kind, total):
    """A reader that knows the format alone takes what did not fail for answered."""
    counts = {"planned": 18, "sent": 17, "ok": 17, "failed": 1, "outcomes": {"ok": 17, "unreachable": 1}}
    ((_, document),) = documents(kind, made.summary(made.cell(requests=counts)))
    assert total(document) == 18
    bare = json.loads(json.dumps(document).replace('"llm-servebench"', '"another"'))
    for found in (document, bare):
        _, (taken,) = read(foreign.write(tmp_path / "cell.json", found))
        assert (taken.answered, taken.failed) == (17, 1)


@pytest.mark.parametrize("kind", FORMATS)
def test_users_who_hang_up_come_back_as_what_they_are(tmp_path, kind):
    """A reader that knows the format alone takes them for no answers; their tokens are kept."""
    counts = {"planned": 40, "sent": 40, "ok": 21, "impatient": 19, "resent": 1, "warmup": 8}
    counts["outcomes"] = {"ok": 21, "abandoned": 19}
    users = {"share": 0.5, "after_s": 1.0}
    for tokens in (26.5, None):
        load = {"kind": "concurrency", "value": 4, "abandonment": users}
        cell = made.cell(load=load, requests=counts, tokens_after_hang_up=tokens)
        ((name, document),) = documents(kind, made.summary(cell))
        source, (taken,) = read(foreign.write(tmp_path / f"{name}.json", document))
        again = summarise_folder(imported([Part("server", source, taken)], tmp_path / f"again {tokens}")[0])
        assert again.cells[0].tokens_after_hang_up == tokens
        assert again.cells[0].load.abandonment == cell.load.abandonment
    assert again.cells[0].null_reasons["tokens_after_hang_up"] == "the file does not have it"
    assert again.cells[0].requests == cell.requests
    assert "requests.resent" not in again.cells[0].null_reasons
    if kind == "report-0.2":
        assert document["results"]["request_performance"]["aggregate"]["requests"]["total"] == 21


@pytest.mark.parametrize("kind", FORMATS)
def test_engines_of_a_run_are_no_repeats_of_one_server(tmp_path, kind):
    """Its label is in our own field, and so are the mark of a scripted server and the load."""
    load = {"kind": "rate", "value": 2.5}
    cells = [made.cell(label, load, p50=p50, simulated=True)
             for label, p50 in (("vllm@eager", 20.0), ("sglang", 40.0))]  # fmt: skip
    files = [
        foreign.write(tmp_path / f"{name}.json", document)
        for name, document in documents(kind, made.summary(*cells))
    ]
    for given, labels in (("server", ["vllm@eager", "sglang"]), ("old", ["old-vllm@eager", "old-sglang"])):
        parts = [Part(given, source, one) for source, taken in map(read, files) for one in taken]
        again = summarise_folder(imported(parts, tmp_path / given)[0])
        found = {cell.label: (cell.ttft_ms.p50, cell.load, cell.simulated) for cell in again.cells}
        assert found == {
            label: (p50, cells[0].load, True) for label, p50 in zip(labels, (20.0, 40.0), strict=True)
        }
        assert again.simulated


def test_a_label_leads_out_of_no_folder(tmp_path):
    document = exported()
    ours(document)["label"] = "../../sglang"
    _, (taken,) = read(foreign.write(tmp_path / "r.json", document))
    assert taken.label == "..-..-sglang"


@pytest.fixture(scope="module")
def unnamed(tmp_path_factory):
    """The summary of llama-bench's file, which has no requests, without its load."""
    source, taken = read(Path(__file__).parents[2] / "captures" / "imports" / "llama-bench" / "r.json")
    unnamed = [replace(one, load=UNKNOWN_LOAD, lacks=(LOAD,)) for one in taken]
    run, _ = imported([Part("server", source, one) for one in unnamed], tmp_path_factory.mktemp("first"))
    return summarise_folder(run)


@pytest.mark.parametrize("kind", FORMATS)
def test_what_a_file_did_not_say_is_not_known_of_its_export(tmp_path, unnamed, kind):
    parts = []
    for name, document in documents(kind, unnamed):
        source, (one,) = read(foreign.write(tmp_path / f"{name}.json", document))
        assert (one.answered, one.failed, one.load_known) == (None, None, False)
        parts.append(Part("server", source, one))
    again = summarise_folder(imported(parts, tmp_path / "again")[0])
    assert {cell.label for cell in again.cells} == {"server-pp64", "server-tg32"}
    assert {cell.validity.verdict for cell in (*unnamed.cells, *again.cells)} == {"SUSPECT"}


def test_an_invalid_measurement_stays_one(tmp_path):
    document = exported()
    ours(document)["validity"] = {
        "verdict": "INVALID",
        "reasons": [{"code": "loop-lag", "verdict": "INVALID", "measured": "", "limit": "", "hint": ""}],
    }
    with pytest.raises(SpecError, match=r"was INVALID where it was measured \(loop-lag\)"):
        read(foreign.write(tmp_path / "r.json", document))


def test_what_bench_put_there_and_somebody_damaged_is_an_error(tmp_path):
    document = exported()
    ours(document)["load"] = "c8"
    with pytest.raises(SpecError, match=r"'llm-servebench' is damaged: load"):
        read(foreign.write(tmp_path / "r.json", document))


def test_a_figure_that_no_export_has_is_an_error(tmp_path):
    for strange in ("foo", "label", "ttft_ms.best", "slot_idle_ms.p50"):
        document = exported()
        ours(document)["figures"] = {strange: 1.0}
        with pytest.raises(SpecError, match=f"'llm-servebench' has a figure '{strange}'"):
            read(foreign.write(tmp_path / "r.json", document))


def test_a_rate_per_gpu_is_not_made_up_where_no_gpu_was_seen():
    row = exported("inferencex")
    assert row["tp"] is None
    assert row["tput_per_gpu"] is row["output_tput_per_gpu"] is None
    assert row["llm-servebench"]["figures"]["output_tokens_per_s"] > 0


@pytest.mark.parametrize(("used", "hardware", "count"), [([3], "H100", 1), ([], "unknown", None)])
def test_the_hardware_of_a_row_is_what_the_engine_used(used, hardware, count):
    devices = [{"index": 0, "name": "T4"}, {"index": 3, "name": "H100"}]
    cell = made.cell(gpu={"engine_gpus": used, "devices": devices})
    ((_, row),) = documents("inferencex", made.summary(cell))
    assert (row["hw"], row["tp"]) == (hardware, count)
