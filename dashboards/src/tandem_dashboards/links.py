"""Links from a cell or a series to another board, which carry the time range and the variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Link:
    """``url`` with Grafana's macros, which the browser fills in."""

    title: str
    url: str
    new_tab: bool = False

    def to_json(self) -> dict[str, object]:
        """As a field's ``links`` has it."""
        return {"title": self.title, "url": self.url, "targetBlank": self.new_tab}


def cell(column: str) -> str:
    """What stands in ``column`` of the row that was clicked, fit for a URL."""
    return f"${{__data.fields.{column}:percentencode}}"


def label(tag: str) -> str:
    """The ``tag`` of the series that was clicked. Grafana ignores a format here: only for names fit for a URL as they are."""
    return f"${{__field.labels.{tag}}}"


def to_board(uid: str, title: str, keep: Sequence[str] = (), **variables: str) -> Link:
    """A link to the board ``uid`` with ``variables`` set (``probe=cell("probe")``) and those in ``keep`` as they are on this board. The
    time range goes along."""
    parts = [f"var-{name}={value}" for name, value in variables.items()]
    parts += [f"${{{name}:queryparam}}" for name in keep]
    return Link(title, f"/d/{uid}?" + "&".join([*parts, "${__url_time_range}"]))
