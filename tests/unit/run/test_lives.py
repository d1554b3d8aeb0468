"""What an engine is asked for, by the scenario that it will be measured with, and who counts its tokens."""

import threading
from collections import Counter
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from harness.errors import SetupError, SpecError, StorageError
from harness.host.access import Access
from harness.load import http2
from harness.model import Ending, Probed
from harness.model.ending import LATER_LOADS
from harness.plan import Probe
from harness.run import execute, lives
from harness.run.conformance import without_http2
from harness.run.execute import Run
from harness.run.keep.manifest import ManifestWriter
from harness.run.lives import Lives
from harness.run.questions import Questions
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare


def test_a_first_answer_has_the_time_of_the_requests_after_it():
    prepared = prepare(RunOptions("fixed-length", "openai=http://h:1", overrides={"request.timeout_s": 700}))
    folder = SimpleNamespace(log_path=lambda _life: Path("log"))
    manifest = SimpleNamespace(document=SimpleNamespace(backends={"openai": SimpleNamespace(engine=None)}))
    run = SimpleNamespace(
        prepared=prepared, folder=folder, manifest=manifest, announced=(), _life=lambda _block: "life"
    )
    assert Lives._request(run, prepared.plan[0]).answer_s == 700
    manifest.document.backends["openai"].engine = {"served_name": "llama"}
    assert Lives._request(run, prepared.plan[0]).named_before == "llama"


@pytest.mark.parametrize(
    ("backends", "launch", "what", "then"),
    [
        ("openai=http://h:1", "auto", "not asked again, because it could not be used 2 times", "asks it"),
        ("vllm", "simulate", "not started again, because 2 starts in a row failed", "starts it"),
    ],
)
def test_a_backend_is_given_up_after_two_failures_in_words_that_are_true_of_it(backends, launch, what, then):
    prepared = prepare(RunOptions("fixed-length", backends, launch=launch))
    block = prepared.plan[0]
    failed = Counter({prepared.of(block).label: 2})
    run = SimpleNamespace(prepared=prepared, refused={}, failed_starts=failed)
    with pytest.raises(SetupError, match=what) as caught:
        Lives.opened(run, block, ExitStack())
    assert caught.value.hint.endswith(f"`bench resume` {then} again")


@pytest.mark.parametrize(("ended", "refused"), [(None, ["openai"]), (Ending("died", "exit status 1"), [])])
def test_an_engine_that_ended_before_it_was_asked_for_http2_is_started_again(monkeypatch, ended, refused):
    prepared = prepare(RunOptions("fixed-length", "openai=http://h:1", http2=True))
    monkeypatch.setattr(execute, "without_http2", lambda label, _engine: SetupError("refused", where=label))
    liveness = SimpleNamespace(look=lambda suspected: ended)
    engine = SimpleNamespace(end_as_error=lambda _label: ExitStack(), liveness=liveness)
    run = SimpleNamespace(prepared=prepared, refused={})
    with pytest.raises(SetupError, match="refused"):
        Run._begin(run, prepared.plan[0].cells[0], engine)
    assert [*run.refused] == refused


@pytest.mark.parametrize(
    ("reasons", "error"),
    [
        ([""], None),
        (["reset", ""], None),
        (["reset", "in HTTP/1"], "cannot be measured over HTTP/2: in HTTP/1"),
    ],
)
def test_one_connection_over_http2_that_fails_is_tried_again(monkeypatch, reasons, error):
    asked = iter(reasons)
    monkeypatch.setattr(http2, "unreachable", lambda _job: next(asked))
    engine = SimpleNamespace(api_urls=["http://h:1/v1/chat/completions"], access=Access())
    found = without_http2("openai", engine)
    assert (found and found.what.removeprefix("it ")) == error
    assert list(asked) == []


UI = SimpleNamespace(note=lambda text: None, stage=lambda text: None, load=lambda cell, progress: None)


