"""`bench verify`: figures computed again, planned cells, and what the machine that measured recorded."""

import json
import shutil
from collections import Counter

import pytest
from msgspec.structs import replace

from harness.cli.main import main
from harness.errors import ExitCode
from harness.model import AskedBackend, RunWarning, WorkloadCards
from harness.run.keep import origin, verified
from harness.run.keep.differences import Difference, is_reworded
from harness.run.keep.verified import verify
from harness.run.setup.options import RunOptions
from harness.store import RunFolder, seal
from harness.summary import summarise_folder
from tests.bench.audit.gates import change_json, mend
from tests.factories.documents import made
from tests.factories.runs import SMALL, Shape, copy_of, make_run

CELLS = ("000-llamacpp-c2-r0", "001-llamacpp@no-prefix-cache-c2-r0")


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    folder = make_run(tmp_path_factory.mktemp("runs"), SMALL)
    mend(folder.path)
    return folder


@pytest.fixture(scope="module")
def repeated_run(tmp_path_factory):
    shape = Shape(concurrency=(2,), requests=6, repeats=3, output_tokens=4)
    return make_run(tmp_path_factory.mktemp("runs"), shape)


@pytest.fixture
def run(whole_run, tmp_path, monkeypatch):
    """A copy to be changed, with a cache in which nothing is known of it."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return copy_of(whole_run, tmp_path)


def said(run, capsys, *more):
    """Exit code, and what was printed without the folder's name."""
    code = main(["verify", str(run.path), *more])
    return code, capsys.readouterr().out.replace(str(run.path), "")


def test_a_run_as_it_was_written_is_identical(run, capsys):
    code, text = said(run, capsys)
    assert code == ExitCode.OK
    assert "every figure is identical" in text
    assert "as this machine recorded them" not in text


def test_a_changed_figure_is_named_with_how_far_it_is_off(run, capsys):
    def faster(summary):
        summary["cells"][1]["e2e_ms"]["p50"] *= 0.7

    change_json(run.path / "summary.json", faster)
    mend(run.path)
    assert seal.faults(run.files)[1] == []
    code, text = said(run, capsys)
    assert code == ExitCode.LIMIT_FAILED
    assert f": cells[{CELLS[1]}].e2e_ms.p50: " in text
    assert "(-30%)" in text
    assert json.loads(said(run, capsys, "--json")[1])[""]["state"] == "differs"


@pytest.fixture
def other_words(run, monkeypatch):
    """A run of another version, of which the records give these warnings."""

    def warned(stored, computed):
        monkeypatch.setattr(verified, "_is_other_version", lambda _manifest: True)
        warning = RunWarning(code="one-repeat", text=computed, hint=None)
        summarised = replace(summarise_folder(run), warnings=(warning,))
        monkeypatch.setattr(verified, "summarise_folder", lambda *_more: summarised)
        run.write_summary(replace(summarised, warnings=(replace(warning, text=stored),)))
        return run

    return warned


@pytest.mark.parametrize(
    ("stored", "computed"),
    [
        ("2 and 2 runs, 3 are needed", "2 runs each, 3 are needed"),
        ("a retry was needed", "it was asked again"),
        ("llamacpp: its queue grew by 12 %", "the queue of llamacpp became longer (12%)"),
    ],
)
def test_a_sentence_of_another_version_may_have_other_words(other_words, capsys, stored, computed):
    run = other_words(stored, computed)
    code, text = said(run, capsys)
    assert code == ExitCode.OK
    line = f": text of another version: warnings[0].text: {stored} stored, {computed} from the records"
    assert line in text.splitlines()
    (found,) = json.loads(said(run, capsys, "--json")[1]).values()
    assert found["state"] == "reworded"
    assert found["reworded"] == [{"path": "warnings[0].text", "stored": stored, "computed": computed}]


@pytest.mark.parametrize(
    ("stored", "computed"),
    [
        ("12% of the requests failed", "13% of the requests failed"),
        ("llamacpp is ahead of llamacpp@no-prefix-cache", "llamacpp@no-prefix-cache is ahead of llamacpp"),
        ("llamacpp was faster", "llamacpp was slower"),
        ("the client was idle", "the client was not idle"),
        ("beyond the floor", "within the floor"),
        ("it stood for 5 s", "it stood for 5 ms"),
        ("room for 5 GiB", "room for 5 MiB"),
        ("more than 5 tokens/s", "more than 5 requests/s"),
    ],
)
def test_a_sentence_that_names_something_else_differs_whoever_wrote_it(other_words, capsys, stored, computed):
    code, text = said(other_words(stored, computed), capsys)
    assert code == ExitCode.LIMIT_FAILED
    assert f": warnings[0].text: {stored} stored, {computed} from the records" in text.splitlines()


