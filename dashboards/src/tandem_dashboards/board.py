"""A board: rows of panels, what is chosen at the top, events drawn into the charts as marks. Boards only put panels together."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as sdk

from tandem.schema import grades
from tandem_dashboards.expressions import chosen, one_of, value
from tandem_dashboards.influxql import INTERVAL, RESOLUTION, QueryError, Select, UnknownNameError, select
from tandem_dashboards.overrides import web
from tandem_dashboards.panel import COLUMNS, Panel, datasource
from tandem_dashboards.variables import Variable

TAG = "tandem"
"""On every board: the menu of the other boards lists what has it."""


class BoardError(ValueError):
    """The board does not fit together; the message says where."""


MOST_MARKS = 1000
"""More than a chart has room for; a fleet's events of months would be hundreds of thousands."""


@dataclass(frozen=True)
class Annotation:
    """``title``, ``text``: columns that a mark shows; ``tags``: columns shown as labels.

    Of an answer Grafana drops every row in which any column is null (transformAnnotationResponse of its InfluxDB data source, Grafana
    10 to 12), so select only what all rows have. It knows a column by whether its name, measurement first, *contains* the tag or the
    text; what that would mix up is refused here, and so is grouping, which shifts the columns.
    """

    name: str
    select: Select
    title: str
    text: str
    tags: tuple[str, ...] = ()
    tone: grades.Tone = "notice"
    on: bool = True

    def __post_init__(self) -> None:
        wanted = {self.title: "title", self.text: "text", **dict.fromkeys(self.tags, "tag")}
        for column in wanted:
            self.select.output(column)
        if self.select.grouped or self.select.every or INTERVAL in self.select.text:
            raise QueryError(f"annotation {self.name!r}: an annotation's query can neither group nor have windows")
        for output in self.select.outputs:
            taken = self._taken_as(f"{self.select.measurement}.{output.name}")
            if taken != wanted.get(output.name, "none"):
                raise QueryError(
                    f"annotation {self.name!r}: Grafana would take the column {output.name!r} for its {taken}"
                )

    def _taken_as(self, column: str) -> str:
        """What Grafana takes a column for, in its order of looking."""
        if column == f"{self.select.measurement}.{self.title}":
            return "title"
        if any(tag in column for tag in self.tags):
            return "tag"
        if self.text in column:
            return "text"
        return "none"

    def to_sdk(self) -> sdk.AnnotationQuery:
        """The SDK's annotation."""
        return sdk.AnnotationQuery(
            self.name,
            datasource(),
            self.on,
            hide=False,
            icon_color=web(self.tone),
            target=_InfluxTarget(self),
            built_in=0,
        )


class _InfluxTarget(sdk.AnnotationTarget):
    """The SDK knows no annotation by InfluxQL: the query and its columns stand beside the common keys, in the shape to which Grafana
    itself brings an annotation of this data source (migrations.ts)."""

    def __init__(self, annotation: Annotation) -> None:
        super().__init__(limit=0, match_any=False, tags=[], type_val="")
        self._own: dict[str, object] = {
            "refId": "Anno",
            "query": annotation.select.text,
            "queryType": "tags",
            "fromAnnotations": True,
            "name": annotation.name,
            "titleColumn": f"{annotation.select.measurement}.{annotation.title}",
            "textColumn": annotation.text,
            "tagsColumn": ",".join(annotation.tags),
            "timeEndColumn": "",
        }

    def to_json(self) -> dict[str, object]:
        return super().to_json() | self._own


def events(
    name: str, kinds: Sequence[str], *, text: str | None = "detail", path: bool = False, on: bool = True
) -> Annotation:
    """Events of these kinds of the chosen probes, in the colour that the first kind has in the schema. ``text``: a field that all of
    them have; None where there is no such field: then the kind. ``path``: only those of a path, and its name beside. Over long times a
    mark stands for all of its kind in that minute or hour, and only the newest ``MOST_MARKS`` are drawn. Needs the variables ``probe`` and
    ``resolution``."""
    for kind in kinds:
        if kind not in grades.EVENTS:
            raise UnknownNameError(f"the schema has no event kind {kind!r}; it has {', '.join(grades.EVENTS)}")
    words = [value("kind").named("what"), "seq"] if text is None else [text]  # besides tags a query needs a field
    columns = [*words, "kind", *(["path"] if path else [])]
    terms = [chosen("probe"), one_of("kind", *kinds)]
    query = select(*columns, of="event", where=terms, policy=RESOLUTION, newest_first=True, limit=MOST_MARKS)
    tags = ("path",) if path else ()
    return Annotation(name, query, "kind", text or "what", tags, tone=grades.EVENTS[kinds[0]].tone, on=on)


@dataclass(frozen=True)
class Row:
    """Panels side by side, from the left, in as many lines as they need."""

    title: str
    panels: tuple[Panel, ...]


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
            placed.append(sdk.RowPanel(False, row.title, None, sdk.GridPos(1, COLUMNS, 0, y), number, []))
            number, y = number + 1, y + 1
            x = line = 0
            for panel in row.panels:
                width, height = panel.size
                if x + width > COLUMNS:
                    x, y, line = 0, y + line, 0
                placed.append(panel.to_sdk(number, x, y))
                number, x, line = number + 1, x + width, max(line, height)
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
