"""How a column of an answer is shown: title, Grafana's unit, limits, thresholds, words and colours. All of it from ``tandem.schema``."""

from __future__ import annotations

from dataclasses import dataclass

from grafana_foundation_sdk.models import dashboard as sdk

from tandem.schema.metrics import Field
from tandem_dashboards.influxql import Output
from tandem_server.schema import grades

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

Steps = tuple[tuple[float | None, grades.Tone], ...]


class UnknownUnitError(LookupError):
    """The schema has a unit that this module does not know; the message says where to add it."""


def unit(field: Field) -> str:
    """Grafana's id for the unit of ``field``; UnknownUnitError."""
    if not field.unit:
        return PLAIN[field.kind]
    if field.unit not in GRAFANA_UNITS:
        raise UnknownUnitError(
            f"field {field.name!r} has the unit {field.unit!r}, which GRAFANA_UNITS in {__name__} lacks; add Grafana's id for it"
        )
    return GRAFANA_UNITS[field.unit]


def unit_id(name: str) -> str:
    """Grafana's id for a unit of the schema or of ``RATES``; ``grafana:ID`` is the id itself, no unit is ``none``. UnknownUnitError."""
    if not name:
        return PLAIN["float"]
    if name.startswith("grafana:"):
        return name.removeprefix("grafana:")
    known = GRAFANA_UNITS | RATES
    if name not in known:
        raise UnknownUnitError(
            f"the unit {name!r} is neither the schema's nor in RATES of {__name__}; known: {', '.join(known)}"
        )
    return known[name]


@dataclass(frozen=True)
class FieldConfig:
    """``unit``: Grafana's id. ``low``, ``high``: where a chart usually lies (soft), None where open. ``steps``: thresholds, empty where
    the field is not graded. ``words``: of a state, empty where the field has no closed list."""

    title: str
    unit: str
    low: float | None
    high: float | None
    steps: Steps
    words: grades.Words


def field_config(output: Output) -> FieldConfig:
    """How ``output`` is shown; UnknownUnitError when Grafana's id for its unit is not known."""
    if output.measurement is None:
        its = unit_id(output.unit) if output.unit else PLAIN[output.kind]
        return FieldConfig(_words(output.name), its, None, None, (), {})
    if output.field is None:  # a tag
        words = grades.STATES.get(f"{output.measurement}.{output.name}", {})
        return FieldConfig(_words(output.name), PLAIN["str"], None, None, (), words)
    measurement, field = output.measurement, output.field
    usual, scale = grades.usual(measurement, field.name), grades.scale(measurement, field.name)
    title = grades.title(measurement, field.name) if output.name == field.name else _words(output.name)
    steps = scale.steps if scale else ()
    return FieldConfig(title, unit(field), usual.low, usual.high, steps, grades.meanings(measurement, field.name))


def _words(name: str) -> str:
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def thresholds(steps: Steps) -> sdk.ThresholdsConfig:
    """Grafana's thresholds; without steps one plain colour."""
    plain: Steps = ((None, "notice"),)
    return sdk.ThresholdsConfig(
        sdk.ThresholdsMode.ABSOLUTE, [sdk.Threshold(limit, grades.COLOURS[tone].web) for limit, tone in steps or plain]
    )


def mappings(words: grades.Words) -> list[sdk.ValueMapping]:
    """Grafana's value mappings: each state's words and colour."""
    if not words:
        return []
    options = {
        value: sdk.ValueMappingResult(meaning.words, grades.COLOURS[meaning.tone].web, index=n)
        for n, (value, meaning) in enumerate(words.items())
    }
    return [sdk.ValueMap(options)]
