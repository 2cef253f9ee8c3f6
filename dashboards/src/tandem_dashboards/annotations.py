"""Events drawn into charts as marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.models import dashboard as sdk

from tandem.schema import grades
from tandem_dashboards.conditions import Condition, chosen, one_of
from tandem_dashboards.expressions import tag
from tandem_dashboards.influxql import INTERVAL, QueryError, Select, select
from tandem_dashboards.look import web
from tandem_dashboards.target import datasource
from tandem_dashboards.vocabulary import RESOLUTION, UnknownNameError

MOST_MARKS = 1000
"""More than a chart has room for; a fleet's events of months would be hundreds of thousands."""


@dataclass(frozen=True)
class Annotation:
    """``title``, ``text``: columns that a mark tells; ``tags``: columns shown as labels; ``until``: the column with an end in ms, for
    stretches.

    Of an answer Grafana drops every row in which any column is null (transformAnnotationResponse of its InfluxDB data source, Grafana
    10 to 12), so select only what all rows have. It knows a column by whether its name, measurement first, *contains* the tag or the
    text; what that would mix up is refused here, and so is grouping, which shifts the columns.
    """

    name: str
    select: Select
    title: str
    text: str
    tags: tuple[str, ...] = ()
    until: str = ""
    tone: grades.Tone = "notice"
    on: bool = True

    def __post_init__(self) -> None:
        wanted = {self.title: "title", self.text: "text", **dict.fromkeys(self.tags, "tag")}
        if self.until:
            wanted[self.until] = "until"
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
        return "until" if column == self.until else "none"

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
            "timeEndColumn": annotation.until,
        }

    def to_json(self) -> dict[str, object]:
        return super().to_json() | self._own


def events(
    name: str,
    kinds: Sequence[str],
    *,
    text: str | None = "detail",
    path: bool = False,
    where: Sequence[Condition] = (),
    on: bool = True,
) -> Annotation:
    """Events of these kinds of the chosen probes, in the colour that the first kind has in the schema. ``text``: a field that all of
    them have; None where there is no such field: the kind is told. ``path``: only those of a path, and its name beside. Over long times a
    mark stands for all of its kind in that minute or hour, and only the newest ``MOST_MARKS`` are drawn. Needs the variables ``probe`` and
    ``resolution``."""
    for kind in kinds:
        if kind not in grades.EVENTS:
            raise UnknownNameError(f"the schema has no event kind {kind!r}; it has {', '.join(grades.EVENTS)}")
    told = [tag("kind").named("what"), "seq"] if text is None else [text]  # besides tags a query needs a field
    columns = [*told, "kind", *(["path"] if path else [])]
    terms = [chosen("probe"), one_of("kind", *kinds), *where]
    asked = select(*columns, of="event", where=terms, policy=RESOLUTION, newest_first=True, limit=MOST_MARKS)
    tags = ("path",) if path else ()
    return Annotation(name, asked, "kind", text or "what", tags, tone=grades.EVENTS[kinds[0]].tone, on=on)
