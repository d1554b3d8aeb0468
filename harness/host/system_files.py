"""Small files in which the system tells of itself, below /proc and /sys."""

from pathlib import Path


def text_of(path: Path) -> str:
    """The text, stripped; "" for a file that is not there, or that this user may not read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
