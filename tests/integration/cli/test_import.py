"""Files of other tools from the disk to the printed verdict."""

import json
from pathlib import Path

import pytest

from harness.cli.main import main
from tests.factories import foreign

pytestmark = pytest.mark.usefixtures("without_plots")

CAPTURES = Path(__file__).resolve().parents[2] / "captures" / "imports"


def bench(capsys, *words):
    status = main(list(map(str, words)))
    return status, capsys.readouterr()


def vllm_files(folder, count):
    for seed in range(count):
        foreign.write(folder / f"{seed}.json", foreign.vllm(seed))
    return folder


def aiperf_files(folder, first=0, count=8, **how):
    """With the summary that names the load."""
    phase = {"kind": "profiling", "type": "concurrency", "concurrency": foreign.SLOTS}
    about = {"aiperf_version": "0.13.0", "input_config": {"phases": [phase]}}
    for seed in range(count):
        lines = foreign.aiperf_lines(first + seed, **how)
        foreign.write_lines(folder / str(seed) / "profile_export.jsonl", lines)
        foreign.write(folder / str(seed) / "profile_export_aiperf.json", about)
    return folder


def verdicts(document):
    return {one["metric"]: one["verdict"] for one in document["pairs"][0]["findings"]}


@pytest.mark.long
def test_five_percent_slower_with_eight_repeats_each_is_slower(tmp_path, capsys):
    old, new = aiperf_files(tmp_path / "old"), aiperf_files(tmp_path / "new", first=20, slower=1.05)
    words = ("compare", old, new, "--floor", "2", "--fail-on", "slower")
    status, printed = bench(capsys, *words)
    assert status == 1
    assert "imported from aiperf" in printed.out
    _, printed = bench(capsys, *words, "--json")
    found = verdicts(json.loads(printed.out))
    assert found["ttft_ms.p50"] == found["tpot_ms.p50"] == found["e2e_ms.p50"] == "slower"


@pytest.mark.long
def test_the_same_speed_is_no_verdict_of_slower(tmp_path, capsys):
    old, new = aiperf_files(tmp_path / "old"), aiperf_files(tmp_path / "new", first=20)
    _, printed = bench(capsys, "compare", old, new, "--json")
    assert set(verdicts(json.loads(printed.out)).values()) <= {"same", "undecided", "not enough runs"}


def test_one_file_each_has_no_verdict(tmp_path, capsys):
    one = foreign.write(tmp_path / "one.json", foreign.vllm(1))
    two = foreign.write(tmp_path / "two.json", foreign.vllm(2, slower=2))
    _, printed = bench(capsys, "compare", one, two)
    assert "Undecided whether server is slower" in printed.out
    assert "1 run each, 3 are needed" in printed.out


def test_tools_are_compared_where_their_records_allow_one_definition(tmp_path, capsys):
    old = vllm_files(tmp_path / "old", count=3)
    new = aiperf_files(tmp_path / "new", first=20, count=3)
    _, printed = bench(capsys, "compare", old, new, "--json")
    found = verdicts(json.loads(printed.out))
    assert "not comparable" not in found.values()
    assert "TTFT was computed again" in " ".join(printed.err.split())


@pytest.mark.long
def test_tools_are_not_compared_by_figures_of_other_meaning(tmp_path, capsys):
    old = tmp_path / "old"
    for seed in range(4):
        foreign.write(old / f"{seed}.json", foreign.vllm_summary(seed))
    new = aiperf_files(tmp_path / "new", first=20)
    _, printed = bench(capsys, "compare", old, new)
    assert "TTFT is not the same thing" in printed.out
    assert "figures alone" in printed.out
    _, printed = bench(capsys, "compare", old, new, "--json")
    assert verdicts(json.loads(printed.out))["ttft_ms.p50"] == "not comparable"


def test_an_imported_run_is_verified_and_says_what_it_is(tmp_path, capsys):
    file = foreign.write(tmp_path / "r.json", foreign.vllm())
    status, printed = bench(capsys, "import", file, "--out", tmp_path / "out")
    assert status == 0
    assert "SUSPECT" in printed.out
    assert "client not verified" in " ".join(printed.out.split())
    (run,) = (tmp_path / "out").iterdir()
    status, printed = bench(capsys, "verify", run)
    assert status == 0
    assert "every figure is identical" in printed.out
    status, printed = bench(capsys, "report", run, "-v")
    assert "rules could not be checked" in " ".join(printed.out.split())
    assert "client not verified" in (run / "report.html").read_text()


@pytest.mark.long
def test_two_backends_in_one_import(tmp_path, capsys):
    words = [f"a={foreign.write(tmp_path / 'a.json', foreign.vllm(1))}"]
    words += [f"b={foreign.write(tmp_path / 'b.json', foreign.vllm(2))}"]
    status, printed = bench(capsys, "import", *words, "--out", tmp_path / "out")
    assert status == 0
    assert "a and b" in printed.out


