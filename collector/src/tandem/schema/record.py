"""A record: one row of one measurement, checked against the table of metrics when it is made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tandem.schema.metrics import COMMON_FIELDS, COMMON_TAGS, MEASUREMENTS, Field

Value = int | float | str | bool


class RecordError(ValueError):
    """The record breaks the contract; the message names measurement, key, value and what is allowed."""


@dataclass(frozen=True, slots=True)
class Record:
    """``tags`` and ``fields`` without the common ones, which probe and spool add.

    ``monotonic_ns``: CLOCK_MONOTONIC of the boot ``boot`` when the quantity was read. ``utc_ns`` is computed from the
    boot's offset once the clock is synchronised, None before. Absent quantities are left out: a None is dropped here.
    """

    measurement: str
    tags: Mapping[str, str]
    fields: Mapping[str, Value]
    monotonic_ns: int
    utc_ns: int | None = None

    @classmethod
    def make(
        cls,
        measurement: str,
        tags: Mapping[str, str | None],
        fields: Mapping[str, Value | None],
        monotonic_ns: int,
        utc_ns: int | None = None,
    ) -> Record:
        """A checked record without its None entries; RecordError when a name, type or range is wrong."""
        kept_tags = {k: v for k, v in tags.items() if v is not None and v != ""}
        kept_fields = {k: v for k, v in fields.items() if v is not None}
        check(measurement, kept_tags, kept_fields)
        return cls(measurement, kept_tags, kept_fields, monotonic_ns, utc_ns)


def check(measurement: str, tags: Mapping[str, str], fields: Mapping[str, Value]) -> None:
    """Raise RecordError unless names, types and ranges are those of the table. Common tags and fields may be there."""
    kind = MEASUREMENTS.get(measurement)
    if kind is None:
        raise RecordError(f"unknown measurement {measurement!r}; known: {', '.join(MEASUREMENTS)}")
    for tag in tags:
        if tag not in kind.tags and tag not in COMMON_TAGS:
            raise RecordError(f"{measurement}: unknown tag {tag!r}; known: {', '.join((*COMMON_TAGS, *kind.tags))}")
    if not fields:
        raise RecordError(f"{measurement}: no field")
    for name, value in fields.items():
        try:
            spec = kind.field(name)
        except KeyError:
            known = ", ".join(f.name for f in (*COMMON_FIELDS, *kind.fields))
            raise RecordError(f"{measurement}: unknown field {name!r}; known: {known}") from None
        _check_value(measurement, spec, value)


def _check_value(measurement: str, spec: Field, value: Value) -> None:
    where = f"{measurement}.{spec.name}"
    if spec.kind == "bool":
        if not isinstance(value, bool):
            raise RecordError(f"{where}: {value!r} is not true or false")
        return
    if spec.kind == "str":
        if not isinstance(value, str):
            raise RecordError(f"{where}: {value!r} is not text")
        return
    allowed = (int,) if spec.kind == "int" else (int, float)
    if isinstance(value, bool) or not isinstance(value, allowed):
        raise RecordError(f"{where}: {value!r} is not {'a whole number' if spec.kind == 'int' else 'a number'}")
    if not math.isfinite(value):
        raise RecordError(f"{where}: {value!r} is not finite")
    if spec.minimum is not None and value < spec.minimum:
        raise RecordError(f"{where}: {value} {spec.unit} is below {spec.minimum:g}")
    if spec.maximum is not None and value > spec.maximum:
        raise RecordError(f"{where}: {value} {spec.unit} is above {spec.maximum:g}")
