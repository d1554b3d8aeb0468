"""Start, use and stop of an engine process, and every way in which that goes wrong."""

import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from harness.engines.provide.install import EngineEnv
from harness.engines.start import orphans, process_launch
from harness.engines.start.ports import free_port
from harness.errors import ExitCode, SetupError, SpecError
from harness.model import Ending
from harness.spec.backend import Failure, Info, Install
from harness.spec.reach import Reach
from tests.integration.engine_fakes import fake_backend, opened
from tests.waiting import alive, until

pytestmark = pytest.mark.usefixtures("cache")


def logged_child(log: Path) -> int:
    until(lambda: "child" in log.read_text(), "the child is logged")
    return int(next(line for line in log.read_text().splitlines() if line.startswith("child")).split()[1])


def test_a_session_answers_what_the_harness_asks(tmp_path):
    said = []
    with opened(tmp_path, fake_backend(tmp_path, "slow"), say=said.append) as engine:
        assert engine.api_url == f"{engine.base_url}/v1/chat/completions"
        assert engine.one_chat([{"role": "user", "content": "hi"}], 4) == "hello from bench"
        assert engine.count_tokens(["a b c", "", "d"]) == [3, 0, 1]
        assert engine.counters() == {"prompt_tokens": 10.0, "cached_prompt_tokens": 3.0}
        reset = engine.reset_prefix_cache()
        assert reset.done
        assert reset.how == "POST /slots/{slot}?action=erase for 2 slots; leaves crumbs"
        assert engine._client.ask("GET", "/erased").document() == [0, 1]
        assert engine.liveness.look() is None
        facts = json.loads(json.dumps(engine.facts))
        pid = facts["pid"]
        assert alive(pid)
    assert not alive(pid)
    assert engine.liveness.look() == Ending("died", "killed by SIGTERM")
    assert facts["server_version"] == "1.2.3"
    assert facts["launch"]["mode"] == "process"
    assert facts["command"][2] == str(facts["port"])
    assert facts["remarks"] == []
    assert engine.log_tail(1) == "loading the model"
    assert any("waiting for" in line and "while loading: 503" in line for line in said)
    assert not list((tmp_path / "cache" / "running").iterdir())


def test_an_engine_value_of_the_user_reaches_the_engine_and_the_reset(tmp_path):
    with opened(tmp_path, fake_backend(tmp_path), values={"max_sequences": "3"}) as engine:
        engine.reset_prefix_cache()
        assert engine._client.ask("GET", "/erased").document() == [0, 1, 2]
        assert engine.facts["values"]["max_sequences"] == 3


def test_a_refused_reset_is_an_answer_not_an_error(tmp_path):
    with opened(tmp_path, fake_backend(tmp_path, "busy")) as engine:
        reset = engine.reset_prefix_cache()
    assert not reset.done
    assert '"success": false' in reset.how


def test_what_an_engine_does_not_declare_is_none(tmp_path):
    bare = dataclasses.replace(
        fake_backend(tmp_path),
        metrics=None,
        prefix_cache=dataclasses.replace(fake_backend(tmp_path).prefix_cache, reset=None),
        server=dataclasses.replace(fake_backend(tmp_path).server, version=None, tokenize=None),
    )
    with opened(tmp_path, bare) as engine:
        assert engine.counters() is None
        assert engine.count_tokens(["a"]) is None
        assert engine.facts["server_version"] is None
        assert "restart" in engine.reset_prefix_cache().how


def test_what_the_server_lacks_is_none_as_well(tmp_path):
    declared = fake_backend(tmp_path)
    wrong = dataclasses.replace(
        declared,
        metrics=dataclasses.replace(declared.metrics, path="/nowhere"),
        server=dataclasses.replace(
            declared.server, tokenize=dataclasses.replace(declared.server.tokenize, path="/nowhere")
        ),
    )
    with opened(tmp_path, wrong) as engine:
        assert engine.counters() is None
        assert engine.count_tokens(["a"]) is None


def test_death_while_loading_shows_exit_code_log_and_cause(tmp_path):
    with pytest.raises(SetupError) as caught, opened(tmp_path, fake_backend(tmp_path, "dies")):
        pass
    assert "fake: ended while loading: exit code 3" in str(caught.value)
    assert "  | RuntimeError: CUDA out of memory" in str(caught.value)
    assert "ran out of memory" in caught.value.hint
    assert str(tmp_path / "engine.log") in caught.value.hint
    assert caught.value.exit_code == ExitCode.SETUP


