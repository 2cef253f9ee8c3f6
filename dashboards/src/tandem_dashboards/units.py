"""How a field of the schema is shown: title, Grafana unit, limits of its axis. All of it follows from the table of metrics."""

from __future__ import annotations

from dataclasses import dataclass

from tandem.schema.grades import title_of
from tandem.schema.metrics import MEASUREMENTS, Field

GRAFANA_UNITS = {
    "dBm": "dBm",
    "dB": "dB",
    "ns": "ns",
    "ms": "ms",
    "s": "s",
    "bit/s": "bps",  # prefixes of 1000, as rates of links are given; binbps would count in 1024
    "B": "decbytes",  # likewise: data plans are sold in powers of ten
    "MHz": "suffix:MHz",  # Grafana's own hertz would count from 1 Hz
    "deg": "degree",
    "m": "lengthm",
    "m/s": "velocityms",
    "ppm": "ppm",
    "degC": "celsius",
    "%": "percent",
}
"""The schema's unit → Grafana's unit id (``packages/grafana-data/src/valueFormats/categories.ts``)."""

RATES = {"B/s": "Bps", "1/s": "cps", "1/min": "cpm", "1/h": "suffix:/h", "1/km": "suffix:/km", "share": "percentunit"}
"""Units of what is computed, which no field has. ``share``: 0 to 1, written as a percentage."""

PLAIN = {"int": "none", "float": "none", "str": "string", "bool": "bool"}
"""Unit id of a field without a unit, by its type. ``none`` and not ``short``: a cell identity must not become "26.3 Mil"."""


class UnknownUnitError(LookupError):
    """The schema has a unit that this module does not know; the message says where to add it."""


@dataclass(frozen=True)
class Axis:
    """How to show one field. ``unit``: a Grafana unit id. ``minimum``, ``maximum``: in the schema's unit, None where open."""

    title: str
    unit: str
    minimum: float | None
    maximum: float | None


def axis(measurement: str, field: str) -> Axis:
    """How to show ``field`` of ``measurement``; KeyError when the schema has none, UnknownUnitError as above."""
    found = MEASUREMENTS[measurement].field(field)
    return Axis(title_of(found), unit(found), found.minimum, found.maximum)


def unit(field: Field) -> str:
    """Grafana's id for the unit of ``field``."""
    if not field.unit:
        return PLAIN[field.kind]
    try:
        return GRAFANA_UNITS[field.unit]
    except KeyError:
        raise UnknownUnitError(
            f"field {field.name!r} has the unit {field.unit!r}, which GRAFANA_UNITS in {__name__} lacks; add Grafana's id for it"
        ) from None


def grafana_unit(name: str) -> str:
    """Grafana's id for ``name``: a unit of the schema, or of ``RATES``."""
    known = GRAFANA_UNITS | RATES
    if name not in known:
        raise UnknownUnitError(
            f"the unit {name!r} is neither the schema's nor in RATES of {__name__}; known: {', '.join(known)}"
        )
    return known[name]
