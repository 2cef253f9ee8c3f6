"""What people would read: a rule's annotations and the message, rendered for the label sets that fire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tandem_dashboards.alarms.evaluate.values import Labels
from tandem_dashboards.alarms.gotext import render
from tandem_dashboards.alarms.reading import Rule
from tandem_dashboards.alarms.words import MESSAGE, TEMPLATE, TITLE

EXTERNAL_URL = "https://grafana.example.org/"


@dataclass(frozen=True)
class Told:
    """One label set that fires, or that is over."""

    rule: Rule
    labels: Labels
    values: Mapping[str, float | None]
    since_ms: int
    over_ms: int | None = None

    def annotations(self, external_url: str = EXTERNAL_URL) -> dict[str, str]:
        """As Grafana expands them at an evaluation. TemplateError."""
        given = dict(self.labels)
        values = {
            name: {"Value": float("nan") if cell is None else cell, "Labels": given}
            for name, cell in self.values.items()
        }
        data = {"Labels": {**given, "alertname": self.rule.title}, "Values": values}
        functions = {"externalURL": lambda: external_url}
        return {name: render(text, data, functions) for name, text in self.rule.annotations.items()}


def message(told: Sequence[Told], external_url: str = EXTERNAL_URL) -> tuple[str, str]:
    """Title and text of one notification about alarms of one rule. TemplateError."""
    firing = [_alert(one, external_url) for one in told if one.over_ms is None]
    resolved = [_alert(one, external_url) for one in told if one.over_ms is not None]
    data = {
        "Alerts": {"Firing": firing, "Resolved": resolved},
        "CommonLabels": {"alertname": told[0].rule.title},
    }
    return render(TITLE, data, defined=TEMPLATE), render(MESSAGE, data, defined=TEMPLATE)


def _alert(one: Told, external_url: str) -> dict[str, Any]:
    return {
        "Labels": {**dict(one.labels), **one.rule.labels, "alertname": one.rule.title},
        "Annotations": one.annotations(external_url),
        "StartsAt": _Moment(one.since_ms),
        "EndsAt": _Moment(one.over_ms or one.since_ms),
    }


class _Moment:
    """Go's time.Time, as far as the template goes."""

    def __init__(self, utc_ms: int) -> None:
        self._time = datetime.fromtimestamp(utc_ms / 1000, UTC)

    @property
    def UTC(self) -> _Moment:  # noqa: N802 Go's name
        return self

    def Format(self, layout: str) -> str:  # noqa: N802 Go's name
        """Go's reference time."""
        for go, python in (("2006", "%Y"), ("01", "%m"), ("02", "%d"), ("15", "%H"), ("04", "%M"), ("05", "%S")):
            layout = layout.replace(go, python)
        return self._time.strftime(layout)