def test_a_failure_is_not_explained_with_the_log_of_an_earlier_start(tmp_path):
    """`bench up` writes to one log per engine, a restart and a run that goes on to that of the repeat."""
    log, said = tmp_path / "engine.log", []
    log.write_text("ValueError: what failed the last time\n")
    with (
        pytest.raises(SetupError) as caught,
        opened(tmp_path, fake_backend(tmp_path, "dies"), say=said.append),
    ):
        pass
    assert "ended while loading: exit code 3" in str(caught.value)
    with opened(tmp_path, fake_backend(tmp_path)) as engine:
        assert engine.log_tail(15) == "loading the model"
        assert "CUDA out of memory" in log.read_text()
        os.kill(engine.facts["pid"], signal.SIGKILL)
        with pytest.raises(SetupError) as died, engine.end_as_error("fake"):
            engine.one_chat([{"role": "user", "content": "hi"}], 4)
    for error in (caught.value, died.value, *said):
        assert "what failed the last time" not in str(error)
    assert "out of memory" not in str(died.value).replace(died.value.hint, "")


def test_an_engines_own_words_for_a_failure_go_before_those_of_all(tmp_path):
    definition = fake_backend(tmp_path, "dies")
    failures = (Failure("never said", "wrong"), Failure(r"CUDA out of m\w+", "use a larger card"))
    server = dataclasses.replace(definition.server, failures=failures)
    with pytest.raises(SetupError) as caught:
        opened(tmp_path, dataclasses.replace(definition, server=server)).__enter__()
    assert caught.value.hint.startswith("use a larger card")


def test_what_the_server_tells_of_itself_is_recorded_where_it_is_declared(tmp_path):
    definition = fake_backend(tmp_path)
    asked = (Info("/version", ("build.version", "build.nothing")), Info("/none", ("x",)))
    server = dataclasses.replace(definition.server, info=asked)
    with opened(tmp_path, dataclasses.replace(definition, server=server)) as engine:
        assert engine.facts["info"] == {"build.version": "1.2.3"}


def test_a_start_that_takes_too_long_is_ended(tmp_path):
    with (
        pytest.raises(SetupError) as caught,
        opened(tmp_path, fake_backend(tmp_path, "hangs", timeout_s=0.5)),
    ):
        pass
    assert "not ready after 0 s" in str(caught.value) or "not ready after 1 s" in str(caught.value)
    assert "  | loading the model" in str(caught.value)
    assert "/health last gave: " in str(caught.value)


def test_an_engine_that_cannot_generate_is_not_ready(tmp_path):
    with pytest.raises(SetupError, match=r"ready, but cannot generate.*400.*no such model"):
        opened(tmp_path, fake_backend(tmp_path, "mute")).__enter__()


def test_a_program_that_does_not_exist_is_named(tmp_path):
    with (
        pytest.raises(SetupError, match=r"/no/such/program: cannot be started: .*No such file"),
        opened(tmp_path, fake_backend(tmp_path, program="/no/such/program")),
    ):
        pass


def test_a_program_that_its_environment_lost_is_no_riddle(tmp_path, monkeypatch):
    folder = tmp_path / "env"
    env = EngineEnv(folder / "bin" / "python", {}, "1.0", "")
    monkeypatch.setattr(process_launch, "install_engine", lambda *_: env)
    definition = fake_backend(tmp_path, program="{bin}/lost")
    process = dataclasses.replace(definition.process, install=Install(("fake",)))
    with pytest.raises(SetupError, match=r"lost: cannot be started: No such file or directory$") as caught:
        opened(tmp_path, dataclasses.replace(definition, process=process)).__enter__()
    assert caught.value.hint == f"its environment is damaged: delete {folder}, and it is made again"


def test_an_environment_is_not_damaged_by_a_lack_of_memory(tmp_path, monkeypatch):
    def killed(*_, **__):
        raise SetupError("cannot be started: its guard process was killed")

    env = EngineEnv(tmp_path / "bin" / "python", {}, "1.0", "")
    monkeypatch.setattr(process_launch, "install_engine", lambda *_: env)
    monkeypatch.setattr(process_launch, "EngineProcess", killed)
    definition = fake_backend(tmp_path)
    process = dataclasses.replace(definition.process, install=Install(("fake",)))
    with pytest.raises(SetupError, match="guard process was killed") as caught:
        opened(tmp_path, dataclasses.replace(definition, process=process)).__enter__()
    assert caught.value.hint is None


