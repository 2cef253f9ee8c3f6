"""The filled database asked as if it were another instant: queries say ``now()`` of what is shown as now."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from support.filled_database import Filled
from tandem_dashboards.grafana.macros import Range
from tandem_dashboards.influx import Influx

MS = 10**6


@dataclass
class AskedAt:
    """A database as ``tandem_dashboards`` asks it, as its reader. ``now_ms``: since 1970. ``words``: changed in every query."""

    influx: Influx
    now_ms: int
    words: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, filled: Filled, now_ms: int, words: dict[str, str] | None = None) -> AskedAt:
        """As the reader."""
        return cls(filled.reader, now_ms, words or {})

    def query(self, influxql: str) -> list[dict[str, Any]]:
        """See ``Influx.query``."""
        text = influxql.replace("now()", f"{self.now_ms}ms")
        for word, other in self.words.items():
            text = text.replace(f'"{word}"', f'"{other}"')
        return self.influx.query(text)


def until(filled: Filled, utc_ns: int) -> Range:
    """From the begin of the incident run to that instant."""
    return Range(filled.incidents.spans["all"].begin_utc_ns // MS, utc_ns // MS)
