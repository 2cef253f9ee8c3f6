"""What a roll-up is: which fields of a measurement it has, under which name, and how two of them are put together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tandem.schema.metrics import MEASUREMENTS, SERVER_MEASUREMENTS, Field, Kind, Measurement

Holds = Literal["mean", "sum", "last", "min", "max"]
Also = Literal["min", "max"]

RECORDS = "records"
"""In every roll-up: how many raw records the window has."""


@dataclass(frozen=True, slots=True)
class Rolled:
    """One raw field. ``holds``: what the roll-up's field of the same name is, over the records of the window that have it. ``also``: its
    minimum and maximum, as ``FIELD_min`` and ``FIELD_max``. ``words``: for each, ``FIELD_WORD_count``: how many records had that word.

    A mean has its sum and its count beside it, ``FIELD_sum`` and ``FIELD_count``: by these, means are put together exactly.
    """

    field: str
    holds: Holds
    also: tuple[Also, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """One field of a roll-up. ``of_raw``: the InfluxQL that makes it of raw records, with the condition ``where`` if any; ``of_finer``: of
    a finer roll-up's points. Neither depends on which other windows are looked at: so any order gives the same."""

    name: str
    kind: Kind
    unit: str
    source: str
    of_raw: str
    of_finer: str
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Rollup:
    """One measurement's roll-up. ``tags``: those that stay, ``probe`` among them where it has one. ``counted``: a field that every record
    has, by which they are counted."""

    measurement: str
    tags: tuple[str, ...]
    counted: str
    fields: tuple[Rolled, ...]

    @property
    def raw(self) -> Measurement:
        """What it is made of."""
        return MEASUREMENTS.get(self.measurement) or SERVER_MEASUREMENTS[self.measurement]

    @property
    def columns(self) -> tuple[Column, ...]:
        """Its fields, ``records`` first."""
        count = Column(RECORDS, "int", "", "raw records in the window", _count(self.counted), _sum(RECORDS))
        return (count, *(column for one in self.fields for column in _columns(self.raw.field(one.field), one)))

    def column(self, name: str) -> Column:
        """The field called ``name``; KeyError when the roll-up has none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)


def _columns(raw: Field, one: Rolled) -> Iterator[Column]:
    name = raw.name
    if one.holds == "mean":
        finer = f"{_sum(f'{name}_sum')} / {_sum(f'{name}_count')}"
        yield Column(name, "float", raw.unit, f"mean of {name}", f'mean("{name}")', finer)
        total = Column(f"{name}_sum", raw.kind, raw.unit, f"sum of {name}", _sum(name), _sum(f"{name}_sum"))
        yield total
        yield Column(f"{name}_count", "int", "", f"records with {name}", _count(name), _sum(f"{name}_count"))
    else:
        made = f'{one.holds}("{name}")'
        yield Column(name, raw.kind, raw.unit, f"{_WORDS[one.holds]} {name}", made, made)
    for also in one.also:
        yield Column(
            f"{name}_{also}",
            raw.kind,
            raw.unit,
            f"{_WORDS[also]} {name}",
            f'{also}("{name}")',
            f'{also}("{name}_{also}")',
        )
    for word in one.words:
        counted = f"{name}_{word}_count"
        literal = word if raw.kind == "bool" else f"'{word}'"
        source = f"records whose {name} is {word}"
        yield Column(counted, "int", "", source, _count(name), _sum(counted), f'"{name}" = {literal}')


_WORDS: dict[str, str] = {"sum": "sum of", "last": "the last", "min": "the lowest", "max": "the highest"}


def _count(name: str) -> str:
    return f'count("{name}")'


def _sum(name: str) -> str:
    return f'sum("{name}")'


def means(*names: str) -> tuple[Rolled, ...]:
    """Each as its mean."""
    return tuple(Rolled(name, "mean") for name in names)


def spreads(*names: str) -> tuple[Rolled, ...]:
    """Each as its mean, its minimum and its maximum."""
    return tuple(Rolled(name, "mean", ("min", "max")) for name in names)


def sums(*names: str) -> tuple[Rolled, ...]:
    """Each as its sum: amounts that belong to one record each."""
    return tuple(Rolled(name, "sum") for name in names)


def lasts(*names: str) -> tuple[Rolled, ...]:
    """Each as it was last: counters, words, and what says how things stand."""
    return tuple(Rolled(name, "last") for name in names)


def peaks(*names: str) -> tuple[Rolled, ...]:
    """Each as it was last, and its maximum."""
    return tuple(Rolled(name, "last", ("max",)) for name in names)


def floors(*names: str) -> tuple[Rolled, ...]:
    """Each as it was last, and its minimum."""
    return tuple(Rolled(name, "last", ("min",)) for name in names)


def told(name: str, *words: str) -> tuple[Rolled, ...]:
    """The last word, and how often each of ``words`` was said: with ``records``, its share."""
    return (Rolled(name, "last", (), words),)


def flags(*names: str) -> tuple[Rolled, ...]:
    """Each as it was last, and how often it was true."""
    return tuple(Rolled(name, "last", (), ("true",)) for name in names)