def test_death_in_use_is_seen(tmp_path):
    with opened(tmp_path, fake_backend(tmp_path)) as engine:
        with pytest.raises(SetupError, match="no answer to POST /exit"):
            engine._ask("POST", "/exit")
        until(engine.liveness.look, "the death is seen")
        assert engine.liveness.look() == Ending("died", "exit code 7")


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_however_the_block_is_left_nothing_stays(tmp_path, error):
    session = opened(tmp_path, fake_backend(tmp_path, "child"))
    pid = session.__enter__().facts["pid"]
    child = logged_child(tmp_path / "engine.log")
    assert alive(child)
    assert session.__exit__(error, error(), None) in (None, False)
    assert not alive(pid)
    assert not alive(child)


def test_a_child_in_a_session_of_its_own_is_taken_down_too(tmp_path):
    with opened(tmp_path, fake_backend(tmp_path, "child", "stray")) as engine:
        child = logged_child(tmp_path / "engine.log")
        os.kill(engine.facts["pid"], signal.SIGKILL)
        until(engine.liveness.look, "the death is seen")
        assert engine.liveness.look() == Ending("died", "killed by SIGKILL")
        assert not alive(child)


def kill_and_ask(folder):
    with opened(folder, fake_backend(folder)) as engine:
        os.kill(engine.facts["pid"], signal.SIGKILL)
        engine.count_tokens(["a"])


def test_a_question_to_an_engine_that_was_killed_says_so(tmp_path):
    with pytest.raises(SetupError, match="the engine died after it was ready: killed by SIGKILL"):
        kill_and_ask(tmp_path)


MASTER = """
import sys, time
from pathlib import Path
from tests.integration.engine_fakes import fake_backend, opened
folder = Path(sys.argv[1])
with opened(folder, fake_backend(folder, "child", "deaf")) as engine:
    print(engine.facts["pid"], flush=True)
    time.sleep(60)
"""


@pytest.fixture
def killed_bench(tmp_path):
    """(engine, its child) as pids of a bench killed with an engine open; the guard as well if asked."""

    def kill(*, guard: bool) -> tuple[int, int]:
        bench = subprocess.Popen(
            [sys.executable, "-c", MASTER, str(tmp_path)],
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parent,
            text=True,
        )
        pid = int(bench.stdout.readline())
        child = logged_child(tmp_path / "engine.log")
        if guard:
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            bench.send_signal(signal.SIGSTOP)  # it shall not see its guard die
            os.kill(parent, signal.SIGKILL)
        bench.kill()
        bench.wait()
        bench.stdout.close()
        return pid, child

    return kill


def test_a_killed_bench_leaves_no_engine(tmp_path, killed_bench):
    pid, child = killed_bench(guard=False)
    until(lambda: not alive(pid) and not alive(child), "engine and child are gone")


def test_what_even_the_guard_could_not_clear_the_next_start_does(tmp_path, killed_bench):
    pid, child = killed_bench(guard=True)
    until(lambda: not alive(pid), "the kernel ended the engine")
    assert alive(child)
    said = []
    with opened(tmp_path, fake_backend(tmp_path), say=said.append) as engine:
        assert not alive(child)
        assert engine.facts["remarks"] == [f"stopped fake (pid {child}), left by a bench that was killed"]
    assert engine.facts["remarks"][0] in said


def test_a_recycled_number_is_not_killed(tmp_path):
    """A note whose session number now belongs to a stranger."""
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    try:
        folder = tmp_path / "cache" / "running"
        folder.mkdir(parents=True)
        note = {
            "label": "fake",
            "session": stranger.pid,
            "log": "/gone.log",
            "bench": 999999999,
            "bench_born": 1,
        }
        (folder / "1.json").write_text(json.dumps(note))
        assert orphans.clear(lambda line: None) == []
        assert stranger.poll() is None
        assert not list(folder.iterdir())
    finally:
        stranger.kill()
        stranger.wait()


def test_a_live_neighbour_is_left_alone_and_mentioned(tmp_path):
    born = orphans.born(os.getppid())
    folder = tmp_path / "cache" / "running"
    folder.mkdir(parents=True)
    note = {"label": "vllm", "session": 1, "log": "/x.log", "bench": os.getppid(), "bench_born": born}
    (folder / "1.json").write_text(json.dumps(note))
    (remark,) = orphans.clear(lambda line: None)
    assert f"another bench (pid {os.getppid()}) runs vllm" in remark
    assert (folder / "1.json").exists()


