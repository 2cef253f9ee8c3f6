"""Which commands make a modem's GNSS speak. Data in ``start_commands.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Start:
    """One row: commands in order, and where they are from."""

    family: str
    models: tuple[str, ...]
    start: tuple[str, ...]
    stop: tuple[str, ...]
    source: str


@cache
def table() -> tuple[Start, ...]:
    """The file, as it is."""
    text = (resources.files("tandem.position") / "start_commands.toml").read_text(encoding="utf-8")
    return tuple(
        Start(
            row["family"],
            tuple(row.get("models", ())),
            tuple(row["start"]),
            tuple(row["stop"]),
            row["source"],
        )
        for row in tomllib.loads(text)["modem"]
    )


def start_commands(family: str, model: str) -> tuple[str, ...]:
    """For a modem of this driver that calls itself ``model``; empty when none are known: then its GNSS is taken as running."""
    for row in table():
        if row.family == family and (not row.models or any(part.lower() in model.lower() for part in row.models)):
            return row.start
    return ()