@pytest.mark.parametrize("same", [0, 60, 79, 81, 300])
def test_a_long_text_is_shown_where_it_differs(same):
    """And not as two beginnings that are the same."""
    stored, computed = (same * "=" + word + 200 * "-" for word in ("inside", "outside"))
    text = Difference("warnings[0].text", stored, computed).text
    assert "=inside" in text or not same
    assert "=outside" in text or not same
    assert len(text) < 330
    assert text.count("…") == (2 if same < 81 else 4)


def test_a_value_that_reads_absent_is_not_one_that_another_version_lacks(other_words, capsys):
    run = other_words("same", "same")
    summary = run.read_summary()
    first, *rest = summary.cells
    run.write_summary(replace(summary, cells=(replace(first, engine_version="absent"), *rest)))
    code, text = said(run, capsys)
    assert code == ExitCode.LIMIT_FAILED
    assert f"cells[{first.cell}].engine_version: absent stored, " in text


@pytest.mark.parametrize("known", [True, False])
def test_a_value_that_this_version_would_have_given_is_not_new(other_words, capsys, known):
    """One more outcome of requests; a key of a version to come is none that can be compared."""
    run = other_words("same", "same")
    key = "timeout" if known else "of_a_version_to_come"

    def add(summary):
        requests = summary["cells"][0]["requests"]
        (requests["outcomes"] if known else requests)[key] = 5

    change_json(run.path / "summary.json", add)
    mend(run.path)
    code, text = said(run, capsys)
    assert code == (ExitCode.LIMIT_FAILED if known else ExitCode.OK)
    assert (f"outcomes.{key}: 5 stored, absent from the records" in text) == known
    assert ("values that are new in this version: 1" in text) == (not known)


def test_a_sentence_of_the_same_version_has_the_same_words(other_words, capsys, monkeypatch):
    run = other_words("a retry was needed", "it was asked again")
    monkeypatch.setattr(verified, "_is_other_version", lambda _manifest: False)
    assert said(run, capsys)[0] == ExitCode.LIMIT_FAILED


@pytest.mark.parametrize("name", ["rankings[0].line", "comparison[0].verdict", "cells[0].engine_version"])
def test_a_rank_line_a_verdict_and_a_version_are_no_sentences(name):
    assert not is_reworded(Difference(name, "one text", "another text"), ())


def test_a_hint_of_another_version_may_advise_something_else():
    for name in ("warnings[0].hint", "cells[001].validity.reasons[0].hint"):
        assert is_reworded(Difference(name, "measure longer: --requests 100", "use --duration 60"), ())
    assert not is_reworded(Difference("warnings[0].hint", "one text", None), ())


def test_a_run_that_was_killed_says_what_sums_up_its_cells(run, capsys, monkeypatch):
    """Its summary is of some cells before: it is not written after each."""
    monkeypatch.setattr("harness.run.keep.verified._is_other_version", lambda _manifest: False)
    change_json(run.path / "summary.json", lambda summary: summary["cells"].pop())
    change_json(run.path / "manifest.json", lambda manifest: manifest.update(state="running"))
    mend(run.path)
    assert main(["compare", str(run.path), "--force"]) == ExitCode.USAGE
    assert "hint: it goes on, or was cut off: `bench report` sums up its cells" in capsys.readouterr().err


def test_compare_takes_its_figures_from_the_records(run, whole_run, capsys):
    """A forged summary of a run that says it is of another version changes nothing that is compared."""
    command = ["compare", str(whole_run.path), "--force", "--json"]
    assert main(command) == main([*command[:1], str(run.path), *command[2:]])
    honest = json.loads(capsys.readouterr().out.split("\n}\n")[0] + "}")["pairs"]

    def forged(summary):
        for cell in summary["cells"]:
            cell["ttft_ms"]["p50"] = 1.0

    change_json(run.path / "summary.json", forged)
    mend(run.path)
    main(["compare", str(run.path), "--force", "--json"])
    told = capsys.readouterr()
    assert json.loads(told.out)["pairs"] == honest
    assert "2 values not as in its summary.json" in told.err
    main(["compare", str(run.path), "--force", "--json", "--unverified"])
    told = capsys.readouterr()
    assert json.loads(told.out)["pairs"] != honest
    assert "warning: NOT VERIFIED" in told.err


def test_a_cell_that_was_planned_and_is_gone_is_a_fault(run, capsys):
    shutil.rmtree(run.cell_path(CELLS[0]))
    run.write_summary(summarise_folder(run))
    mend(run.path)
    code, text = said(run, capsys)
    assert code == ExitCode.LIMIT_FAILED
    assert f"/cells/{CELLS[0]} was planned and is missing" in text
    assert main(["compare", str(run.path)]) == ExitCode.USAGE
    assert "was planned and is missing" in capsys.readouterr().err


