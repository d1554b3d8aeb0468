"""What a server must be shown before it answers: headers, a query, certificates."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.host.tls import Certificates

SESSION = "{session}"  # in a header's value: the number of the session that a request belongs to
_OUTSIDE = "0"  # the session of a request that is not part of a load


@dataclass(frozen=True, slots=True)
class Access:
    """Holds secrets: it is never stored or shown."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: str = field(default="", repr=False)  # encoded, without its '?'; part of every URL that is asked
    certificates: Certificates = field(default_factory=Certificates)
    credentials: tuple[str, ...] = field(default=(), repr=False)  # texts in it that nothing may repeat

    def asked(self, url: str) -> str:
        """`url` with the query. The URL without it is what messages and records show."""
        return f"{url}{'&' if '?' in url else '?'}{self.query}" if self.query else url

    @property
    def names_session(self) -> bool:
        return any(SESSION in value for value in self.headers.values())

    def headers_outside(self) -> dict[str, str]:
        """Headers of requests that are not part of a load."""
        return {name: value.replace(SESSION, _OUTSIDE) for name, value in self.headers.items()}