def test_a_report_of_a_file_is_that_of_its_import(tmp_path, capsys):
    file = foreign.write(tmp_path / "r.json", foreign.vllm_summary())
    status, printed = bench(capsys, "report", file, "--out", tmp_path / "out")
    assert status == 0
    assert "figures alone" in " ".join(printed.out.split())


@pytest.mark.parametrize("text", ["", "{}", '{"a": '])
def test_a_bad_file_is_one_error_and_leaves_nothing(tmp_path, capsys, text):
    file = tmp_path / "r.json"
    file.write_text(text)
    status, printed = bench(capsys, "import", file, "--out", tmp_path / "out")
    assert status == 2
    assert printed.err.startswith(f"error: {file}: ")
    assert not (tmp_path / "out").exists()


def test_a_folder_of_runs_is_not_taken_for_results_of_a_tool(tmp_path, capsys):
    file = foreign.write(tmp_path / "one.json", foreign.vllm(1))
    bench(capsys, "import", file, "--out", tmp_path / "runs")
    status, printed = bench(capsys, "report", tmp_path / "runs")
    assert status == 2
    assert "holds runs, and is none itself" in printed.err


def test_files_of_two_models_are_refused(tmp_path, capsys):
    words = [foreign.write(tmp_path / f"{name}.json", foreign.vllm(model_id=name)) for name in "ab"]
    status, printed = bench(capsys, "import", *words, "--out", tmp_path / "out")
    assert status == 2
    assert "different models: a, b" in printed.err


def test_one_file_twice_is_no_repeat(tmp_path, capsys):
    words = [foreign.write(tmp_path / f"{name}.json", foreign.vllm()) for name in "ab"]
    status, printed = bench(capsys, "import", *words, "--out", tmp_path / "out")
    assert status == 2
    assert "is the same as" in printed.err


def test_files_of_two_versions_are_no_repeats(tmp_path, capsys):
    for seed, version in enumerate(("0.12.0", "0.13.0")):
        folder = tmp_path / "in" / version
        foreign.write_lines(folder / "profile_export.jsonl", foreign.aiperf_lines(seed))
        foreign.write(folder / "profile_export_aiperf.json", {"aiperf_version": version})
    status, printed = bench(capsys, "import", tmp_path / "in", "--out", tmp_path / "out")
    assert status == 2
    assert "no repeats of one backend: aiperf 0.12.0, records; aiperf 0.13.0, records" in printed.err


def test_a_rate_that_was_not_sent_is_no_figure_of_that_rate(tmp_path, capsys):
    """The times of a closed loop at 16/s, in a file that says 8/s."""
    file = foreign.write(tmp_path / "r.json", foreign.vllm(request_rate=8.0, max_concurrency=None))
    _, printed = bench(capsys, "import", file, "--out", tmp_path / "out")
    assert "INVALID" in printed.out
    assert "rate-missed" in printed.out


def test_what_aiperf_leaves_beside_its_requests_is_left_out_and_named(tmp_path, capsys):
    folder = tmp_path / "artifacts"
    foreign.write_lines(folder / "profile_export.jsonl", foreign.aiperf_lines())
    foreign.write(folder / "profile_export_aiperf.json", {"aiperf_version": "0.13.0"})
    foreign.write(folder / "inputs.json", {"data": []})
    (folder / "profile_export_aiperf.csv").write_text("Metric,avg\n")
    status, printed = bench(capsys, "import", folder, "--out", tmp_path / "out")
    assert status == 0
    assert "aiperf 0.13.0 (records)" in " ".join(printed.out.split())
    assert printed.err.count("left out") == 3


def test_failures_are_not_hidden_by_figures_of_the_others(tmp_path, capsys):
    document = foreign.answered(foreign.vllm_summary(), 100)
    file = foreign.write(tmp_path / "r.json", document)
    _, printed = bench(capsys, "import", file, "--out", tmp_path / "out")
    assert "INVALID" in printed.out
    assert "20 of 120" in printed.out


@pytest.mark.long
def test_what_aiperf_measured_of_a_server_that_is_five_percent_slower(capsys):
    """Summaries of eight repeats each, through the wire: `python -m tests.bench.imported_pair --keep DIR`."""
    pair = CAPTURES / "pair"
    words = ("compare", pair / "base", pair / "slower", "--floor", "2", "--fail-on", "slower")
    status, printed = bench(capsys, *words)
    assert status == 1
    said = " ".join(printed.out.split())
    assert "server is slower than in the run of" in said
    assert "imported from aiperf 0.13.0 (figures" in said
    _, printed = bench(capsys, *words, "--json")
    found = verdicts(json.loads(printed.out))
    metrics = ("ttft_ms.p50", "tpot_ms.p50", "e2e_ms.p50", "output_tokens_per_s")
    assert [found[metric] for metric in metrics] == 4 * ["slower"]


