"""Which measurements of an import are repeats: a name and a load hold one server, one setting, one length."""

from types import SimpleNamespace

import pytest

from harness.errors import SpecError
from harness.imports import Part, folder, imported, read
from tests.factories import foreign

LLAMA = {"build_commit": "abc", "build_number": 5000, "model_filename": "m.gguf", "n_prompt": 512, "n_gen": 0,
         "n_gpu_layers": 99, "no_kv_offload": False, "avg_ts": 100.0, "samples_ts": [99.0, 101.0],
         "test_time": "2026-11-25T16:12:07Z"}  # fmt: skip


def parts(*files, label="server"):
    return [Part(label, source, one) for source, taken in map(read, files) for one in taken]


def repeats_of(folder):
    """Repeats by label and load."""
    found = {}
    for cell in folder.cells():
        facts = folder.read_facts(cell)
        key = facts.identity.label, facts.load.point.label
        found[key] = found.get(key, 0) + 1
    return found


def made(tmp_path, *files):
    return repeats_of(imported(parts(*files), tmp_path / "out")[0])


def assert_repeats(tmp_path, files, repeats):
    if repeats:
        assert made(tmp_path, *files) == {("server", "c4"): 2}
    else:
        with pytest.raises(SpecError, match="no repeats of one backend"):
            made(tmp_path, *files)


@pytest.mark.parametrize("in_lines", [False, True])
def test_a_sweep_of_llama_bench_has_a_backend_for_each_setting(tmp_path, in_lines):
    """What differs is in the name, and nothing else is."""
    sweep = [LLAMA, LLAMA | {"n_gpu_layers": 0, "test_time": "2026-11-25T16:13:07Z", "stddev_ts": 1.0}]
    write = foreign.write_lines if in_lines else foreign.write
    found = made(tmp_path, write(tmp_path / "r.json", sweep))
    assert found == {("server-pp512-n_gpu_layers=99", "c1"): 2, ("server-pp512-n_gpu_layers=0", "c1"): 2}


def test_a_long_setting_is_short_in_the_name(tmp_path):
    """A folder has the name, and a machine may have eight GPUs."""
    gpus = [", ".join([f"NVIDIA GeForce RTX 40{digit}0 Laptop GPU"] * 8) for digit in (8, 9)]
    gpus += [gpus[0] + " Ti"]
    sweep = [LLAMA | {"gpu_info": gpu} for gpu in gpus]
    labels = [label for label, _ in made(tmp_path, foreign.write(tmp_path / "r.json", sweep))]
    assert len(labels) == 3
    assert all(label.startswith("server-pp512-gpu_info=NVIDIA-GeForce-RTX-40") for label in labels)
    assert max(map(len, labels)) <= 60


def test_many_long_settings_make_a_name_that_a_folder_can_have(tmp_path):
    sweep = [
        LLAMA | {f"setting_{key}": (letter * 60 if key else letter) for key in range(5)} for letter in "ab"
    ]
    labels = [label for label, _ in made(tmp_path, foreign.write(tmp_path / "r.json", sweep))]
    assert len(labels) == 2
    assert max(map(len, labels)) <= 200


def test_files_of_llama_bench_with_one_setting_are_repeats(tmp_path):
    """A path and a time are no settings, and CSV writes 0 for false."""
    one = foreign.write(tmp_path / "a.json", [LLAMA])
    two = tmp_path / "b.csv"
    keys = ("build_commit", "build_number", "model_filename", "n_prompt", "n_gen", "n_gpu_layers",
            "no_kv_offload", "avg_ts")  # fmt: skip
    two.write_text(",".join(keys) + '\n"abc","5000","models/m.gguf","512","0","99","0","100"\n')
    assert made(tmp_path, one, two) == {("server-pp512", "c1"): 3}


def test_servers_of_a_sweep_of_vllm_are_backends_of_their_own(tmp_path):
    """`vllm bench sweep serve` names the server's settings in the folder alone."""
    files = [
        foreign.write(
            tmp_path / f"SERVE--max_num_seqs={most}-BENCH--x=1" / f"run={seed}.json",
            foreign.vllm_summary(seed + most),
        )
        for most in (32, 64)
        for seed in (0, 1)
    ]
    assert made(tmp_path, *files[:2]) == {("server", "c4"): 2}
    both = {("server-serve=max_num_seqs=32", "c4"): 2, ("server-serve=max_num_seqs=64", "c4"): 2}
    assert made(tmp_path, *files) == both


def test_what_a_sweep_of_vllm_varied_is_whole_in_the_name(tmp_path):
    """Two settings of a server are one value here, and the second may be all that differs."""
    servers = [f"max_num_seqs=256-max_num_batched_tokens={tokens}" for tokens in (8192, 16384)]
    files = [
        foreign.write(tmp_path / f"SERVE--{server}-BENCH--x=1" / "run=0.json", foreign.vllm_summary(seed))
        for seed, server in enumerate(servers)
    ]
    assert [label for label, _ in made(tmp_path, *files)] == [f"server-serve={server}" for server in servers]