@pytest.mark.parametrize(
    ("scenario", "order"),
    [("cold-start", ["cell", "probe"]), ("single-user", ["probe", "cell", "again", "cell", "again"])],
)
def test_first_requests_after_a_start_follow_neither_a_probe_nor_another_try(
    tmp_path, monkeypatch, scenario, order
):
    run = Run.start(prepare(RunOptions(scenario, "vllm", launch="simulate", repeats=1, out=tmp_path)), UI)
    done = []
    engine = SimpleNamespace(end_as_error=lambda _label: ExitStack())
    first = scenario == "cold-start"
    facts = SimpleNamespace(cache=SimpleNamespace(method="reset"), engine_over=False, after_start=first)
    workloads = SimpleNamespace(of=lambda _cell: SimpleNamespace(requests=[]))
    for name, fake in {
        "opened": lambda *_: engine,
        "workloads_of": lambda *_: workloads,
        "_ready": lambda *_: None,
        "_measure": lambda *_: done.append("cell") or (None, facts),
        "again": lambda *_: done.append("again") or done.count("again") == 1,
    }.items():
        monkeypatch.setattr(Run, name, fake)
    monkeypatch.setattr(execute, "cell_line", lambda *_: "")
    chats = Probed(findings=(), prompt_tokens={"user": 10, "system + user": 20})
    monkeypatch.setattr(execute, "probe_engine", lambda *_: done.append("probe") or chats)
    monkeypatch.setattr(execute, "keep_probe", lambda *_: None)
    monkeypatch.setattr(execute, "refusal", lambda *_: None)
    run._lives(run.prepared.plan[:1])
    assert done == order
    assert run.probed == {"vllm": 20}


