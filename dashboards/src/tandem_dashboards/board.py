"""A board: rows of panels, what is chosen at the top, events drawn into the charts. Boards only put panels together."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as sdk

from tandem_dashboards.annotations import Annotation
from tandem_dashboards.panel import COLUMNS, Panel
from tandem_dashboards.variables import Variable

TAG = "tandem"
"""On every board: the menu of the other boards lists what has it."""


class BoardError(ValueError):
    """The board does not fit together; the message says where."""


@dataclass(frozen=True)
class Row:
    """Panels side by side, from the left, in as many lines as they need. ``collapsed``: their queries run only once it is opened.
    ``repeat``: a variable; the row is drawn once for each value chosen."""

    title: str
    panels: tuple[Panel, ...]
    collapsed: bool = False
    repeat: str | None = None


@dataclass(frozen=True)
class Board:
    """``uid``: ``tandem-`` and the module's name, for good: links and bookmarks hold it. ``since``: the time range at first."""

    uid: str
    title: str
    description: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]
    annotations: tuple[Annotation, ...] = ()
    since: str = "now-6h"
    refresh: str = "1m"

    def __post_init__(self) -> None:
        names = [variable.name for variable in self.variables]
        for name in names:
            if names.count(name) > 1:
                raise BoardError(f"{self.uid}: two variables are called {name!r}")
        self._check_variables(names)

    def _check_variables(self, names: list[str]) -> None:
        """Every variable that a query uses is one of the board's, and a variable's query uses only those before it."""
        for n, variable in enumerate(self.variables):
            _check_uses(f"{self.uid}: variable {variable.name!r}", variable.query, names[:n])
        for panel in self.panels():
            for query in panel.queries:
                _check_uses(f"{self.uid}: panel {panel.title!r}", f"{query.select.text} {query.alias}", names)
        for annotation in self.annotations:
            _check_uses(f"{self.uid}: annotation {annotation.name!r}", annotation.select.text, names)

    def panels(self) -> Iterator[Panel]:
        """All of them, row by row."""
        for row in self.rows:
            yield from row.panels

    def to_sdk(self) -> sdk.Dashboard:
        """The SDK's dashboard, each panel with its number and place."""
        placed: list[sdk.Panel | sdk.RowPanel] = []
        number, y = 1, 0
        for row in self.rows:
            head = sdk.RowPanel(row.collapsed, row.title, None, sdk.GridPos(1, COLUMNS, 0, y), number, [], row.repeat)
            number, y = number + 1, y + 1
            placed.append(head)
            x = line = 0
            for panel in row.panels:
                if x + panel.width > COLUMNS:
                    x, y, line = 0, y + line, 0
                made = panel.to_sdk(number, x, y)
                if row.collapsed:
                    head.panels.append(made)
                else:
                    placed.append(made)
                number, x, line = number + 1, x + panel.width, max(line, panel.height)
            y += line
        return sdk.Dashboard(
            uid=self.uid,
            title=self.title,
            description=self.description,
            tags=[TAG],
            timezone="browser",
            editable=False,
            graph_tooltip=sdk.DashboardCursorSync.CROSSHAIR,
            time=sdk.DashboardDashboardTime(self.since, "now"),
            timepicker=sdk.TimePickerConfig(),
            refresh=self.refresh,
            panels=placed,
            templating=sdk.DashboardDashboardTemplating([variable.to_sdk() for variable in self.variables]),
            annotations=sdk.AnnotationContainer([annotation.to_sdk() for annotation in self.annotations]),
            links=[_menu()],
        )

    def to_text(self) -> str:
        """The JSON that Grafana loads; the same for the same board, to the byte."""
        return json.dumps(self.to_sdk(), cls=JSONEncoder, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _menu() -> sdk.DashboardLink:
    return sdk.DashboardLink(
        title="Boards",
        type_val=sdk.DashboardLinkType.DASHBOARDS,
        icon="external link",
        tags=[TAG],
        as_dropdown=True,
        include_vars=True,
        keep_time=True,
    )


_BUILT_IN = ("timeFilter", "interval", "col", "m")
_USED = re.compile(r"\$(?:\{(\w+)(?::\w+)?\}|(\w+))")


def _check_uses(where: str, text: str, names: list[str]) -> None:
    for used in _USED.findall(text):
        name = used[0] or used[1]
        if name.startswith(("__", "tag_")) or name in _BUILT_IN:
            continue
        if name not in names:
            raise BoardError(
                f"{where} uses ${name}, which is no variable before it; there are {', '.join(names) or 'none'}"
            )