def test_guidellm_against_figures_of_vllm_is_refused_by_what_they_mean(capsys):
    _, printed = bench(capsys, "compare", CAPTURES / "vllm" / "r.json", CAPTURES / "guidellm" / "r.json")
    said = " ".join(printed.out.split())
    assert "cannot be compared" in said
    assert "TTFT is not the same thing: as defined here" in said
    assert "ends at the first chunk with a choice" in said


def test_guidellm_against_requests_of_vllm_is_computed_again(capsys):
    """Both say 100 ms then, and 10 ms; their prompts were of other lengths, which is refused and said."""
    files = (CAPTURES / "vllm.detail" / "r.json", CAPTURES / "guidellm" / "r.json")
    _, printed = bench(capsys, "compare", *files, "--json")
    (pair,) = json.loads(printed.out)["pairs"]
    (first,) = [one for one in pair["findings"] if one["metric"] == "ttft_ms.p50"]
    assert first["verdict"] == "not comparable"
    assert "TTFT was computed again" in " ".join(printed.err.split())
    _, printed = bench(capsys, "compare", *files)
    assert "prompt tokens: " in " ".join(printed.out.split())
    assert "is not the same thing" not in printed.out


def test_a_file_is_compared_with_itself_by_nobody(tmp_path, capsys):
    """Such a gate could not fail."""
    file = foreign.write(tmp_path / "r.json", foreign.vllm())
    status, printed = bench(capsys, "compare", file, file, "--fail-on", "slower")
    assert status == 2
    assert "r.json is the same file as one of r" in printed.err
    status, printed = bench(capsys, "import", file, file, "--out", tmp_path / "out")
    assert status == 2
    assert "no repeat" in printed.err


def test_a_folder_of_files_has_its_whole_name(tmp_path, monkeypatch, capsys):
    for index, name in enumerate(("v0.33.1", "v0.33.2")):
        foreign.write(tmp_path / name / "r.json", foreign.vllm(index))
    monkeypatch.chdir(tmp_path / "v0.33.2")
    status, printed = bench(capsys, "compare", "../v0.33.1", ".", "--json")
    assert status != 2, printed.err
    (pair,) = json.loads(printed.out)["pairs"]
    assert [pair[side]["run"] for side in ("b", "a")] == ["v0.33.1", "v0.33.2"]


def test_figures_alone_cannot_be_read_as_another_tool(tmp_path, capsys):
    file = foreign.write(tmp_path / "r.json", foreign.vllm_summary())
    status, printed = bench(capsys, "report", file, "--as", "aiperf", "--out", tmp_path / "out")
    assert status == 2
    assert "no requests with their times to read as another tool" in printed.err


@pytest.mark.parametrize("tool", ["vllm", "sglang"])
def test_records_without_the_arrivals_of_text_cannot_be_read_as_another_tool(tmp_path, capsys, tool):
    file = CAPTURES / "guidellm" / "r.json"
    status, printed = bench(capsys, "report", file, "--as", tool, "--out", tmp_path / "out")
    assert status == 2
    assert "error: r.json: no arrival of each token to read as another tool" in printed.err


def test_a_file_that_is_read_as_another_tool_leaves_no_run(tmp_path, capsys):
    file = foreign.write(tmp_path / "r.json", foreign.vllm())
    status, printed = bench(capsys, "report", file, "--as", "vllm", "--out", tmp_path / "out")
    assert status == 0
    assert "vllm" in printed.out
    assert not (tmp_path / "out").exists()


def test_the_rule_of_every_import_hides_no_other(tmp_path, capsys):
    """The first screen has three warnings."""
    document = foreign.answered(foreign.vllm_summary(), 110)
    _, printed = bench(
        capsys, "import", foreign.write(tmp_path / "r.json", document), "--out", tmp_path / "out"
    )
    warned = [line for line in printed.out.splitlines() if line.startswith("warning:")]
    assert "client-unverified" in warned[-1]
    assert "failed-requests" in warned[0]


def test_a_version_that_the_file_does_not_name_is_given(tmp_path, capsys):
    file = foreign.write(tmp_path / "r.json", foreign.vllm_summary())
    words = ("import", file, "--out", tmp_path / "out")
    status, printed = bench(capsys, *words, "--tool-version", "0.33.0")
    assert status == 0
    assert "vllm bench serve 0.33.0" in " ".join(printed.out.split())
    status, printed = bench(capsys, *words, "--tool-version", "newest")
    assert status == 2
    assert "'newest' is not a version" in printed.err


def test_a_load_that_is_not_known_makes_nothing_invalid(tmp_path, capsys):
    """inference-perf's requests do not say how many slots there were, so none of them was idle."""
    _, printed = bench(capsys, "import", CAPTURES / "inference-perf", "--out", tmp_path / "out")
    assert "; the load (the summary of each stage has it" in " ".join(printed.err.split())
    assert "unknown load" in printed.out
    assert "INVALID" not in printed.out
    assert "client-unverified" in printed.out
