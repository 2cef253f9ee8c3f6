"""What a field and a measurement are, and what every record has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["int", "float", "str", "bool"]


@dataclass(frozen=True)
class Field:
    """One field of a measurement: ``unit`` as SI or the field's term ("" for counts), range inclusive, where it comes from."""

    name: str
    kind: Kind
    unit: str
    source: str
    minimum: float | None = None
    maximum: float | None = None


@dataclass(frozen=True)
class Measurement:
    """One kind of record. ``tags`` are indexed and are part of a record's identity together with its time."""

    name: str
    purpose: str
    tags: tuple[str, ...]
    fields: tuple[Field, ...]

    def field(self, name: str) -> Field:
        """The field called ``name``; KeyError when this measurement has none."""
        for field in (*COMMON_FIELDS, *self.fields):
            if field.name == name:
                return field
        raise KeyError(name)


COMMON_TAGS = ("probe", "boot")
"""On every record: the probe's name (forced by the gateway) and the boot id (UUID) in which it was made."""

COMMON_FIELDS = (
    Field(
        "seq",
        "int",
        "",
        "the probe's count of records in this spool, from 1 without gaps: a gap in the database is a loss",
        1,
    ),
    Field("monotonic_ns", "int", "ns", "CLOCK_MONOTONIC when the quantity was read", 0),
    Field(
        "utc_error_ms",
        "float",
        "ms",
        "how far off the record's time may be; told where that is more than 100 ms, else see the clock records",
        0,
    ),
)
