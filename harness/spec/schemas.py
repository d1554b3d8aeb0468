"""JSON schemas that constrain answers: the shipped ones, or a folder of the user's."""

from pathlib import Path

from harness.errors import SpecError
from harness.host import paths
from harness.untrusted import read_document


def read_schemas(folder: str) -> dict[str, dict[str, object]]:
    """Reads the schemas of a folder, or the shipped ones for "", by their path in it without `.json`, sorted.

    Raises SpecError for a folder without schemas, or a file that holds none.
    """
    root = Path(folder).expanduser() if folder else paths.shipped("workloads") / "schemas"
    by_name = {
        path.relative_to(root).with_suffix("").as_posix(): _read(path)
        for path in sorted(root.rglob("*.json"))
    }
    if not by_name:
        raise SpecError("no *.json file in this folder", where=str(root), hint="see prompts.schemas")
    return by_name


def _read(path: Path) -> dict[str, object]:
    try:
        schema = read_document(path.read_bytes())
    except (OSError, ValueError) as error:
        raise SpecError(f"cannot be read as JSON: {error}", where=str(path)) from None
    if not isinstance(schema, dict):
        raise SpecError("a schema must be a JSON object", where=str(path))
    return schema
