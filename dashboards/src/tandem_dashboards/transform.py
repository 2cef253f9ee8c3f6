"""What Grafana does with answers before it draws them. Only those that ``preview`` does alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grafana_foundation_sdk.models import dashboard as sdk


def joined(by: str) -> sdk.DataTransformerConfig:
    """One table of all queries' tables: rows that agree in the column ``by`` become one."""
    return sdk.DataTransformerConfig("joinByField", options={"byField": by, "mode": "outer"})


def merged() -> sdk.DataTransformerConfig:
    """One table of all: rows that agree in every column that they share become one."""
    return sdk.DataTransformerConfig("merge", options={})


def only(columns: Sequence[str]) -> list[sdk.DataTransformerConfig]:
    """These columns, in this order."""
    return [
        sdk.DataTransformerConfig("filterFieldsByName", options={"include": {"names": list(columns)}}),
        sdk.DataTransformerConfig(
            "organize",
            options={
                "excludeByName": {},
                "indexByName": {name: n for n, name in enumerate(columns)},
                "renameByName": {},
            },
        ),
    ]


def renamed(names: Mapping[str, str]) -> sdk.DataTransformerConfig:
    """Columns by other names."""
    return sdk.DataTransformerConfig(
        "organize", options={"excludeByName": {}, "indexByName": {}, "renameByName": dict(names)}
    )
