"""Lays out the pages of the documentation site below build/site-docs: `make site` builds it from there.

Pages of docs/ as they are, links that leave them turned to the repository, and what is made here: the help of
every command (from the parsers) below docs/commands.md, changelog, llms.txt. A link to nothing is an error.
"""

import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parent.parent
# Page of the site -> file it is made from, besides those of docs/.
ALSO = {
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "sample-report.html": "results/published/20261125T020543Z-shared-prefix-9d36a6/report.html",
}
_LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


class BadLinkError(Exception):
    """A page links to what is not there."""


def lay_out(target: Path) -> None:
    """Everything below `target`, which is emptied first."""
    shutil.rmtree(target, ignore_errors=True)
    project = settings()
    sources = {
        path.relative_to(ROOT / "docs").as_posix(): path for path in sorted((ROOT / "docs").rglob("*.*"))
    }
    sources |= {page: ROOT / name for page, name in ALSO.items()}
    pages = {path: page for page, path in sources.items()}
    for page, path in sources.items():
        laid_out = target / page
        laid_out.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            text = relinked(path.read_text(encoding="utf-8"), path, page, pages, project["repo_url"])
            laid_out.write_text(text, encoding="utf-8")
        else:
            shutil.copy(path, laid_out)
    page = target / "commands.md"
    page.write_text(page.read_text(encoding="utf-8") + commands(), encoding="utf-8")
    (target / "llms.txt").write_text(llms(target, project), encoding="utf-8")


def settings() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    return project


def relinked(text: str, path: Path, page: str, pages: dict[Path, str], repository: str) -> str:
    """Links to other pages as the site has them, to other files as the repository shows them.

    `pages`: page of the site by the file that it is made from.
    """

    def link(match: re.Match[str]) -> str:
        opening, address, closing = match.groups()
        if "://" in address or address.startswith("mailto:"):
            return match[0]
        found = Path(os.path.normpath(path.parent / address))
        if not found.exists():
            raise BadLinkError(f"{path.relative_to(ROOT)}: no {address}")
        if found in pages:
            return f"{opening}{os.path.relpath(pages[found], Path(page).parent)}{closing}"
        kind = "tree" if found.is_dir() else "blob"
        return f"{opening}{repository}/{kind}/main/{found.relative_to(ROOT).as_posix()}{closing}"

    outside = _FENCE.split(text)
    fences = [*_FENCE.findall(text), ""]
    return "".join(_LINK.sub(link, part) + fence for part, fence in zip(outside, fences, strict=True))


def commands() -> str:
    """Every command's own help."""
    from harness.cli.flags.parsers import COMMANDS, command_parser

    parts = ["", "## All flags"]
    with patch.dict(os.environ, COLUMNS="80"):  # what the page shows without scrolling
        for name in COMMANDS:
            help_text = command_parser(name).format_help().rstrip()
            parts += ["", f"## bench {name}", "", f"```{{.text .help}}\n{help_text}\n```"]
    return "\n".join(parts) + "\n"


def llms(target: Path, project: dict[str, Any]) -> str:
    """What there is to read, for programs that read it."""
    lines = [f"# {project['site_name']}", "", f"> {project['site_description']}"]
    for section in project["nav"]:
        for title, pages in section.items():
            if isinstance(pages, list):
                lines += ["", f"## {title}", ""]
                lines += [_entry(target, project, *named) for page in pages for named in page.items()]
    return "\n".join(lines) + "\n"


def _entry(target: Path, project: dict[str, Any], title: str, page: str) -> str:
    address = f"{project['site_url']}{page.removesuffix('.md')}.html"
    return f"- [{title}]({address}): {_heading((target / page).read_text(encoding='utf-8'))}"


def _heading(text: str) -> str:
    return next(line[2:] for line in text.splitlines() if line.startswith("# "))


def in_nav(nav: list[Any]) -> Iterator[str]:
    """Pages that the navigation of the site names."""
    for section in nav:
        for value in section.values():
            yield from in_nav(value) if isinstance(value, list) else (value,)


if __name__ == "__main__":
    try:
        lay_out(ROOT / settings()["docs_dir"])
    except BadLinkError as error:
        sys.exit(f"site: {error}")