@pytest.mark.parametrize("of", [foreign.vllm, foreign.vllm_summary])
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"input_lens": [4096] * 120, "total_input_tokens": 4096 * 120}, r"prompts of 16\.0 and of 4096\.0"),
        (
            {"output_lens": [160] * 120, "output_throughput": 10 * foreign.vllm()["output_throughput"]},
            r"answers of 16\.0 and of 1[56]",
        ),
    ],
)
def test_requests_of_other_lengths_are_no_repeats(tmp_path, of, change, says):
    detail = {} if of is foreign.vllm else dict.fromkeys(foreign.DETAIL)
    change = {key: value for key, value in change.items() if key not in detail}
    files = [foreign.write(tmp_path / f"{seed}.json", of(seed)) for seed in (1, 2)]
    assert made(tmp_path, *files) == {("server", "c4"): 2}
    files[1] = foreign.write(tmp_path / "other.json", of(3) | change)
    with pytest.raises(SpecError, match=f"no repeats of one backend: {says}"):
        made(tmp_path, *files)


@pytest.mark.parametrize(
    ("lengths", "others", "repeats"),
    [
        ([16, 656], [16, 752], True),
        ([16, 656], [16, 1296], False),
        ([100, 100], [104, 104], True),
        ([100, 100], [106, 106], False),
        ([106, 106], [100, 100], False),
    ],
)
def test_lengths_that_differ_by_chance_are_those_of_repeats(tmp_path, lengths, others, repeats):
    """Prompts of a data set are drawn: their mean is another each time."""
    files = [
        foreign.write(tmp_path / f"{seed}.json", foreign.vllm(seed, input_lens=each * 60))
        for seed, each in enumerate((lengths, others))
    ]
    assert_repeats(tmp_path, files, repeats)


@pytest.mark.parametrize(("times", "repeats"), [(1.1, True), (2.0, False)])
def test_lengths_of_figures_alone_may_be_drawn_too(tmp_path, times, repeats):
    one, other = foreign.vllm_summary(1), foreign.vllm_summary(2)
    other["output_throughput"] *= times
    files = [foreign.write(tmp_path / f"{of['date']}.json", of) for of in (one, other)]
    assert_repeats(tmp_path, files, repeats)


@pytest.mark.parametrize("make", [foreign.vllm, foreign.vllm_summary])
def test_a_measurement_that_is_there_twice_is_no_repeat(tmp_path, make):
    """A tool appends its runs to one file, of which another may be an older copy."""
    first, second = make(1, requests=20), make(2, requests=20)
    old = foreign.write_lines(tmp_path / "old.json", [first])
    with pytest.raises(SpecError, match=r"new\.json: has a measurement that .*old\.json has too: no repeat"):
        made(tmp_path, old, foreign.write_lines(tmp_path / "new.json", [second, first]))
    with pytest.raises(SpecError, match="has a measurement twice: no repeat"):
        made(tmp_path, foreign.write_lines(tmp_path / "new.json", [first, second, first]))
    assert made(tmp_path, old, foreign.write_lines(tmp_path / "new.json", [second])) == {("server", "c4"): 2}


def test_tests_of_llama_bench_with_equal_speeds_are_repeats(tmp_path):
    """They have few figures, which chance makes equal."""
    equal = LLAMA | {"samples_ts": [100.0, 100.0]}
    assert made(tmp_path, foreign.write(tmp_path / "r.json", [equal])) == {("server-pp512", "c1"): 2}


@pytest.mark.parametrize("make", [foreign.vllm, foreign.vllm_summary])
def test_two_loads_at_which_every_request_failed_are_not_one(tmp_path, make):
    """As of a server that is gone: all figures are 0, and requests may be sent at the same times."""
    of = foreign.answered(make(1, requests=4), 0) | {"failed": 4, "output_throughput": 0.0}
    of |= {key: 0.0 for key in of if key.startswith(("mean", "median", "p99"))}
    if "ttfts" in of:
        of |= {"ttfts": [0.0] * 4, "itls": [[]] * 4, "output_lens": [0] * 4, "errors": ["refused"] * 4}
    files = [foreign.write(tmp_path / f"{most}.json", of | {"max_concurrency": most}) for most in (4, 8)]
    assert made(tmp_path, *files) == {("server", "c4"): 1, ("server", "c8"): 1}


def test_files_that_name_no_load_meet_at_one_point(tmp_path):
    """However many requests of each were in flight at once."""
    files = [
        foreign.write_lines(tmp_path / f"{seed}.jsonl", foreign.aiperf_lines(seed)[: 100 + seed])
        for seed in (0, 1)
    ]
    unbounded = [line | {"metadata": line["metadata"] | {"request_start_ns": 1_763_100_000_000_000_000,
                                                         "request_end_ns": 1_763_100_001_000_000_000}}
                 for line in foreign.aiperf_lines(2)]  # fmt: skip
    files.append(foreign.write_lines(tmp_path / "2.jsonl", unbounded))
    assert made(tmp_path, *files) == {("server", "u1"): 3}


def test_more_than_a_thousand_cells_sort_in_the_order_of_their_file(tmp_path, monkeypatch):
    written = SimpleNamespace(run_id="run", cells=[])
    written.write_cell = lambda _records, facts: written.cells.append(facts.cell)
    written.write_manifest = lambda manifest: setattr(written, "order", list(manifest.order))
    monkeypatch.setattr(folder, "RunFolder", SimpleNamespace(create=lambda _out, _name: written))
    imported(parts(foreign.write(tmp_path / "bench.json", LLAMA)) * 501, tmp_path)
    assert len(written.cells) == 1002
    assert written.cells == sorted(written.cells) == written.order
