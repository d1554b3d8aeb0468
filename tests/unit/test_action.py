"""The action's steps as scripts: which commit is the base, how a side is started, who gets the token."""

import importlib.util
import io
import json
import re
import subprocess
import sys
import threading
import time
import tomllib
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from harness.errors import SpecError
from harness.host import paths
from harness.spec.backend_refs import load_backend

ROOT = Path(__file__).resolve().parents[2]


def script(name):
    path = ROOT / "action" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"action_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


measure, comment = script("measure"), script("comment/comment")


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


# -- where the token is ------------------------------------------------------------------------------

ACTION = (ROOT / "action.yml").read_text(encoding="utf-8")
COMMENT_ACTION = (ROOT / "action" / "comment" / "action.yml").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "github-action.md").read_text(encoding="utf-8")
TOKEN = re.compile(r"token|secrets\.", re.IGNORECASE)
JOBS = re.compile(r"^  (\w+):\n((?:    .*\n|\n)+)", re.MULTILINE)


def test_the_measuring_action_takes_and_has_no_token():
    assert not TOKEN.search(ACTION)
    assert not re.search(r"environ.*TOKEN|api\.github", (ROOT / "action" / "measure.py").read_text("utf-8"))


def test_the_commenting_action_runs_one_script_of_its_own_and_nothing_else():
    assert re.findall(r"run: (.*)", COMMENT_ACTION) == ['python3 -I "$GITHUB_ACTION_PATH/comment.py"']
    assert "uses:" not in COMMENT_ACTION
    source = (ROOT / "action" / "comment" / "comment.py").read_text(encoding="utf-8")
    imported = set(re.findall(r"^(?:from|import) ([\w.]+)", source, re.MULTILINE))
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names
    for runs in ("subprocess", "os.system", "exec(", "eval(", "extract", "pip"):
        assert runs not in source


def test_no_job_of_the_page_has_both_the_token_and_code_of_the_pull_request():
    workflows = [text for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "jobs:" in text]
    assert len(workflows) >= 2
    jobs = [job for text in workflows for job in JOBS.findall(text.partition("jobs:\n")[2])]
    measuring = [text for _name, text in jobs if "llm-servebench/llm-servebench@" in text]
    commenting = [text for _name, text in jobs if "llm-servebench/llm-servebench/action/comment@" in text]
    assert len(measuring) + len(commenting) == len(jobs)
    assert measuring
    assert len(commenting) >= 2
    for text in measuring:
        assert "write" not in text
        assert "persist-credentials: false" in text
    for text in commenting:
        assert "pull-requests: write" in text
        assert "checkout" not in text
    for text in workflows:
        assert re.search(r"^permissions: \{\}$", text, re.MULTILINE), "each job names its own"
        assert "pull_request_target" not in text


def test_code_of_the_pull_request_gets_no_credential_and_no_file_of_the_runner(monkeypatch):
    refused = {"GITHUB_TOKEN", "MY_SECRET", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_CACHE_URL"}
    refused |= {f"GITHUB_{name}" for name in ("ENV", "PATH", "OUTPUT", "STATE", "STEP_SUMMARY")}
    for name in (*refused, "GITHUB_SHA", "CI"):
        monkeypatch.setenv(name, "x")
    kept = measure.environment()
    assert kept["CI"] == kept["GITHUB_SHA"] == "x"
    assert not refused & kept.keys()


# -- the comment -------------------------------------------------------------------------------------

MARK = "<!-- one -->"


class Api(BaseHTTPRequestHandler):
    """Comments of a pull request, whose first page is full of other people's, and artefacts of a run."""

    def do_GET(self):
        path, _, asked = self.path.partition("?")
        if path == "/storage":
            self.server.leaked = self.headers["authorization"]
            return self._send(200, self.server.archive)
        if path == "/user":
            return self._send(403, b"{}")
        if path.endswith("/pulls"):
            self.server.asked = asked
            return self._answer(self.server.pulls)
        if path.endswith("/artifacts"):
            self.server.asked_artifacts = self.path
            return self._answer({"artifacts": self.server.artifacts})
        if path.endswith("/zip"):
            self.send_response(302)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/storage")
            self.end_headers()
            return None
        page = int(asked.rpartition("page=")[2])
        return self._answer(self.server.comments[100 * (page - 1) : 100 * page])

    def do_POST(self):
        made = {"id": 1000 + len(self.server.comments), "user": {"login": comment.BOT}, **self._body()}
        self.server.comments.append(made)
        self.server.written.append(self.path)
        self._answer({**made, "html_url": "http://here/new"})

    def do_PATCH(self):
        (known,) = (one for one in self.server.comments if self.path.endswith(f"/{one['id']}"))
        known.update(self._body())
        self._answer({**known, "html_url": "http://here/changed"})

    def _body(self):
        return json.loads(self.rfile.read(int(self.headers["content-length"])))

    def _answer(self, content):
        refused = self.headers["authorization"] != "Bearer secret"
        self._send(403 if refused else 200, json.dumps(content).encode())

    def _send(self, status, data):
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def zipped(**members):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name.replace("_", "."), text)
    return data.getvalue()


