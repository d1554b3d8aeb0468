"""Records a terminal session as docs/recording.svg: `make recording`. With --check it compares, and exits 1.

Without arguments the command is `bench report` of a published run, in a copy of its folder, so that everybody
gets the same text from the same records. `python .ci/recording.py bench run …` records any other command. The
picture is what it writes to standard output: nothing is typed by hand, and lines that do not fit are counted.
"""

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
RUN = ROOT / "results" / "published" / "20261125T020543Z-shared-prefix-9d36a6"
PICTURE = ROOT / "docs" / "recording.svg"
COLUMNS, ROWS = 92, 40
WIDE, HIGH, MARGIN, BAR = 8.4, 19, 18, 34  # pixels: a character, a line, the frame, its title
LIMIT_S = 600.0
INK, PAPER, DIM = "#d6dbe3", "#14181f", "#8b94a3"
COLOURS = {"31": "#f0776c", "32": "#86c983", "33": "#e0b35c", "34": "#7aaeea", "36": "#73c7c7"}
_SGR = re.compile(r"\x1b\[([0-9;]*)m")


def recorded(command: Sequence[str], folder: Path) -> str:
    """What the command writes to a terminal of COLUMNS, as it wrote it."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=terminal,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        env=environment | {"TERM": "xterm-256color"},
    )
    os.close(terminal)
    limit = threading.Timer(LIMIT_S, process.kill)
    limit.start()
    written = bytearray()
    while True:
        try:
            data = os.read(screen, 1 << 16)
        except OSError:  # Linux: the other end is closed
            break
        if not data:
            break
        written += data
    os.close(screen)
    process.wait()
    limit.cancel()
    if process.returncode:
        sys.exit(f"recording: {' '.join(command)} ended with {process.returncode}")
    return written.decode().replace("\r\n", "\n").rstrip("\n")


def picture(command: str, output: str) -> str:
    """SVG that loads nothing. The font is the reader's own; each run of text is stretched to its columns."""
    lines = output.split("\n")
    more = len(lines) - (ROWS - 2)
    if more > 0:
        lines = [*lines[: ROWS - 2], f"\x1b[2m… {more} more lines\x1b[0m"]
    lines = [f"\x1b[32m$\x1b[0m \x1b[1m{command}\x1b[0m", *lines]
    width = round(COLUMNS * WIDE + 2 * MARGIN)
    height = BAR + len(lines) * HIGH + MARGIN
    texts = [
        text for number, line in enumerate(lines) for text in _texts(line, BAR + (number + 1) * HIGH - 5)
    ]
    plain = escape(_SGR.sub("", "\n".join(lines)))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
            " font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\""
            ' font-size="14">',
            f"<title>{escape(command)}</title>",
            f"<desc>{plain}</desc>",
            f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>',
            *(f'<circle cx="{20 + 18 * n}" cy="17" r="5" fill="#3a4250"/>' for n in range(3)),
            *texts,
            "</svg>",
            "",
        ]
    )


def _texts(line: str, baseline: int) -> Iterator[str]:
    """One element for each run of one style, without wide gaps, so that no font moves a column."""
    for column, text, style in _styled(line):
        for match in re.finditer(r"\S+(?: \S+)*", text):
            x = MARGIN + (column + match.start()) * WIDE
            length = f'textLength="{len(match[0]) * WIDE:.1f}" lengthAdjust="spacingAndGlyphs"'
            yield f'<text x="{x:.1f}" y="{baseline}" {length} {style}>{escape(match[0])}</text>'


def _styled(line: str) -> Iterator[tuple[int, str, str]]:
    """Column, text and attributes of each part between two changes of style."""
    parts = _SGR.split(line)
    column, codes = 0, set[str]()
    for number, part in enumerate(parts):
        if number % 2:
            given = set(part.split(";")) - {""}
            codes = set() if not given or "0" in given else codes | given
            continue
        colour = next(
            (COLOURS[code] for code in sorted(codes) if code in COLOURS), DIM if "2" in codes else INK
        )
        weight = ' font-weight="bold"' if "1" in codes else ""
        yield column, part, f'fill="{colour}"{weight}'
        column += len(part)


def main(arguments: Sequence[str]) -> None:
    check = list(arguments) == ["--check"]
    arguments = () if check else arguments
    with tempfile.TemporaryDirectory(prefix="recording-") as name:
        folder, command = Path(name), list(arguments)
        if not command:
            shutil.copytree(RUN, folder / "results" / RUN.name)
            command = ["bench", "report", RUN.name]
        program = shutil.which(command[0], path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
        output = recorded([program or command[0], *command[1:]], folder if not arguments else Path.cwd())
    drawn = picture(" ".join(command), output)
    if not check:
        PICTURE.write_text(drawn, encoding="utf-8")
    elif drawn != PICTURE.read_text(encoding="utf-8"):
        sys.exit(f"recording: {PICTURE.relative_to(ROOT)} is not what bench prints now; run: make recording")


if __name__ == "__main__":
    main(sys.argv[1:])
