"""URLs of http and https, taken apart: what is asked of whom. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

PORTS = {"http": 80, "https": 443}
_LONGEST = 16384
_HOST = re.compile(r"[a-z0-9._:-]{1,255}\Z")


@dataclass(frozen=True, slots=True)
class Origin:
    """``scheme``: one of PORTS; ``host``: in lower case, an IPv6 address without brackets."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """As in the header Host and in URLs: with the port where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Address:
    """``path`` and ``query`` as a request's target has them, None without a query."""

    origin: Origin
    path: str
    query: str | None

    @property
    def target(self) -> str:
        """As in a request."""
        return self.path if self.query is None else f"{self.path}?{self.query}"


def address(url: str) -> Address:
    """Take ``url`` apart; ValueError, one line, unless it has a host, and only characters that a request may have."""
    if len(url) > _LONGEST or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(f"{url[:80]!r} is no URL of printable ASCII")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"{url[:80]!r}: {error}") from error
    if parts.scheme not in PORTS or not parts.hostname or not _HOST.match(parts.hostname):
        raise ValueError(f"{url[:80]!r} is not http or https with a host")
    # urlsplit cannot tell "?" alone from no query; a request can
    has_query = "?" in url.partition("#")[0]
    origin = Origin(parts.scheme, parts.hostname, PORTS[parts.scheme] if port is None else port)
    return Address(origin, parts.path or "/", parts.query if has_query else None)
