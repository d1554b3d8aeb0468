"""The action that comments: one comment per pull request and name, written again by each run.

It runs in a job of its own, which has the token and no code of the pull request. It reads the artefact of the
measuring job. The pull request's code ran in that job and may have written anything into it, so it is bounded
and shown as inert Markdown; which pull request it belongs to comes from GitHub alone. It needs nothing but
Python's standard library.
"""

import io
import json
import os
import re
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, urlsplit

MEMBER = "comment.md"
MOST_BYTES = 1_000_000  # of the artefact, and of the page in it
MOST_CHARS = 65_000  # GitHub refuses more than 65,536
PAGE, MOST_PAGES = 100, 50
TIMEOUT_S = 30.0
BOT = "github-actions[bot]"  # who writes with a job's token
NOTE = "<sub>Measured and written by a job that ran the code of this pull request.</sub>"
FOLD, FOLD_END = re.compile("<details><summary>[^<]*</summary>"), "</details>"  # a line each
_JOINER = "\u2060"  # of no width: what it stands in is no mention, link or reference
# Of what GitHub makes something, and where the joiner goes.
_BROKEN = (
    (re.compile("@"), f"@{_JOINER}"),  # mentions
    (re.compile("://"), f":{_JOINER}//"),  # links
    (re.compile(r"(?i)\b(www|xmpp|mailto)(?=[.:])"), rf"\1{_JOINER}"),
    (re.compile(r"#(?=\w)"), f"#{_JOINER}"),  # references to issues
    (re.compile(r"(?i)\bGH-(?=\d)"), f"GH-{_JOINER}"),
    (re.compile(r"(?m)^([ \t]*)/"), rf"\1{_JOINER}/"),  # commands to programs that read comments
    (re.compile(r"([`~])(?=\1\1)"), rf"\1{_JOINER}"),  # blocks that are drawn, such as mermaid
    (re.compile(r":(?=\w+:)"), f":{_JOINER}"),  # emoji
)
_ACTIVE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


class NothingError(Exception):
    """Why there is nothing to comment, or nowhere."""


def main() -> int:
    name = os.environ["COMMENT_NAME"]
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    try:
        number = pull_request(event)
        run = (event.get("workflow_run") or {}).get("id") or os.environ["GITHUB_RUN_ID"]
        text = inert(page_of(int(run), name))
        print(f"comment: {publish(number, mark_of(name), text)}")
    except NothingError as error:
        print(f"no comment: {error}")
    except OSError as error:  # such as a token that may only read
        print(
            f"::warning::The comment was not written: {one_line(error)}. "
            "Has the job `actions: read` and `pull-requests: write`?"
        )
    return 0


def pull_request(event: dict[str, Any]) -> int:
    """Its number, from the event and the API: an artefact could name the pull request of another."""
    if about := event.get("pull_request"):
        number = int(about["number"])
        now = _ask("GET", f"{_repository()}/pulls/{number}")
        if now["head"]["sha"] != about["head"]["sha"]:  # an earlier run may end last, or be run again
            raise NothingError("its pull request has newer commits")
        return number
    run = event.get("workflow_run") or {}
    if run.get("event") != "pull_request":
        raise NothingError("no pull request")
    if not run["head_repository"]:
        raise NothingError("its repository was deleted")
    owner, branch, head = run["head_repository"]["owner"]["login"], run["head_branch"], run["head_sha"]
    where = f"{_repository()}/pulls?state=open&per_page={PAGE}&head={quote(f'{owner}:{branch}', safe='')}"
    for one in _ask("GET", where):
        if one["head"]["sha"] == head:
            return int(one["number"])
    raise NothingError("its pull request is closed, or has newer commits")


def page_of(run: int, name: str) -> str:
    """The page in the artefact that the run left under this name."""
    asked = f"per_page={PAGE}&name={quote(f'{name}-comment', safe='')}"
    listed = _ask("GET", f"{_repository()}/actions/runs/{run}/artifacts?{asked}")["artifacts"]
    found = [one for one in listed if not one["expired"]]
    if not found:
        raise NothingError("the measuring job left no page")
    newest = max(found, key=lambda one: int(one["id"]))
    data = _download(f"{_repository()}/actions/artifacts/{int(newest['id'])}/zip")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open(MEMBER) as member:
            page = member.read(MOST_BYTES)
    except (zipfile.BadZipFile, KeyError, RuntimeError, NotImplementedError, EOFError, ValueError) as error:
        raise NothingError(f"the artefact has no page: {one_line(error)}") from None
    return page.decode("utf-8", "replace")