def letters(texts):
    return [-(-len(text) // 4) for text in texts]


def up(counter):
    """An engine that counts tokens with `counter`, or has no tokenizer."""
    return SimpleNamespace(base_url="http://h", count_tokens=counter or (lambda texts: None))


@pytest.fixture
def cut_short(tmp_path, monkeypatch):
    """A run of two backends whose prompts the first one's tokenizer counted; and how it is resumed."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    options = RunOptions("fixed-length", "vllm,llamacpp", launch="simulate", out=tmp_path / "results")
    prepared = prepare(options)
    begun = Run.start(prepared, UI)
    first, second = (next(b for b in prepared.plan if b.backend == backend) for backend in (0, 1))

    def resumed():
        return Run(prepared, begun.folder, UI, ManifestWriter.resumed(begun.folder, prepared))

    return begun, resumed, first, second


def test_a_resumed_run_is_counted_by_the_backend_that_it_began_with(cut_short, monkeypatch):
    begun, resumed, first, second = cut_short
    made = begun.workloads_of(first, up(letters))
    assert begun.manifest.document.counted_by == "vllm"
    again, opened = resumed(), []
    monkeypatch.setattr(again, "opened", lambda block, _: opened.append(block) or up(letters))
    again.count_as_begun([second])
    assert opened == [first]
    assert again.workloads_of(second, up(None)).sha256() == made.sha256()
    again.count_as_begun([second])
    resumed().count_as_begun([first])
    assert opened == [first], "once, and not where it is up first anyway"


@pytest.mark.parametrize(
    ("requests", "probe", "lacks"), [(9, None, True), (3, None, False), (3, Probe(1.0, answers=9), True)]
)
def test_prompts_that_are_left_out_for_their_length_are_a_warning(
    tmp_path, monkeypatch, requests, probe, lacks
):
    """A capacity search asks for more of them when it tries a load."""
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(f'{{"prompt": "{"word " * words}{words}"}}\n' for words in (1, 2, 3, 30, 40)))
    given = {"prompts.file": str(file), "prompts.max_input_tokens": 20, "load.requests": requests}
    prepared = prepare(RunOptions("prompt-file", "truth", overrides=given, out=tmp_path / "results"))
    begun = Run.start(prepared, UI)
    monkeypatch.setattr(begun, "_between_repeats", lambda *_: None)
    looks, liveness = [], SimpleNamespace(look=lambda: None, before_load=lambda *_: None)
    facts = {"facts": {}, "liveness": liveness, "look_again": lambda: looks.append("at a cell")}
    engine = SimpleNamespace(**facts, **vars(up(letters)))
    block = prepared.plan[0]
    cell = replace(block.cells[0], repeat=1, probe=probe) if probe else block.cells[0]
    begun._ready(cell, begun.workloads_of(block, engine), engine)
    found = [warning for warning in begun.manifest.document.warnings if warning.code == "file-lines-left-out"]
    text = f"{file}: 2 of 5 prompts left out for their length"
    assert [warning.text for warning in found] == ([text] if lacks else [])
    assert looks == ["at a cell"]


@pytest.fixture
def attached(tmp_path, monkeypatch):
    """A run on a running server that went down, its engine, and what is asked of that."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    options = RunOptions("fixed-length", "vllm=http://h:1", out=tmp_path / "results")
    run, asked = Run.start(prepare(options), UI), []

    def engine(found, *, started_here=False):
        stays_away = found is not None and found.kind not in LATER_LOADS
        return SimpleNamespace(
            base_url="http://h:1",
            started_here=started_here,
            liveness=SimpleNamespace(
                before_load=lambda *_: asked.append("wait") or found,
                look=lambda: found if stays_away and "wait" in asked else None,
            ),
            look_again=lambda: asked.append("look"),
        )

    monkeypatch.setattr(run, "_between_repeats", lambda *_: asked.append("reset"))
    return run, engine, asked


@pytest.mark.parametrize(
    ("found", "codes"), [(None, []), (Ending("slow", "refused before a load"), ["another-start"])]
)
def test_what_a_server_reports_is_read_once_it_is_back(attached, found, codes):
    """The first cell after a restart had the version of before."""
    run, engine, asked = attached
    run.make_ready(run.prepared.plan[0].cells[0], engine(found))
    assert asked == ["wait", "reset", "look"]
    warnings = run.manifest.document.warnings
    assert [warning.code for warning in warnings] == codes
    for warning in warnings:
        assert warning.text.startswith("vllm did not serve before 000-vllm-c1-r0, and did after 0 s: ")


def test_one_that_stays_away_is_not_measured(attached, monkeypatch):
    run, engine, asked = attached
    with pytest.raises(SetupError, match="refused for a minute"):
        run.make_ready(run.prepared.plan[0].cells[0], engine(Ending("died", "refused for a minute")))
    assert asked == ["wait"]
    run.announced.add("vllm")
    begun = []
    monkeypatch.setattr(lives, "open_engine", lambda request, _say: begun.append(request) or nullcontext())
    with pytest.raises(AttributeError), ExitStack() as stack:  # there is no engine
        run.opened(run.prepared.plan[0], stack)
    assert [request.served_before for request in begun] == [False], "it was waited for as long as it may take"


def test_a_wait_in_vain_counts_once_so_that_a_later_life_asks_once_more(attached, monkeypatch):
    """What is tried again after it counted it a second time, and no later life asked the server."""
    run, engine, asked = attached
    server = engine(Ending("died", "refused for a minute"))
    block, workloads = run.prepared.plan[0], SimpleNamespace(of=lambda _cell: None)
    with pytest.raises(SetupError, match="refused for a minute"):
        run._measure(block.cells[0], workloads, server)
    assert asked == ["wait"]
    assert run.failed_starts["vllm"] == 1


@pytest.mark.parametrize(
    ("found", "failed"), [(None, 0), (Ending("slow", "away"), 0), (Ending("died", "away"), 1)]
)
def test_a_wait_before_the_agreement_questions_counts_as_one_before_a_load(
    attached, monkeypatch, found, failed
):
    """The next life waited as long again."""
    run, engine, asked = attached
    monkeypatch.setattr(Questions, "unasked", lambda *_: True)
    monkeypatch.setattr(Questions, "ask", lambda *_: asked.append("questions") or False)
    run._after_cells(replace(run.prepared.plan[0], cells=()), engine(found), ended=False)
    assert asked == ["wait", "questions"]
    assert run.failed_starts["vllm"] == failed
    back = [warning.text for warning in run.manifest.document.warnings if warning.code == "another-start"]
    assert len(back) == (found is not None and not failed)
    assert all(text.startswith("vllm did not serve before the agreement questions") for text in back)


@pytest.mark.parametrize(
    ("started_here", "error", "tries"),
    [
        (False, SetupError("no answer to POST /reset_prefix_cache"), 2),
        (True, SetupError("no answer to POST /reset_prefix_cache"), 1),
        (False, StorageError("no space left"), 1),
    ],
)
def test_a_server_that_fails_before_a_load_is_waited_for_once(
    attached, monkeypatch, started_here, error, tries
):
    run, engine, asked = attached
    loads = []

    def load(*given):
        loads.append(given)
        raise error

    monkeypatch.setattr(run, "_load", load)
    block, workloads = run.prepared.plan[0], SimpleNamespace(fitting=None)
    workloads.of = lambda _cell: SimpleNamespace(requested=None)
    monkeypatch.setattr(execute, "length_warnings", lambda *_: ())
    monkeypatch.setattr(execute, "too_long", lambda *_: None)
    server = engine(None, started_here=started_here)
    server.facts = {}
    with pytest.raises(SetupError) as caught:
        run._measure(block.cells[0], workloads, server)
    assert caught.value is error
    assert len(loads) == tries
    assert asked.count("wait") == (3 if tries == 2 else 1), "before each load, and once between them"


@pytest.mark.parametrize("step", ["workloads_of", "_probe"])
def test_a_server_that_goes_down_while_its_prompts_are_made_or_probed_is_waited_for(
    attached, monkeypatch, step
):
    """A run of one server measured nothing."""
    run, engine, asked = attached
    server, tries = engine(Ending("slow", "refused before a load")), []
    server.end_as_error = lambda _label: nullcontext()
    workloads = SimpleNamespace(of=lambda _cell: SimpleNamespace(requests=[]))

    def once_more(result):
        def act(*_):
            tries.append(step)
            if len(tries) == 1:
                raise SetupError("no answer: Connection refused")
            return result

        return act

    chats = Probed(findings=(), prompt_tokens={"user": 10})
    acts = {"workloads_of": lambda *_: workloads, "_probe": lambda *_: chats}
    acts[step] = once_more(acts[step]())
    monkeypatch.setattr(run, "workloads_of", acts["workloads_of"])
    monkeypatch.setattr(execute, "probe_engine", acts["_probe"])
    monkeypatch.setattr(execute, "keep_probe", lambda *_: None)
    run._begin(run.prepared.plan[0].cells[0], server)
    assert (len(tries), asked, run.probed) == (2, ["wait"], {"vllm": 10})
    assert [warning.code for warning in run.manifest.document.warnings] == ["another-start"]


def test_remarks_of_every_start_of_an_engine_are_kept(cut_short):
    manifest = cut_short[0].manifest
    for remarks in (["another bench runs"], [], ["GPU 0: not seen", "another bench runs"]):
        manifest.engine_started("vllm", {"remarks": remarks, "server_version": "1"}, "key")
    engine = manifest.document.backends["vllm"].engine
    assert engine == {"remarks": ["another bench runs", "GPU 0: not seen"], "server_version": "1"}


def test_words_stay_words_when_another_backend_has_a_tokenizer(cut_short):
    begun, resumed, first, second = cut_short
    made = begun.workloads_of(first, up(None))
    again = resumed()
    again.count_as_begun([second])
    assert again.workloads_of(second, up(letters)).sha256() == made.sha256()


def test_another_backend_counts_where_the_first_one_does_not_start(cut_short, monkeypatch):
    begun, resumed, first, second = cut_short

    def fails(*_):
        raise SetupError("no memory")

    made = begun.workloads_of(first, up(letters))
    for counter in (letters, None):
        again = resumed()
        monkeypatch.setattr(again, "opened", fails)
        again.count_as_begun([second])
        if counter is not None:
            assert again.workloads_of(second, up(counter)).sha256() == made.sha256()
            continue
        with pytest.raises(SpecError, match="counted by llamacpp now, and were by vllm"):
            again.workloads_of(second, up(counter))


def test_what_an_older_run_was_counted_by_is_not_claimed(cut_short):
    begun, resumed, first, second = cut_short
    begun.workloads_of(first, up(letters))
    begun.manifest.write(counted_by=None)
    again = resumed()
    again.count_as_begun([second])
    with pytest.raises(SpecError, match="by llamacpp now, and it is not known by which backend then"):
        again.workloads_of(second, up(None))


def test_the_folder_knows_of_a_cell_before_its_first_prompt_is_sent(cut_short, monkeypatch):
    """A run that is killed then leaves what tells the next try from this one."""
    begun, _, first, _ = cut_short
    cell, seen = first.cells[0], []

    def measure(*given):
        seen.append((given[-1].attempt.number, begun.folder.files.children("cells")))

    monkeypatch.setattr(execute, "measure", measure)
    begun._load(cell, None, None, threading.Event())
    begun.folder.set_aside(cell.name, cut_short=True)
    begun._load(cell, None, None, threading.Event())
    assert seen == [(0, [cell.name]), (1, [cell.name])]


def test_questions_are_no_cost_of_a_later_start(tmp_path, monkeypatch):
    """Ten minutes of them in the first repeat were expected of each later one: --budget ended the run."""
    options = RunOptions("fixed-length", "vllm", launch="simulate", agreement=True, out=tmp_path)
    run, clock, counted = Run.start(prepare(options), UI), [0.0], []

    def lasting(seconds):
        return lambda *_: clock.append(clock[-1] + seconds)

    for name in ("_begin", "_probe", "_alone", "awaited", "workloads_of"):
        monkeypatch.setattr(run, name, lambda *_: set())
    monkeypatch.setattr(run, "opened", lasting(30.0))
    run.questions = SimpleNamespace(unasked=lambda _label: True, ask=lambda *_: bool(lasting(600.0)()))
    monkeypatch.setattr("harness.run.execute.time", SimpleNamespace(monotonic=lambda: clock[-1]))
    stopping = SimpleNamespace(progress="", count=lambda _lives, seconds, _cells: counted.append(seconds))
    run._measure_lives(run.prepared.plan[:1], stopping)
    assert (clock[-1], counted) == (630.0, [30.0])


@pytest.mark.parametrize(
    ("url", "found"), [("http://engine.example:8000", ["proxied"]), ("http://127.0.0.1:8000", [])]
)
def test_a_proxy_of_the_environment_is_named_with_the_way_round_it(monkeypatch, url, found):
    monkeypatch.setenv("http_proxy", "http://gate.example:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    run = SimpleNamespace(manifest=Mock(), ui=Mock(), announced=set())
    engine = SimpleNamespace(
        definition=SimpleNamespace(backend=SimpleNamespace(kind="engine")),
        facts={"launch": {"mode": "attach"}, "known": []},
        urls=(url,),
    )
    Lives._show_known(run, "vllm", engine)
    warnings = [call.args[0] for call in run.manifest.warn.call_args_list]
    assert [warning.code for warning in warnings] == found
    for warning in warnings:
        assert warning.text == "vllm: requests go through a proxy, whose time is in every figure"
        assert warning.hint.endswith("set NO_PROXY=engine.example to send straight to the server")