@pytest.mark.parametrize(("place", "found"), [(0, ["was planned and is missing"]), (1, [])])
def test_an_interruption_explains_only_cells_after_the_last_one(run, place, found):
    """Cells are measured in their order: the first of two was there before the second."""
    shutil.rmtree(run.cell_path(CELLS[place]))
    change_json(run.path / "manifest.json", lambda manifest: manifest.update(state="interrupted"))
    mend(run.path)
    run.write_summary(summarise_folder(run))
    mend(run.path)
    assert [fault.what for fault in verify(run).faults] == found


@pytest.mark.parametrize(("reason", "missing"), [("budget", 0), ("decided", 4)])
def test_a_budget_may_end_a_run_before_its_first_look(repeated_run, tmp_path, reason, missing):
    """One repeat shows that there is no time for the three of the first look."""
    run = copy_of(repeated_run, tmp_path)
    for cell in run.cells():
        if not cell.endswith("-r0"):
            shutil.rmtree(run.cell_path(cell))
    looks = {"looks": [3, 5], "repeats": 0, "reason": reason, "budget_s": 60.0, "spent_s": 50.0}
    change_json(run.path / "manifest.json", lambda manifest: manifest.update(stopping=looks))
    mend(run.path)
    run.write_summary(summarise_folder(run))
    mend(run.path)
    assert [fault.what for fault in verify(run).faults] == ["was planned and is missing"] * missing


def test_a_cell_that_was_set_aside_may_be_missing_after_an_interruption_only(run):
    run.set_aside(CELLS[0])
    run.write_summary(summarise_folder(run))
    mend(run.path)
    assert [fault.what for fault in verify(run).faults] == ["was planned and is missing"]
    change_json(run.path / "manifest.json", lambda manifest: manifest.update(state="interrupted"))
    mend(run.path)
    run.write_summary(summarise_folder(run))
    mend(run.path)
    assert verify(run).faults == ()


def test_the_damage_of_a_cell_that_was_measured_again_is_no_reason_to_refuse_the_figures(run):
    """`bench resume` keeps the damaged one aside: no figure is made of it."""
    aside = run.set_aside(CELLS[0])
    shutil.copytree(run.path / aside, run.path / "cells" / CELLS[0])
    mend(run.path)
    (run.path / aside / "requests.parquet").write_bytes(b"damaged")
    checked = verify(run)
    assert [fault.path for fault in checked.faults] == [f"{aside}/requests.parquet"]
    assert (checked.whole, checked.doubts) == (False, [])
    shutil.rmtree(run.path / "cells" / CELLS[0])
    assert f"{aside}/requests.parquet is damaged: it is not what was written" in verify(run).doubts


@pytest.mark.usefixtures("without_plots")
def test_a_price_that_came_after_the_run_is_no_difference_but_a_wrong_cost_is(run, capsys):
    assert main(["report", str(run.path), "--price-per-hour", "3"]) == ExitCode.OK
    capsys.readouterr()
    code, text = said(run, capsys)
    assert code == ExitCode.OK
    assert "its costs are at a price that it got after the run" in text

    def cheaper(summary):
        summary["cells"][0]["cost"]["per_million_output_tokens"] /= 2

    change_json(run.path / "summary.json", cheaper)
    mend(run.path)
    code, text = said(run, capsys)
    assert code == ExitCode.LIMIT_FAILED
    assert f"cells[{CELLS[0]}].cost.per_million_output_tokens: " in text
    assert text.count("cost.") == 1


def test_a_cell_of_an_engine_that_did_not_start_is_not_missing(run):
    def failed(manifest):
        manifest["failures"] = [{"backend": "llamacpp", "repeat": 0, "error": "no port"}]

    shutil.rmtree(run.cell_path(CELLS[0]))
    change_json(run.path / "manifest.json", failed)
    mend(run.path)
    run.write_summary(summarise_folder(run))
    mend(run.path)
    assert verify(run).faults == ()
    shutil.rmtree(run.cell_path(CELLS[1]))  # nothing explains that of the other engine
    mend(run.path)
    assert seal.Fault(f"cells/{CELLS[1]}", "was planned and is missing") in verify(run).faults


