"""What a resumed run keeps of the one that was cut short, and what it refuses."""

from itertools import pairwise
from types import SimpleNamespace

import pytest

from harness import __version__
from harness.errors import SpecError
from harness.host.installation import DISTRIBUTION
from harness.model import HostFacts, LoadPoint, Manifest
from harness.run.keep.manifest import ManifestWriter, require_unchanged
from harness.run.keep.stored import Stored
from harness.run.keep.verified import verify
from harness.sampling import machine
from harness.spec import files
from harness.store import seal
from harness.summary import run as summary_run
from harness.validity import notices
from tests.bench.audit.gates import change_json, mend
from tests.factories.documents import changed, made
from tests.factories.runs import SMALL, TWO, Shape, make_run

PREPARED = SimpleNamespace(
    source=None, scenario="chat", options=SimpleNamespace(pairing="starts"), backends=(), plan=()
)
HERE = HostFacts(hostname="node1", cpu="EPYC", cpus_usable=8, gpus=("A100", "A100"), load_average_1min=0.1)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return make_run(tmp_path, SMALL)


def test_warnings_stay_unless_the_resumed_run_gives_them_again(run):
    kept = [
        notices.ENGINE_DIED.warning("llamacpp: the engine died"),
        notices.LIBRARY.warning("llamacpp: a library"),
        notices.AGREEMENT_MISSING.warning("/cache/weights: no reference: killed"),
    ]
    again = [
        notices.NOT_MEASURED.warning("llamacpp@no-prefix-cache: no port", backend="llamacpp@no-prefix-cache"),
        notices.AGREEMENT_MISSING.warning("llamacpp: no answer", backend="llamacpp"),
        notices.TRACE_CHANGED.warning("trace.jsonl: 3 times moved"),
    ]
    run.write_manifest(changed(run.read_manifest(), warnings=[*kept, *again]))
    assert list(ManifestWriter.resumed(run, PREPARED).document.warnings) == kept


def test_a_reference_that_answers_withdraws_its_own_warnings_and_no_backend_s(run):
    """A backend may be called `reference`, and an error may begin with a backend's name."""
    kept = notices.AGREEMENT_MISSING.warning("reference: no answer", backend="reference")
    gone = notices.AGREEMENT_MISSING.warning("llamacpp: no reference: killed")
    run.write_manifest(changed(run.read_manifest(), warnings=[gone, kept]))
    writer = ManifestWriter(run, run.read_manifest(), PREPARED)
    writer.withdraw(notices.AGREEMENT_MISSING)
    assert list(writer.document.warnings) == [kept]
    writer.withdraw(notices.AGREEMENT_MISSING, "llamacpp")
    assert list(writer.document.warnings) == [kept]
    writer.withdraw(notices.AGREEMENT_MISSING, "reference")  # it answered in a later start
    assert list(writer.document.warnings) == []


def test_the_summaries_of_a_long_run_take_a_time_that_grows_with_its_cells(monkeypatch):
    """A short run has one after each block, as a cell that is measured again has."""
    lengths = []
    monkeypatch.setattr(Stored, "summary", property(lambda run: len(run.cells)))
    run = Stored(PREPARED, SimpleNamespace(write_summary=lengths.append), None, None)
    run.cells = [None] * 3
    run.write_summary()
    run.write_summary()
    assert lengths == [3, 3]
    for _ in range(3, 2000):
        run.cells.append(None)
        run.write_summary()
    assert lengths[1:17] == [*range(3, 19)]
    assert max(later - earlier for earlier, later in pairwise(lengths)) <= 200
    assert sum(lengths) < 11 * 2000


def test_a_run_holds_samples_of_as_many_cells_as_have_room(run, monkeypatch):
    """Those of every cell were held: 1 MB of a large one, so that a night's memory grew with its cells."""
    first, second = run.cells()
    small = Stored.resume(PREPARED, run, SimpleNamespace(note=print))
    size = sum(values.nbytes for values in small.samples[first].values())
    monkeypatch.setattr(summary_run, "_ROOM_BYTES", size)
    large = Stored.resume(PREPARED, run, SimpleNamespace(note=print))
    assert [cell for cell, held in large.samples._read.items() if held] == [first]
    assert large.summary == small.summary
    large.samples.forget(first)
    assert list(large.samples) == [second]
    large.samples.forget(second)
    assert large.samples._room == size


