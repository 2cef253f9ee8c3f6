"""Which stored object answers a request: host, path and query as stored, else the nearest query of the same path. Pure.

Pages ask for other queries each time (cache busters, random numbers), so a query that was never stored is answered by the stored one of
the same method, host and path that has the most parameters with equal values, then the most of equal names, then the longest common
beginning, then the first. Another path is a miss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from urllib.parse import urlsplit

from tandem_server.content.page.index import Page, address

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Match:
    """``number`` of the object; ``exact``: its query is the requested one."""

    number: int
    exact: bool


class Matcher:
    """For one page."""

    def __init__(self, page: Page) -> None:
        self._found: dict[tuple[str, str, str, int, str], dict[str | None, int]] = {}
        for number, one in enumerate(page.objects):
            at = address(one.url)
            key = (one.method, at.origin.scheme, at.origin.host, at.origin.port, at.path)
            # A URL that was requested several times is answered as it was first.
            self._found.setdefault(key, {}).setdefault(at.query, number)

    def find(self, method: str, scheme: str, authority: str, target: str) -> Match | None:
        """The object for a request as it came; None: a miss. HEAD is answered as GET."""
        try:
            parts = urlsplit(f"//{authority}")
            port = parts.port or _PORTS[scheme]
        except ValueError:
            return None
        path, mark, query = target.partition("?")
        key = ("GET" if method == "HEAD" else method, scheme, parts.hostname or "", port, path)
        there = self._found.get(key)
        if there is None:
            return None
        requested = query if mark else None
        if requested in there:
            return Match(there[requested], True)
        return Match(_nearest(there, requested or ""), False)


def _nearest(there: Mapping[str | None, int], requested: str) -> int:
    wanted = _parameters(requested)
    names = {name for name, _ in wanted}

    def likeness(item: tuple[str | None, int]) -> tuple[int, int, int, int]:
        query = item[0] or ""
        has = _parameters(query)
        alike = len({name for name, _ in has} & names)
        begun = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(query, requested, strict=False)))
        return len(has & wanted), alike, begun, -item[1]

    return max(there.items(), key=likeness)[1]


def _parameters(query: str) -> set[tuple[str, str]]:
    pairs = (part.partition("=") for part in query.split("&") if part)
    return {(name, value) for name, _, value in pairs}