def test_a_bench_that_starts_the_measured_server_is_no_neighbour(tmp_path):
    """`bench up` as the start command of a server, as the action runs it: two processes below this one."""
    shell = f"{sys.executable} -c 'import time; print(1, flush=True); time.sleep(60)'"
    child = subprocess.Popen(["bash", "-c", f"{shell}; :"], stdout=subprocess.PIPE, start_new_session=True)
    try:
        child.stdout.readline()
        (below,) = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
        folder = tmp_path / "cache" / "running"
        folder.mkdir(parents=True)
        note = {"label": "llamacpp", "session": 1, "log": "/x.log", "bench": int(below)}
        (folder / "1.json").write_text(json.dumps({**note, "bench_born": orphans.born(int(below))}))
        assert orphans.clear(lambda line: None) == []
        assert (folder / "1.json").exists()
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def test_a_taken_port_is_named_with_its_owner(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(SetupError) as caught,
            opened(tmp_path, fake_backend(tmp_path), values={"port": str(port)}),
        ):
            pass
    assert f"port {port} is taken by" in str(caught.value)
    assert f"(pid {os.getpid()})" in str(caught.value)
    with opened(tmp_path, fake_backend(tmp_path), values={"port": str(port)}) as engine:
        assert engine.facts["port"] == port


@pytest.fixture
def running(tmp_path):
    """Starts a server that is not ours to stop; gives its URL."""
    servers = []

    def start(*habits):
        fake_backend(tmp_path)
        port = free_port("127.0.0.1")
        servers.append(
            subprocess.Popen([sys.executable, str(tmp_path / "fake_engine.py"), str(port), *habits])
        )

        def listening():
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        until(listening, "the server listens")
        return f"http://127.0.0.1:{port}"

    yield start
    for server in servers:
        assert server.poll() is None  # detaching leaves it running
        server.kill()
        server.wait()


def test_attach_takes_the_servers_own_model_name(tmp_path, running):
    with opened(tmp_path, fake_backend(tmp_path), url=running()) as engine:
        assert engine.served_name == "served"
        assert engine.facts["launch"]["mode"] == "attach"
        assert engine.facts["server_version"] == "1.2.3"
        assert "pid" not in engine.facts
        assert engine.liveness.look() is None
        assert engine.log_tail(5) == ""


def test_attach_takes_a_model_name_that_is_given(tmp_path, running):
    with opened(
        tmp_path, fake_backend(tmp_path), url=running("nameless"), reach=Reach(served_name="mine")
    ) as engine:
        assert engine.one_chat([], 1) == "hello from mine"


def test_attach_without_any_model_name_says_what_to_give(tmp_path, running):
    with pytest.raises(SetupError, match="the server lists no model") as caught:
        opened(tmp_path, fake_backend(tmp_path), url=running("nameless")).__enter__()
    assert "--model-name" in caught.value.hint


def test_a_key_comes_from_the_environment_and_stays_out_of_the_facts(tmp_path, running, monkeypatch):
    url = running("locked")
    with pytest.raises(SetupError, match="refuses with 401") as caught:
        opened(tmp_path, fake_backend(tmp_path), url=url).__enter__()
    assert "BENCH_API_KEY" in caught.value.hint
    with pytest.raises(SpecError, match="environment variable MY_KEY is not set"):
        opened(tmp_path, fake_backend(tmp_path), url=url, reach=Reach("MY_KEY")).__enter__()
    monkeypatch.setenv("MY_KEY", "sesame")
    with opened(tmp_path, fake_backend(tmp_path), url=url, reach=Reach("MY_KEY")) as engine:
        assert engine.access.headers["authorization"] == "Bearer sesame"
        assert "sesame" not in json.dumps(engine.facts)


def test_our_key_is_not_shown_to_an_engine_we_start(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_API_KEY", "sesame")
    with opened(tmp_path, fake_backend(tmp_path)) as engine:
        assert "authorization" not in engine.access.headers


def test_the_first_answer_has_the_time_that_is_given(tmp_path, running):
    """It may load the model."""
    urls = {"attached": running("loading"), "started": None}
    for label, url in urls.items():
        with pytest.raises(SetupError, match=r"did not end within 0.3 s") as caught:
            opened(tmp_path, fake_backend(tmp_path, "loading"), url=url, answer_s=0.3).__enter__()
        assert ("send one first" in caught.value.hint) == (label == "attached")


def test_attach_to_nothing_or_to_another_kind_of_server(tmp_path, running):
    with pytest.raises(SetupError, match=r"http://127\.0\.0\.1:9: no answer to GET /health"):
        opened(tmp_path, fake_backend(tmp_path), url="http://127.0.0.1:9").__enter__()
    other = fake_backend(tmp_path)
    other = dataclasses.replace(other, server=dataclasses.replace(other.server, ready_path="/nope"))
    with pytest.raises(SetupError, match="no such path") as caught:
        opened(tmp_path, other, url=running()).__enter__()
    assert "openai=URL" in caught.value.hint