def test_a_cell_that_was_cut_short_leaves_the_folder_until_it_is_measured_again(run):
    """Whoever reads the folder finds the cells of its summary."""
    whole, cut_short = run.cells()
    change_json(run.cell_path(cut_short) / "cell.json", lambda facts: facts.update(interrupted=True))
    mend(run.path)
    resumed = Stored.resume(PREPARED, run, SimpleNamespace(note=print))
    resumed.manifest.write(state="interrupted")
    run.write_summary(resumed.summary)
    assert [cell.cell for cell in resumed.cells] == [whole]
    assert verify(run).whole
    assert (run.path / "set-aside" / f"{cut_short}.1-cut-short" / "requests.parquet").is_file()


@pytest.mark.parametrize("there", [None, ".requests.parquet.0123.partial", "requests.parquet"])
def test_a_cell_that_was_begun_and_not_stored_is_another_try_when_it_is_measured(run, there):
    """Its prompts were sent: a salt that goes by the number of tries is to differ from theirs."""
    mend(run.path)
    run.files.make_folder("cells/005-killed")
    if there:
        run.files.write(f"cells/005-killed/{there}", b"PAR1")
    resumed = Stored.resume(PREPARED, run, SimpleNamespace(note=print))
    assert len(resumed.cells) == 2
    assert run.times_set_aside("005-killed") == 1
    assert run.times_set_aside("005-killed", whole=True) == 0
    assert seal.faults(run.files)[1] == []


@pytest.mark.parametrize(
    ("pairing", "cores", "kept"),
    [("duet", (), 1), ("blocks", (), 1), ("blocks", (0,), 0), ("duet", (0,), 0), ("starts", (), 2)],
)
def test_cells_next_to_a_killed_one_are_measured_again_with_it(tmp_path, monkeypatch, pairing, cores, kept):
    """They were loaded next to another, or alternately with it, which is to be in the same life of both.

    Running servers, which have no cores, have one start: there it is the cell of the same repeat alone.
    """
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    one_engine = Shape(engines=TWO[:1], concurrency=(2,), repeats=2, requests=4, output_tokens=2)
    run = make_run(tmp_path, one_engine)
    names, load = [*run.cells(), "005-killed"], LoadPoint("concurrency", 2)
    plan = [
        SimpleNamespace(start=0, repeat=at, cells=(SimpleNamespace(name=name, load=load),))
        for name, at in zip(names, (0, 1, 1), strict=True)
    ]
    run.files.make_folder("cells/005-killed")
    options = SimpleNamespace(pairing=pairing)
    prepared = SimpleNamespace(
        **{**vars(PREPARED), "options": options, "plan": plan, "cores_of": lambda _: cores}
    )
    resumed = Stored.resume(prepared, run, SimpleNamespace(note=print))
    assert [cell.cell for cell in resumed.cells] == run.cells() == names[:kept]
    assert [run.times_set_aside(name) for name in names] == [0] * kept + [1] * (3 - kept)


def begun(host, version=__version__):
    manifest = made(
        Manifest, scenario_sha256=files.fingerprint("chat"), host=host, packages={DISTRIBUTION: version}
    )
    return SimpleNamespace(read_manifest=lambda: manifest, path="results/1")


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setattr(machine, "host_facts", lambda: HERE)


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ({"gpus": ("H100",)}, "the machine (gpus: H100, now A100, A100)"),
        ({"cpu_quota": 2.0}, "the machine (cpu_quota: 2.0, now none)"),
        ({"gpus": None, "cpus_usable": 4}, "the machine (cpus_usable: 4, now 8; gpus: none, now A100, A100)"),
    ],
)
def test_another_machine_does_not_go_on_with_a_run(here, before, said):
    with pytest.raises(SpecError) as caught:
        require_unchanged(begun(changed(HERE, **before)), PREPARED)
    assert caught.value.what == f"{said} has changed since this run began"
    assert caught.value.hint == "resume it where it began, or start a new run with `bench run`"


@pytest.mark.parametrize("host", [HERE, changed(HERE, hostname="c0ffee", load_average_1min=9.0), None])
def test_the_same_machine_goes_on_after_a_restart_and_under_another_name(here, host):
    require_unchanged(begun(host), PREPARED)


def test_another_version_does_not_go_on_with_a_run(here):
    with pytest.raises(SpecError) as caught:
        require_unchanged(begun(HERE, "0.0.1"), PREPARED)
    assert caught.value.what == f"bench (0.0.1, now {__version__}) has changed since this run began"
    assert caught.value.hint == "install llm-servebench 0.0.1, or start a new run with `bench run`"
