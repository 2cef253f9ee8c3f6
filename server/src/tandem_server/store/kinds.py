"""What every store of time series answers to, and what can go wrong. The gateway and the recorder write; ledger and report ask."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol


class StoreDown(RuntimeError):  # noqa: N818  (the contract's name)
    """The database does not answer, refuses the account, or cannot store now: nothing may be acknowledged."""


class LinesRefused(StoreDown):
    """The database refused the lines as a whole, for a reason that names none of them: as with ``StoreDown``, nothing is acknowledged."""


class TooManyRefused(LinesRefused):
    """The search for the lines that the database refuses was given up; part of the others are in."""


class QueryError(ValueError):
    """The database understood the request and says that the query is wrong."""


@dataclass(slots=True)
class Series:
    """One series of an answer. ``columns[0]`` is ``time`` (ns since 1970 UTC, int) for queries of points.

    A whole number in a float field arrives as an int: JSON does not tell them apart. ``rows`` hold None where a field is absent.
    """

    name: str
    tags: dict[str, str] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    rows: list[list[Any]] = field(default_factory=list)

    def column(self, name: str) -> list[Any]:
        """The values of one column, by row; KeyError when there is no such column."""
        if name not in self.columns:
            raise KeyError(name)
        at = self.columns.index(name)
        return [row[at] for row in self.rows]


@dataclass(frozen=True, slots=True)
class Rejected:
    """A line that the database will never take: ``index`` in the list written, and the database's reason."""

    index: int
    reason: str


class SeriesStore(Protocol):
    """One database, with its mirror or without. Safe to share between threads."""

    def ping(self) -> str:
        """The server's version; StoreDown when it does not answer. Says nothing about the account."""
        ...

    def write(self, lines: list[str], *, most_requests: int | None = None) -> list[Rejected]:
        """Store line protocol with times in ns. On return every line is in the database, or is named with the reason. Where that takes
        a search, it is given up after ``most_requests`` (TooManyRefused).

        StoreDown when the database cannot take anything now; part of the lines may be in then, and writing them again does no harm.
        """
        ...

    def query(self, influxql: str, params: dict[str, Any] | None = None) -> list[Series]:
        """One InfluxQL statement; ``params`` fill its ``$name`` placeholders. Times are ns since 1970 UTC. QueryError, StoreDown."""
        ...

    def parts(self, influxql: str, params: dict[str, Any] | None = None) -> Iterator[Series]:
        """Like ``query``, of an answer that is too much to be held: pieces of its series, in order, while the answer is being read."""
        ...

    def measurements_of(self, probe: str) -> int:
        """In how many measurements there is anything of a probe, of any age. QueryError, StoreDown."""
        ...

    def erase(self, probe: str) -> None:
        """Take out all series of a probe, its roll-ups too. ``probe``: a valid name. QueryError, StoreDown."""
        ...

    def close(self) -> None:
        """Close the connections kept alive; the client can be used again."""
        ...
