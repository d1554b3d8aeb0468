"""The question of every maintainer: is the new version slower? One engine at two versions, really run."""

import pytest

from tests.engines.runs import bench_run

pytestmark = pytest.mark.engine

OLD, NEW = "llamacpp==2026.9.11063", "llamacpp==2026.10.11549"
SMALL = (
    *("--repeats", "2", "--concurrency", "1", "--requests", "4", "--input-tokens", "32"),
    *("--output-tokens", "8", "--no-agreement", "--no-probe", "--set", "load.warmup_requests=1"),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return bench_run(tmp_path_factory.mktemp("versions"), "fixed-length", (OLD, NEW), *SMALL)


def test_each_runs_in_an_environment_of_its_own(run):
    folder, _ = run
    started = {
        label: entry["engine"] for label, entry in folder.read_json("manifest.json")["backends"].items()
    }
    for label in (OLD, NEW):
        assert started[label]["package_version"] == label.partition("==")[2]
    assert started[OLD]["command"][0] != started[NEW]["command"][0]
    assert started[OLD]["weights"]["sha256"] == started[NEW]["weights"]["sha256"]


def test_both_answer_the_same_requests_and_a_word_is_said_of_the_pair(run):
    folder, printed = run
    summary = folder.read_json("summary.json")
    assert {cell["label"] for cell in summary["cells"]} == {OLD, NEW}
    assert len({cell["workload_sha256"] for cell in summary["cells"] if cell["repeat"] == 0}) == 1
    assert all(cell["requests"]["ok"] == 4 for cell in summary["cells"])
    said = [one for one in summary["comparison"] if {one["a"], one["b"]} == {OLD, NEW}]
    assert said
    assert all(one["verdict"] for one in said)
    assert OLD in printed
    assert NEW in printed
    assert not any(one["matters"] for one in summary["unequal"]), "the version is the question"
