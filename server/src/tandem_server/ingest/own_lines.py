"""Lines of what the server itself records, checked against the schema as a probe's are."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from tandem.schema.line_protocol import Point
from tandem.schema.record import Value
from tandem_server.schema.measurements import check_server, encode_point
from tandem_server.store import SeriesStore

_LOG = logging.getLogger("tandem.gateway")
_TEXT = 500


def own_line(
    measurement: str, tags: Mapping[str, str | None], fields: Mapping[str, Value | None], utc_ns: int
) -> str | None:
    """One line of the server's own; what is None is absent, and a line without any field is none. RecordError: a fault of this program."""
    kept = {name: value for name, value in tags.items() if value}
    told = {
        name: value[:_TEXT] if isinstance(value, str) else value for name, value in fields.items() if value is not None
    }
    if not told:
        return None
    check_server(measurement, kept, told)
    return encode_point(Point(measurement, kept, told, utc_ns))


def put(store: SeriesStore, lines: list[str]) -> None:
    """Write them; what the database refuses is said in the log. StoreDown."""
    for refused in store.write(lines):
        _LOG.warning("the database refuses %s: %s", lines[refused.index][:200], refused.reason)
