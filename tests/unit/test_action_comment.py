"""The comment: one per name, on the pull request that GitHub names, of a page that may be hostile."""

import io
import json
import re
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.unit.test_action import script

comment = script("comment/comment")
MARK = "<!-- one -->"
PULL = {"number": 7, "head": {"sha": "abc"}}


class Api(BaseHTTPRequestHandler):
    """Comments of a pull request, whose first page is full of other people's, and artefacts of a run."""

    def do_GET(self):
        path, _, asked = self.path.partition("?")
        if path == "/storage":
            self.server.leaked = self.headers["authorization"]
            return self._send(200, self.server.archive)
        if path.endswith("/pulls"):
            self.server.asked = asked
            return self._answer(self.server.pulls)
        if path.endswith("/pulls/7"):
            return self._answer({"head": {"sha": "abc"}})
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
        if self.path == "/graphql":
            self.server.queried = self._body()["query"]
            return self._answer(self.server.viewer)
        made = {"id": 1000 + len(self.server.comments), "user": {"login": self.server.login}, **self._body()}
        self.server.comments.append(made)
        self.server.written.append(self.path)
        return self._answer({**made, "html_url": "http://here/new"})

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
        server.login, server.viewer = comment.BOT, {"data": {"viewer": {"login": comment.BOT}}}
        server.event = tmp_path / "event.json"
        server.event.write_text(json.dumps({"pull_request": PULL}), encoding="utf-8")
        often = {"poll_interval": 0.01}  # by default its end waits for half a second
        threading.Thread(target=server.serve_forever, kwargs=often, daemon=True).start()
        for name, value in {
            "GITHUB_API_URL": f"http://127.0.0.1:{server.server_port}",
            "GITHUB_GRAPHQL_URL": f"http://127.0.0.1:{server.server_port}/graphql",
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


def test_an_app_finds_its_own_comment(api):
    """Its token may not ask `/user`, as the one of a job."""
    api.login = "ours[bot]"
    api.viewer = {"data": {"viewer": {"login": api.login}}}
    assert len(written(api, "slow")) == 1
    (body,) = written(api, "quick")
    assert body.startswith(f"{MARK}\nquick\n")
    assert api.queried == "{ viewer { login } }"


@pytest.mark.parametrize(
    "viewer", [{"data": None, "errors": [{"message": "no"}]}, {"message": "no"}, []], ids=str
)
def test_a_token_of_nobody_is_that_of_the_job(api, viewer):
    api.viewer = viewer
    assert len(written(api, "slow")) == 1
    assert len(written(api, "quick")) == 1


def test_the_token_goes_to_no_other_host(api):
    written(api, "slow")
    assert api.leaked is None


def test_a_comment_of_another_with_the_same_mark_is_left_alone(api):
    api.comments.append({"id": 555, "body": f"{MARK}\nmine", "user": {"login": "stranger"}})
    assert written(api, "slow")[0] == f"{MARK}\nmine"


def test_a_name_does_not_end_the_mark():
    assert comment.mark_of("a --> <b>@x") == "<!-- a ___ _b__x -->"


def test_names_of_other_letters_have_comments_of_their_own():
    assert comment.mark_of("速度") != comment.mark_of("容量")


def test_a_token_that_may_not_write_is_a_warning(api, monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_TOKEN", "of-a-fork")
    assert written(api, "slow") == []
    assert "::warning::" in capsys.readouterr().out


def test_a_long_page_is_shortened_at_a_line(api):
    (body,) = written(api, "| row |\n" * 20_000)
    assert len(body) < 65_536
    assert "| row |\n\nShortened" in body


FOLDED = "<details><summary>Table</summary>\n\n"


def open_folds(lines):
    """Number of folds that are open at the end: a tag counts where it begins its line."""
    depth = 0
    for line in lines:
        depth += line.startswith("<details>")
        depth = max(depth - line.startswith("</details>"), 0)
    return depth


@pytest.mark.parametrize(
    "page",
    [
        f"{FOLDED}ten",
        f"{FOLDED}`</details>`\n    </details>\n\\</details>",
        f"</details>\n{FOLDED}ten",
        f"{FOLDED}{FOLDED}ten\n</details>\n",
        FOLDED * 2_000,
        FOLDED + "| row |\n" * 20_000 + "</details>\n",
        "x <details><summary>Table</summary>",
        "<details>\n<summary>Table</summary>\n\nten",
    ],
    ids=["open", "end in code", "end before", "nested", "many", "cut", "in a line", "over two lines"],
)
def test_no_page_folds_the_note_away(api, page):
    (body,) = written(api, page)
    before, note, after = body.partition(f"\n\n{comment.NOTE}")
    assert note
    assert not after.strip()
    assert open_folds(before.splitlines()) == 0
    assert "<details>" not in re.sub(r"(?m)^<details><summary>", "", before)
    assert len(body) < 65_536


def test_a_run_of_an_earlier_commit_that_ends_last_changes_no_comment(api, capsys):
    written(api, "of the newest commit")
    api.event.write_text(json.dumps({"pull_request": {**PULL, "head": {"sha": "old"}}}), encoding="utf-8")
    (body,) = written(api, "of an old one")
    assert "of the newest commit" in body
    assert capsys.readouterr().out.endswith("no comment: its pull request has newer commits\n")


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
    [b"", b"PK\x03\x04 not a zip", zipped(other_md="x"), zipped(comment_md="x")[:-10], bytes(2_000_000)],
    ids=["empty", "no zip", "another member", "cut", "large"],
)
def test_an_artefact_that_is_none_is_one_line(api, archive, capsys):
    api.archive = archive
    assert comment.main() == 0
    assert capsys.readouterr().out.startswith("no comment: ")
    assert not api.written


def test_a_page_that_grows_when_it_is_unpacked_is_read_in_part(api, monkeypatch):
    monkeypatch.setattr(comment, "MOST_BYTES", 2 * comment.MOST_CHARS)
    api.archive = zipped(comment_md=bytes(30 * comment.MOST_BYTES))
    assert len(api.archive) < 0.1 * comment.MOST_BYTES
    assert len(comment.page_of(42, "one")) == comment.MOST_BYTES
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


def cpu_s(page):
    began = time.process_time()
    comment.inert(page)
    return time.process_time() - began


@pytest.mark.parametrize("piece", ["\n", " ", "`", "~", "@", "<", "&", "[", "\\", "/\n", ":a", ":"], ids=repr)
def test_no_page_takes_long(piece):
    """Four times the page takes four times as long, not sixteen times: so does one of MOST_BYTES."""
    page = piece * (comment.MOST_BYTES // 8 // len(piece))
    whole_s = min(cpu_s(page), cpu_s(page))
    assert whole_s < 1.25
    assert whole_s < 8 * cpu_s(page[: len(page) // 4]) + 0.05
