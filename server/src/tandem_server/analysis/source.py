"""Where records come from: the database, or a list in memory. The analysis knows only this."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tandem.schema.record import Value
from tandem_server.ledger.numbers import Numbers


class SourceError(Exception):
    """The records cannot be read; one line, why."""


@dataclass(frozen=True, slots=True)
class Row:
    """One record as stored: its time, tags (with ``probe`` and ``boot``) and the fields that are there."""

    utc_ns: int
    tags: Mapping[str, str]
    fields: Mapping[str, Value]


class Source(Protocol):
    """Records of one campaign's store."""

    def rows(
        self,
        measurement: str,
        probe: str,
        start_utc_ns: int | None,
        end_utc_ns: int | None,
        fields: Sequence[str] | None = None,
    ) -> Iterable[Row]:
        """Records of ``measurement`` by ``probe`` in the time span (inclusive; None is open), those of each set of tags by time;
        SourceError, also while they are read. ``fields``: those that are needed, None: all."""
        ...

    def numbers(self, measurement: str, probe: str, boots: Collection[str]) -> Numbers:
        """The ``seq`` of every record of ``measurement`` in these boots that carries one, in any order; SourceError."""
        ...