@pytest.mark.parametrize(
    ("kind", "missing"), [(None, 0), ("died", 0), ("hung", 0), ("slow", 1), ("stopped", 1)]
)
def test_only_the_end_of_an_engine_explains_missing_cells_of_its_life(tmp_path, kind, missing):
    """One that was too slow got the next load. Files of older versions keep no kind."""
    run = make_run(tmp_path, Shape(concurrency=(2, 4), requests=6, output_tokens=4))
    first, second = [cell for cell in run.cells() if "llamacpp-c" in cell]
    change_json(
        run.cell_path(first) / "cell.json", lambda facts: facts.update(engine_exited="why", engine_end=kind)
    )
    shutil.rmtree(run.cell_path(second))
    mend(run.path)
    run.write_summary(summarise_folder(run))
    mend(run.path)
    assert [fault.what for fault in verify(run).faults] == ["was planned and is missing"] * missing


def test_a_cell_that_nobody_planned_is_a_fault(run):
    def without(plan):
        plan["blocks"] = plan["blocks"][1:]

    change_json(run.path / "plan.json", without)
    mend(run.path)
    assert {fault.what for fault in verify(run).faults} == {
        "was not planned",
        "has other cells than manifest.json",
    }


def test_a_plan_that_cannot_be_read_is_a_fault(run):
    change_json(run.path / "plan.json", lambda plan: plan.pop("blocks"))
    mend(run.path)
    (fault,) = (fault for fault in verify(run).faults if fault.what.startswith("cannot be read"))
    assert fault.path == "plan.json"


@pytest.mark.parametrize(
    "name", ["manifest.json", "summary.json", "workload.json", "agreement/questions.json"]
)
@pytest.mark.parametrize("gone", [True, False])
def test_a_document_that_is_gone_or_damaged_hides_no_other_fault(run, capsys, name, gone):
    run.write_cards(WorkloadCards(cards={}))
    run.write_answers({"questions": []}, "llamacpp", made(AskedBackend))
    mend(run.path)
    (run.path / name).unlink() if gone else (run.path / name).write_text("{}")
    (run.cell_path(CELLS[0]) / "events.parquet").write_bytes(b"")
    code, text = said(run, capsys)
    assert code == ExitCode.LIMIT_FAILED
    assert f"/{name} is {'missing' if gone else 'damaged'}" in text
    assert f"/cells/{CELLS[0]}/events.parquet is damaged" in text


def test_without_records_nothing_is_identical(run):
    shutil.rmtree(run.path / "cells")
    mend(run.path)
    checked = verify(run)
    assert checked.missing == (f"cannot be computed again: no whole records of {', '.join(CELLS)}",)
    assert not checked.whole


def test_the_machine_that_measured_notices_what_agrees_with_itself(run, capsys):
    """A repeat of `bench resume` begins a new record, unless the files were changed meanwhile."""
    plan = {"plan.json": run.files.sha256("plan.json")}
    origin.keep(run.run_id, RunOptions(scenario="x", backends="y"), plan)
    origin.keep_measured(run.run_id, seal.measured(run.files))
    before = verify(run)
    assert before.recorded
    assert before.whole
    change_json(run.path / "manifest.json", lambda manifest: manifest["host"].update(cpu="Another CPU"))
    mend(run.path)
    run.write_summary(summarise_folder(run))
    mend(run.path)
    for _ in range(2):
        assert [(one.path, one.what) for one in verify(run).faults] == [
            ("manifest.json", "is not what this machine wrote when it measured")
        ]
        origin.begin_again(run.run_id, seal.measured(run.files), ())
        origin.keep_measured(run.run_id, seal.measured(run.files))
    code, text = said(run, capsys, "--seal", before.seal)
    assert code == ExitCode.LIMIT_FAILED
    assert "is not what was sealed" in text


def test_a_report_changes_no_seal(run):
    before = verify(run).seal
    run.write_summary(summarise_folder(run))
    assert verify(run).seal == before


def test_a_block_that_passes_as_a_start_is_a_fault(run):
    """Each block would be a value of its own in an interval that is over starts."""
    change_json(run.cell_path(CELLS[1]) / "cell.json", lambda facts: facts["identity"].update(start_number=1))
    mend(run.path)
    run.write_summary(summarise_folder(run))
    mend(run.path)
    assert [fault.what for fault in verify(run).faults] == [
        "is of another start of the engines than was planned"
    ]


def test_the_plan_reads_the_cells_of_a_start_as_often_however_many_blocks_it_has(
    repeated_run, tmp_path, monkeypatch
):
    folder, read, real = copy_of(repeated_run, tmp_path), Counter(), RunFolder.read_facts
    plan = folder.read_plan()
    folder.write_plan(replace(plan, blocks=tuple(replace(block, start=0) for block in plan.blocks)))

    def counted(self, cell):
        read[cell] += 1
        return real(self, cell)

    monkeypatch.setattr(RunFolder, "read_facts", counted)
    verify(folder)
    assert len(read) == 6
    assert set(read.values()) == {3}  # how its engine ended, its start, and its figures
