"""The action's steps as scripts: which commit is the base, how a side is started, one comment per name."""

import importlib.util
import json
import re
import subprocess
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from harness.errors import SpecError
from harness.host import paths
from harness.spec.backend_refs import load_backend

ROOT = Path(__file__).resolve().parents[2]


def script(name):
    spec = importlib.util.spec_from_file_location(f"action_{name}", ROOT / "action" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


measure, comment = script("measure"), script("comment")


def git(*words):
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    done = subprocess.run(["git", *identity, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(message):
    git("commit", "--quiet", "--allow-empty", "--message", message)
    return git("rev-parse", "HEAD")


@pytest.fixture
def event(tmp_path, monkeypatch):
    """Writes what happened; in an empty repository."""
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.chdir(folder)
    git("init", "--quiet", "--initial-branch", "main")

    def write(**content):
        path = tmp_path / "event.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        monkeypatch.setenv("GITHUB_EVENT_PATH", str(path))

    return write


def test_the_base_of_a_merged_pull_request_is_what_it_was_merged_onto(event):
    old = commit("first")
    git("checkout", "--quiet", "-b", "change")
    commit("change")
    git("checkout", "--quiet", "main")
    newest = commit("second")
    git("merge", "--quiet", "--no-ff", "--message", "merged", "change")
    event(pull_request={"number": 1, "base": {"sha": old}})
    assert measure.base_commit() == newest


def test_the_base_is_what_the_event_names(event):
    first, _ = commit("first"), commit("second")
    for content in (
        {"pull_request": {"number": 1, "base": {"sha": first}}},
        {"merge_group": {"base_sha": first}},
        {"before": first},
    ):
        event(**content)
        assert measure.base_commit() == first


def test_the_input_wins_over_the_event(event, monkeypatch):
    first, second = commit("first"), commit("second")
    git("tag", "v1", first)
    event(before=second)
    monkeypatch.setenv("BENCH_BASE_REF", "v1")
    assert measure.base_commit() == first


@pytest.mark.parametrize("content", [{}, {"before": "0" * 40}])
def test_an_event_without_a_base_asks_for_one(event, content):
    commit("first")
    event(**content)
    with pytest.raises(measure.InputError, match="base-ref"):
        measure.base_commit()


def test_a_shallow_checkout_fetches_the_base(event, tmp_path, monkeypatch):
    first, _ = commit("first"), commit("second")
    git("config", "uploadpack.allowAnySHA1InWant", "true")
    event(before=first)
    git("clone", "--quiet", "--depth=1", Path.cwd().as_uri(), str(tmp_path / "shallow"))
    monkeypatch.chdir(tmp_path / "shallow")
    assert measure.base_commit() == first


@pytest.mark.parametrize("engine", sorted(set(paths.definitions("backends")) - {"models"}))
def test_a_side_is_spoken_to_as_its_engine_and_started_by_the_command(tmp_path, monkeypatch, engine):
    monkeypatch.setenv("BENCH_ENGINE", engine)
    monkeypatch.setenv("BENCH_START", "serve --port $PORT")
    measure._define(tmp_path, "head", "0" * 40)
    shipped = load_backend(engine)
    monkeypatch.chdir(tmp_path)
    made = load_backend("head")
    assert (made.dialect, made.metrics) == (shipped.dialect, shipped.metrics)
    assert made.prefix_cache.enabled == shipped.prefix_cache.enabled
    reset = shipped.prefix_cache.reset
    assert made.prefix_cache.reset == (None if reset and "{slot}" in reset.path else reset)
    assert made.backend.simulated == shipped.backend.simulated
    assert made.process.program == ("bash", str(tmp_path / "head.sh"))
    assert (tmp_path / "head.sh").read_text() == f"cd {tmp_path}/head\nserve --port $PORT\n"


def test_an_unknown_engine_is_a_wrong_input(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_ENGINE", "vlm")
    with pytest.raises(SpecError, match="vlm"):
        measure._define(tmp_path, "head", "0" * 40)


@pytest.mark.parametrize(
    ("fail_on", "ran", "compared", "code"),
    [("", 0, 1, 1), ("slower", 0, 0, 0), ("nothing", 0, 1, 0), ("", 4, 1, 4), ("nothing", 4, 0, 4)],
)
def test_the_code_is_the_runs_else_the_gates(tmp_path, monkeypatch, fail_on, ran, compared, code):
    monkeypatch.setenv("BENCH_FAIL_ON", fail_on)
    called = []

    def bench(folder, command, *words):
        called.append((command, "--fail-on" in words))
        if command == "run":
            (folder / "results" / "one").mkdir(parents=True)
            (folder / "results" / "one" / "summary.json").touch()
        return f"{command}\n", {"run": ran, "compare": compared}[command]

    monkeypatch.setattr(measure, "_bench", bench)
    assert measure._measured(tmp_path) == ("compare\n", code)
    assert called == [("run", False), ("compare", fail_on != "nothing")]


def test_a_run_that_did_not_begin_has_no_verdict(tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "_bench", lambda *_: ("", 3))
    text, code = measure._measured(tmp_path)
    assert (text[:18], code) == ("**Not measured.** ", 3)


def test_toml_is_read_back_as_it_was():
    table = {"a.b": {"c": [1, 2.5, True, 'quo"te', "line\nbreak"], "d": {"e": [{"f": "é"}]}}}
    assert tomllib.loads("".join(f"x = {measure.as_toml(table)}")) == {"x": table}


def test_every_input_reaches_the_step_that_reads_it():
    action = (ROOT / "action.yml").read_text(encoding="utf-8")
    source = (ROOT / "action" / "measure.py").read_text(encoding="utf-8")
    passed = set(re.findall(r"BENCH_(\w+): \$\{\{ inputs\.", action))
    assert {name.lower() for name in passed} == set(re.findall(r"_input\([\"\'](\w+)", source))
    declared = re.findall(r"^  ([a-z-]+):$", action.partition("inputs:")[2].partition("outputs:")[0], re.M)
    assert set(declared) == set(re.findall(r"inputs\.([a-z-]+)", action))
    for path in re.findall(r"\$GITHUB_ACTION_PATH/([\w./]+)", action):
        assert (ROOT / path).is_file()


class Api(BaseHTTPRequestHandler):
    """Comments of one pull request; the first page is full of other people's."""

    def do_GET(self):
        page = int(self.path.rpartition("page=")[2])
        self._answer(self.server.comments[100 * (page - 1) : 100 * page])

    def do_POST(self):
        made = {"id": 1000 + len(self.server.comments), **self._body(), "html_url": "http://here/new"}
        self.server.comments.append(made)
        self._answer(made)

    def do_PATCH(self):
        (known,) = (one for one in self.server.comments if self.path.endswith(f"/{one['id']}"))
        known.update(self._body())
        self._answer({**known, "html_url": "http://here/changed"})

    def _body(self):
        return json.loads(self.rfile.read(int(self.headers["content-length"])))

    def _answer(self, content):
        refused = self.headers["authorization"] != "Bearer secret"
        self.server.paths.append(self.path)
        self.send_response(403 if refused else 200)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def api(monkeypatch, tmp_path):
    with HTTPServer(("127.0.0.1", 0), Api) as server:
        server.comments = [{"id": number, "body": None} for number in range(100)]
        server.paths = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("GITHUB_API_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("GITHUB_REPOSITORY", "owner/project")
        monkeypatch.setenv("GITHUB_TOKEN", "secret")
        path = tmp_path / "event.json"
        path.write_text('{"pull_request": {"number": 7}}', encoding="utf-8")
        monkeypatch.setenv("GITHUB_EVENT_PATH", str(path))
        yield server
        server.shutdown()


def page(tmp_path, text):
    path = tmp_path / "comment.md"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_comment_is_written_once_and_then_changed(api, tmp_path, capsys):
    assert comment.main(page(tmp_path, "<!-- one -->\nslow")) == 0
    assert comment.main(page(tmp_path, "<!-- two -->\nother")) == 0
    assert comment.main(page(tmp_path, "<!-- one -->\nquick")) == 0
    assert [one["body"] for one in api.comments[100:]] == ["<!-- one -->\nquick", "<!-- two -->\nother"]
    assert capsys.readouterr().out.endswith("comment: http://here/changed\n")
    assert all(path.startswith("/repos/owner/project/issues/") for path in api.paths)


def test_a_token_that_may_not_write_is_a_warning(api, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_TOKEN", "of-a-fork")
    assert comment.main(page(tmp_path, "<!-- one -->\nslow")) == 0
    assert "::warning::" in capsys.readouterr().out


def test_a_long_page_is_shortened_at_a_line(api, tmp_path):
    comment.main(page(tmp_path, "<!-- one -->\n" + "| row |\n" * 20_000))
    body = api.comments[-1]["body"]
    assert len(body) < 65_536
    assert "| row |\n\nShortened" in body


def test_a_push_gets_no_comment(api, tmp_path):
    (tmp_path / "event.json").write_text("{}", encoding="utf-8")
    assert comment.main(page(tmp_path, "text")) == 0
    assert not api.paths