@pytest.fixture
def api(monkeypatch, tmp_path):
    with HTTPServer(("127.0.0.1", 0), Api) as server:
        server.comments = [{"id": number, "body": None, "user": None} for number in range(100)]
        server.artifacts = [{"id": 5, "expired": False}]
        server.pulls, server.written, server.leaked = [], [], None
        server.archive = zipped(comment_md="slow")
        server.event = tmp_path / "event.json"
        server.event.write_text('{"pull_request": {"number": 7}}', encoding="utf-8")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name, value in {
            "GITHUB_API_URL": f"http://127.0.0.1:{server.server_port}",
            "GITHUB_REPOSITORY": "owner/project",
            "GITHUB_TOKEN": "secret",
            "GITHUB_EVENT_PATH": str(server.event),
            "GITHUB_RUN_ID": "42",
            "COMMENT_NAME": "one",
        }.items():
            monkeypatch.setenv(name, value)
        yield server
        server.shutdown()


def written(api, text):
    api.archive = zipped(comment_md=text)
    assert comment.main() == 0
    return [one["body"] for one in api.comments[100:]]


def test_the_comment_is_written_once_and_then_changed(api, monkeypatch, capsys):
    written(api, "slow")
    monkeypatch.setenv("COMMENT_NAME", "two")
    written(api, "other")
    monkeypatch.setenv("COMMENT_NAME", "one")
    first, second = written(api, "quick")
    assert first == f"{MARK}\nquick\n\n{comment.NOTE}\n"
    assert second.startswith("<!-- two -->\nother\n")
    assert capsys.readouterr().out.endswith("comment: http://here/changed\n")
    assert set(api.written) == {"/repos/owner/project/issues/7/comments"}
    assert "/runs/42/artifacts?per_page=100&name=one-comment" in api.asked_artifacts


def test_the_token_goes_to_no_other_host(api):
    written(api, "slow")
    assert api.leaked is None


def test_a_comment_of_another_with_the_same_mark_is_left_alone(api):
    api.comments.append({"id": 555, "body": f"{MARK}\nmine", "user": {"login": "stranger"}})
    assert written(api, "slow")[0] == f"{MARK}\nmine"


def test_a_name_does_not_end_the_mark():
    assert comment.mark_of("a --> <b>@x") == "<!-- a ___ _b__x -->"


def test_a_token_that_may_not_write_is_a_warning(api, monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_TOKEN", "of-a-fork")
    assert written(api, "slow") == []
    assert "::warning::" in capsys.readouterr().out


def test_a_long_page_is_shortened_at_a_line(api):
    (body,) = written(api, "| row |\n" * 20_000)
    assert len(body) < 65_536
    assert "| row |\n\nShortened" in body


def test_a_push_gets_no_comment(api):
    api.event.write_text("{}", encoding="utf-8")
    assert written(api, "slow") == []


RUN = {
    "id": 43,
    "event": "pull_request",
    "head_branch": "a&b/c",
    "head_sha": "abc",
    "head_repository": {"owner": {"login": "stranger"}},
}


def test_the_pull_request_of_a_fork_is_the_one_that_github_names(api):
    """Never the artefact, whose author may want to write on another's."""
    api.event.write_text(json.dumps({"workflow_run": RUN}), encoding="utf-8")
    api.pulls = [{"number": 8, "head": {"sha": "old"}}, {"number": 9, "head": {"sha": "abc"}}]
    written(api, "pull request 7")
    assert api.written == ["/repos/owner/project/issues/9/comments"]
    assert api.asked == "state=open&per_page=100&head=stranger%3Aa%26b%2Fc"
    assert "/runs/43/artifacts" in api.asked_artifacts


@pytest.mark.parametrize(
    "changes", [{"event": "push"}, {"head_sha": "newer"}, {"head_repository": None}], ids=str
)
def test_a_run_without_its_pull_request_gets_no_comment(api, changes, capsys):
    api.event.write_text(json.dumps({"workflow_run": {**RUN, **changes}}), encoding="utf-8")
    api.pulls = [{"number": 9, "head": {"sha": "abc"}}]
    assert written(api, "slow") == []
    assert "no comment: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "archive",
    [
        b"",
        b"PK\x03\x04 not a zip",
        zipped(other_md="x"),
        zipped(comment_md="x")[:-10],
        bytes(2_000_000),
    ],
    ids=["empty", "no zip", "another member", "cut", "large"],
)
def test_an_artefact_that_is_none_is_one_line(api, archive, capsys):
    api.archive = archive
    assert comment.main() == 0
    assert capsys.readouterr().out.startswith("no comment: ")
    assert not api.written


