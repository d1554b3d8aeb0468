"""The next steps in the terminal's words, and the command of this run."""

import shlex
from collections.abc import Iterator

from harness.report.findings.conclude import conclude
from harness.report.findings.next_steps import AGAIN, AGAIN_BY_URL
from harness.report.html.source import Source
from harness.report.html.tags import Html, items, join, tag, with_code
from harness.report.wording import plain


def next_steps(source: Source) -> Iterator[Html]:
    if not source.summary.cells:
        return
    lines = []
    for step in conclude(source.summary).next_steps:
        is_command = step.do.startswith(("bench ", AGAIN, AGAIN_BY_URL))
        lines.append(join([f"{step.why}: ", tag("code", step.do) if is_command else with_code(step.do)]))
    yield tag("div", tag("h3", "What to run next"), items(lines), class_="small")


def own_command(source: Source) -> Iterator[Html]:
    command = source.manifest.command if source.manifest else None
    if command and source.summary.cells:
        shown = tag("code", plain(shlex.join(command), 400))
        yield tag("p", "This run: ", shown, class_="command")
