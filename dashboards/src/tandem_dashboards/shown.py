"""How a column of an answer is shown: Grafana's unit, limits, thresholds, words and colours. All of it from ``tandem.schema``."""

from __future__ import annotations

from dataclasses import dataclass

from grafana_foundation_sdk.models import dashboard as sdk

from tandem_dashboards.influxql import Output
from tandem_dashboards.units import PLAIN, grafana_unit, unit
from tandem_server.schema import grades

Steps = tuple[tuple[float | None, grades.Tone], ...]


@dataclass(frozen=True)
class Shown:
    """``unit``: Grafana's id. ``low``, ``high``: where a chart usually lies (soft), None where open. ``steps``: thresholds, empty where
    the field is not graded. ``words``: of a state, empty where the field has no closed list."""

    title: str
    unit: str
    low: float | None
    high: float | None
    steps: Steps
    words: grades.Words


def shown(output: Output) -> Shown:
    """How ``output`` is shown; UnknownUnitError when Grafana's id for its unit is not known."""
    if output.measurement is None:
        plain = PLAIN[output.kind]
        return Shown(_words(output.name), grafana_unit(output.unit) if output.unit else plain, None, None, (), {})
    if output.field is None:  # a tag
        words = grades.STATES.get(f"{output.measurement}.{output.name}", {})
        return Shown(_words(output.name), PLAIN["str"], None, None, (), words)
    measurement, field = output.measurement, output.field
    usual, scale = grades.usual(measurement, field.name), grades.scale(measurement, field.name)
    title = grades.title(measurement, field.name) if output.name == field.name else _words(output.name)
    steps = scale.steps if scale else ()
    return Shown(title, unit(field), usual.low, usual.high, steps, grades.meanings(measurement, field.name))


def _words(name: str) -> str:
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def thresholds(steps: Steps) -> sdk.ThresholdsConfig:
    """Grafana's thresholds; without steps one plain colour."""
    if not steps:
        return sdk.ThresholdsConfig(sdk.ThresholdsMode.ABSOLUTE, [sdk.Threshold(None, grades.COLOURS["notice"].web)])
    return sdk.ThresholdsConfig(
        sdk.ThresholdsMode.ABSOLUTE, [sdk.Threshold(limit, grades.COLOURS[tone].web) for limit, tone in steps]
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
