"""The action's step that comments: one comment per pull request and name, written again by each run."""

import json
import os
import sys
import urllib.request
from pathlib import Path
from typing import Any

MOST_CHARS = 65_000  # GitHub refuses more than 65,536
PAGE = 100
TIMEOUT_S = 30.0


def main(path: str) -> int:
    text = Path(path).read_text(encoding="utf-8")
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    number = (event.get("pull_request") or {}).get("number")
    if number is None:
        print("no pull request: no comment")
        return 0
    try:
        print(f"comment: {publish(int(number), shortened(text))}")
    except OSError as error:  # such as a pull request from a fork, whose token may only read
        print(f"::warning::The comment was not written: {error}. Has the job `pull-requests: write`?")
    return 0


def publish(number: int, text: str) -> str:
    """Address of the comment. The first line of the text is its mark."""
    issues = f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    comments = f"{issues}/{number}/comments"
    known = _own(comments, text.partition("\n")[0])
    if known is None:
        written = _ask("POST", comments, {"body": text})
    else:
        written = _ask("PATCH", f"{issues}/comments/{known}", {"body": text})
    return str(written["html_url"])


def shortened(text: str) -> str:
    if len(text) <= MOST_CHARS:
        return text
    return text[:MOST_CHARS].rpartition("\n")[0] + "\n\nShortened: the job's summary has all of it.\n"


def _own(comments: str, mark: str) -> int | None:
    page = 1
    while True:
        found = _ask("GET", f"{comments}?per_page={PAGE}&page={page}")
        for one in found:
            if (one.get("body") or "").startswith(mark):
                return int(one["id"])
        if len(found) < PAGE:
            return None
        page += 1


def _ask(method: str, path: str, body: dict[str, str] | None = None) -> Any:
    request = urllib.request.Request(
        os.environ.get("GITHUB_API_URL", "https://api.github.com") + path,
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={
            "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        return json.load(answer)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
