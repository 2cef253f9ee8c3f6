"""A query as a panel has it: the SDK knows no InfluxQL, so this is its own ``Dataquery``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from grafana_foundation_sdk.cog import variants
from grafana_foundation_sdk.models import dashboard as sdk

from tandem_dashboards.influxql import QueryError, Select

DATASOURCE_TYPE = "influxdb"
DATASOURCE_UID = "tandem"
_ALIAS_TAG = re.compile(r"\$tag_([@\w-]+)")
"""As Grafana reads an alias: a name goes on over hyphens, so ``$tag_path-x`` is the tag ``path-x``."""
Shape = Literal["time_series", "table"]


def datasource() -> sdk.DataSourceRef:
    """The one data source of all boards, by the uid that provisioning gives it."""
    return sdk.DataSourceRef(DATASOURCE_TYPE, DATASOURCE_UID)


@dataclass(frozen=True)
class Query(variants.Dataquery):
    """``alias``: name of each series: ``$tag_path``, ``$tag_operator``, ``$col``, ``$m``, or plain words; variables of the board, too.
    ``ref`` is given by the panel when empty: A, B …"""

    select: Select
    shape: Shape
    alias: str = ""
    ref: str = ""

    def __post_init__(self) -> None:
        for name in _ALIAS_TAG.findall(self.alias):
            if name not in self.select.grouped:
                by = ", ".join(self.select.grouped) or "nothing"
                raise QueryError(f"alias {self.alias!r}: the query is not grouped by {name!r}; it is by {by}")

    def to_json(self) -> dict[str, object]:
        """As Grafana's InfluxDB data source keeps a query."""
        payload: dict[str, object] = {
            "refId": self.ref,
            "datasource": datasource(),
            "query": self.select.text,
            "rawQuery": True,
            "resultFormat": self.shape,
        }
        if self.alias:
            payload["alias"] = self.alias
        return payload


def series(select: Select, alias: str = "") -> Query:
    """One series a group and column, named ``alias``: for charts over time."""
    return Query(select, "time_series", alias)


def rows(select: Select) -> Query:
    """One table: a column ``Time``, then the tags grouped by, then the query's columns."""
    return Query(select, "table")


def lettered(queries: tuple[Query | Select, ...], shape: Shape) -> list[Query]:
    """Each with a letter; a bare ``Select`` becomes a query of this ``shape``."""
    made = [query if isinstance(query, Query) else Query(query, shape) for query in queries]
    return [query if query.ref else replace(query, ref=chr(ord("A") + n)) for n, query in enumerate(made)]