def inert(text: str) -> str:
    """Markdown with tables, emphasis and folded parts, without what links, loads, mentions or commands."""
    text = _ACTIVE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n")).replace(_JOINER, "")
    for pattern, instead in _BROKEN:
        text = pattern.sub(instead, text)
    text = re.sub("&(?!amp;|lt;)", "&amp;", text)
    text = re.sub(r"\\?([\[\]$])", lambda found: f"&#{ord(found[1])};", text)
    return "\n".join(_without_tags(text.split("\n")))


def _without_tags(lines: list[str]) -> Iterator[str]:
    """Keeps those of folded parts, none within another, so that one end closes whatever is open."""
    is_open = False
    for line in lines:
        if line == FOLD_END if is_open else FOLD.fullmatch(line):
            is_open = not is_open
            yield line
        else:
            yield line.replace("<", "&lt;")


def mark_of(name: str) -> str:
    """The comment's first line, by which the next run finds it; no name ends it early."""
    shown = re.sub(r"[^\w. ]", "_", name)
    return f"<!-- {shown} -->"


def publish(number: int, mark: str, text: str) -> str:
    """Address of the comment."""
    issues = f"{_repository()}/issues"
    comments, body = f"{issues}/{number}/comments", {"body": shortened(f"{mark}\n{text}")}
    known = _own(comments, mark)
    if known is None:
        written = _ask("POST", comments, body)
    else:
        written = _ask("PATCH", f"{issues}/comments/{known}", body)
    return one_line(written["html_url"])


def shortened(text: str) -> str:
    """As much as GitHub takes. What stands below the page is in no folded part of it."""
    below = [NOTE]
    if len(text) > MOST_CHARS:
        text = text[:MOST_CHARS].rpartition("\n")[0]
        below = ["Shortened: the job's summary has all of it.", NOTE]
    if text.count("<details>") > text.count(FOLD_END):
        below = [FOLD_END, *below]
    return "\n\n".join([text, *below]) + "\n"


def one_line(value: object) -> str:
    return " ".join(_ACTIVE.sub(" ", str(value)).split())[:300]


def _own(comments: str, mark: str) -> int | None:
    """Written by this action before: anybody may begin a comment with the same mark."""
    writer = _login()
    for page in range(1, MOST_PAGES + 1):
        found = _ask("GET", f"{comments}?per_page={PAGE}&page={page}")
        for one in found:
            if (one.get("user") or {}).get("login") == writer and (one.get("body") or "").startswith(mark):
                return int(one["id"])
        if len(found) < PAGE:
            break
    return None


def _login() -> str:
    """Whose token it is; that of an app or of a job may ask this alone, and not `/user`."""
    graphql = os.environ.get("GITHUB_GRAPHQL_URL", "https://api.github.com/graphql")
    try:
        return str(_ask("POST", graphql, {"query": "{ viewer { login } }"})["data"]["viewer"]["login"])
    except (urllib.error.HTTPError, LookupError, TypeError):
        return BOT


def _repository() -> str:
    return f"{_api()}/repos/{os.environ['GITHUB_REPOSITORY']}"


def _ask(method: str, address: str, body: dict[str, str] | None = None) -> Any:
    with _opened(method, address, body) as answer:
        return json.load(answer)


def _download(address: str) -> bytes:
    """GitHub sends it from another host, which must not get the token."""
    try:
        with _opened("GET", address) as answer:
            data: bytes = answer.read(MOST_BYTES + 1)
    except urllib.error.HTTPError as error:
        place = error.headers.get("Location", "")
        if error.code not in (301, 302, 303, 307, 308) or urlsplit(place).scheme != urlsplit(_api()).scheme:
            raise
        with _OPENER.open(urllib.request.Request(place), timeout=TIMEOUT_S) as answer:
            data = answer.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise NothingError(f"the artefact has more than {MOST_BYTES} bytes")
    return data


class _Stays(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: urllib would send the token along."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


_OPENER = urllib.request.build_opener(_Stays)


def _opened(method: str, address: str, body: dict[str, str] | None = None) -> Any:
    request = urllib.request.Request(
        address,
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={
            "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
        },
    )
    try:
        return _OPENER.open(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        error.close()  # its code and headers stay
        raise


def _api() -> str:
    return os.environ.get("GITHUB_API_URL", "https://api.github.com")


if __name__ == "__main__":
    sys.exit(main())
