"""Converts dates of traces to seconds."""

from datetime import UTC, datetime

from harness.workload.traces.rows import BadRow


def seconds_of(value: object) -> float:
    """Seconds since 1970 of an ISO 8601 date; one without a zone is in UTC. Raises BadRow."""
    if not value:
        raise BadRow("a value is missing")
    try:
        date = datetime.fromisoformat(str(value))
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise BadRow("a time that is not a date") from None
