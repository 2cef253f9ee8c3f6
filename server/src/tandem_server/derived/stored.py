"""Points of derived series in the database: what is there is compared with what should be, and only the difference is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tandem.schema.line_protocol import Point, tag_fault
from tandem.schema.record import Value
from tandem_server.schema.derived import DERIVED_POLICIES
from tandem_server.schema.measurements import SERVER_MEASUREMENTS, check_server, encode_point
from tandem_server.store import Influx, Rejected
from tandem_server.store.influx import literal

Identity = tuple[int, tuple[tuple[str, str], ...]]
"""Time, and the tags that are there, by name."""


class DerivedRefused(RuntimeError):  # noqa: N818  (as the store's LinesRefused)
    """The database will never take a point that was made here: a fault of ours, told with its reason."""


@dataclass(frozen=True, slots=True)
class Span:
    """[start, end) in UTC ns of one probe; None: of all, or of points that have no probe."""

    probe: str | None
    start_utc_ns: int
    end_utc_ns: int


class Derived:
    """The derived measurements in ``store``, each in its retention policy. StoreDown and QueryError as they come."""

    def __init__(self, store: Influx) -> None:
        self._store = store

    def points(self, measurement: str, span: Span) -> dict[Identity, dict[str, Value]]:
        """What is there, by identity; ``probe`` is among the tags."""
        answer = self._store.query(
            f"SELECT * FROM {_from(measurement)} WHERE {_of(span)} GROUP BY *",  # noqa: S608  constants
            {} if span.probe is None else {"probe": span.probe},
        )
        found: dict[Identity, dict[str, Value]] = {}
        for series in answer:
            tags = tuple(sorted((name, value) for name, value in series.tags.items() if value))
            names = series.columns[1:]
            for row in series.rows:
                found[int(row[0]), tags] = {n: v for n, v in zip(names, row[1:], strict=True) if v is not None}
        return found

    def replace(
        self, measurement: str, span: Span, points: Iterable[tuple[int, Mapping[str, str], Mapping[str, Value]]]
    ) -> bool:
        """Make ``points`` (time, tags without ``probe``, fields) all that there is of the probe in the span; whether anything changed.

        What stays the same is not touched. Of what changes, the new is written first, where that will do; a point that loses a field is
        deleted and written again. Broken off in between it is not whole, and done again it is.
        """
        wanted = {
            (time, _tags({"probe": span.probe or "", **tags})): dict(fields)
            for time, tags, fields in points
            # Records from before the gateway refused such tags are in the database.
            if fields and all(tag_fault(value) is None for value in tags.values())
        }
        there = self.points(measurement, span)
        gone = [one for one in there if one not in wanted]
        shrunk = [one for one in there if one in wanted and set(there[one]) - set(wanted[one])]
        self._delete(measurement, shrunk)
        changed = [one for one, fields in wanted.items() if one in shrunk or there.get(one) != fields]
        lines = [_line(measurement, one, wanted[one]) for one in changed]
        refused: list[Rejected] = self._store.write(lines, DERIVED_POLICIES[measurement]) if lines else []
        if refused:
            raise DerivedRefused(f"{lines[refused[0].index][:200]}: {refused[0].reason}")
        self._delete(measurement, gone)
        return bool(changed or gone)

    def _delete(self, measurement: str, points: Iterable[Identity]) -> None:
        for time, tags in points:
            known: dict[str, Any] = dict(tags)
            terms = [f"time = {time}"]
            terms += [f'"{tag}" = {literal(known.get(tag, ""))}' for tag in SERVER_MEASUREMENTS[measurement].tags]
            self._store.query(f'DELETE FROM "{measurement}" WHERE {" AND ".join(terms)}')  # noqa: S608  a constant, quoted


def _tags(tags: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in tags.items() if value))


def _line(measurement: str, identity: Identity, fields: dict[str, Value]) -> str:
    time, tags = identity
    check_server(measurement, dict(tags), fields)
    return encode_point(Point(measurement, dict(tags), fields, time))


def _from(measurement: str) -> str:
    return f'"{DERIVED_POLICIES[measurement]}"."{measurement}"'


def _of(span: Span) -> str:
    of_probe = "" if span.probe is None else '"probe" = $probe AND '
    return f"{of_probe}time >= {int(span.start_utc_ns)} AND time < {int(span.end_utc_ns)}"