def test_a_page_of_a_gigabyte_is_read_in_part(api):
    api.archive = zipped(comment_md=bytes(300_000_000))
    assert len(api.archive) < 1_000_000
    assert comment.main() == 0
    assert len(api.comments[100]["body"]) < 65_536


def test_no_artefact_is_no_comment(api, capsys):
    api.artifacts = [{"id": 5, "expired": True}]
    assert comment.main() == 0
    assert capsys.readouterr().out == "no comment: the measuring job left no page\n"


HOSTILE = {
    "a mention": ("@owner hi", r"@\w"),
    "a mention of a team": ("x @owner/team", r"@\w"),
    "a mention in entities": ("&#64;owner", r"&(?!amp;|lt;|#91;|#93;|#36;)"),
    "a link": ("[merge](https://evil.example)", r"[\[\]]|://"),
    "a link to a script": ("[x](javascript:alert(1))", r"[\[\]]"),
    "an escaped bracket": ("\\\\[x](https://evil.example)", r"[\[\]]"),
    "an image": ("![x](https://evil.example/x.png)", r"!\["),
    "a bare link": ("https://evil.example www.evil.example", r"://|www\."),
    "an address": ("me@evil.example mailto:me@evil.example", r"@\w|mailto:"),
    "an issue": ("fixes #12 and GH-3 and owner/project#4", r"#\d|GH-\d"),
    "a tag": ("<img src=x onerror=alert(1)><script>alert(1)</script>", r"<(?!/?(details|summary)>)"),
    "a tag with attributes": ("<details open ontoggle=alert(1)>", "<"),
    "a comment": ("<!-- two -->", "<"),
    "a command": ("/merge\n  /approve", r"(?m)^\s*/"),
    "a picture": ("```mermaid\ngraph\n```", "```"),
    "another fence": ("~~~geojson\n{}\n~~~", "~~~"),
    "a formula": ("$$\\href{javascript:alert(1)}{x}$$", r"\$"),
    "an alert": ("> [!WARNING]\n> x", r"\["),
    "an emoji": (":rocket:", r":\w+:"),
    "directions": ("a\u202eb\x1b[2J", "[\u202e\x1b]"),
}


@pytest.mark.parametrize(("text", "active"), HOSTILE.values(), ids=HOSTILE)
def test_a_page_of_hostile_markdown_does_nothing(text, active):
    assert re.search(active, text.replace("@\u2060", "@")) or "&#" in text, "the case is none"
    shown = comment.inert(text)
    assert not re.search(active, shown), shown
    assert comment.inert(f"x\n{shown}")  # and again


def test_what_bench_writes_is_shown_as_it_is_meant():
    text = "### one: head against base\n\n| a | b |\n|---|---:|\n| x\\|y &lt; z &amp; | **1** `c` |\n"
    text += "\n<details><summary>Table</summary>\n\nten\n</details>\n"
    assert comment.inert(text) == text


@pytest.mark.parametrize("piece", ["\n", " ", "`", "~", "@", "<", "&", "[", "\\", "/\n", ":a", ":"], ids=repr)
def test_no_page_takes_long(piece):
    began = time.monotonic()
    comment.inert(piece * (comment.MOST_BYTES // len(piece)))
    assert time.monotonic() - began < 20
