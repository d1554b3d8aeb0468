"""What to run next, as the terminal says it, and the command of this run."""

import shlex
from collections.abc import Iterator

from harness.report.conclude import conclude
from harness.report.html.source import Source
from harness.report.html.tags import Html, items, join, tag
from harness.report.text import plain


def next_steps(source: Source) -> Iterator[Html]:
    if not source.summary.cells:
        return
    lines = [join([f"{step.why}: ", tag("code", step.do)]) for step in conclude(source.summary).next_steps]
    command = source.manifest.command if source.manifest else None
    same = [tag("p", "The command of this run: ", tag("code", plain(shlex.join(command or ()), 400)))]
    yield tag("div", tag("h3", "What to run next"), items(lines), *(same if command else []), class_="small")
