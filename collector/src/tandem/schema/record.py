"""A record: one row of one measurement, checked against the table of metrics when it is made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tandem.schema.metrics import COMMON_FIELDS, COMMON_TAGS, MEASUREMENTS, Field, Measurement

Value = int | float | str | bool


class RecordError(ValueError):
    """The record breaks the contract; the message names measurement, key, value and what is allowed."""


@dataclass(frozen=True, slots=True)
class Record:
    """``tags`` and ``fields`` without the common ones, which probe and spool add.

    ``monotonic_ns``: CLOCK_MONOTONIC of the boot ``boot`` when the quantity was read; UTC is computed when the record is sent.
    Absent quantities are left out: a None is dropped here.
    """

    measurement: str
    tags: Mapping[str, str]
    fields: Mapping[str, Value]
    monotonic_ns: int

    @classmethod
    def make(
        cls, measurement: str, tags: Mapping[str, str | None], fields: Mapping[str, Value | None], monotonic_ns: int
    ) -> Record:
        """A checked record without its None entries; RecordError when a name, type or range is wrong."""
        kept_tags = {k: v for k, v in tags.items() if v is not None and v != ""}
        kept_fields = {k: v for k, v in fields.items() if v is not None}
        check(measurement, kept_tags, kept_fields)
        return cls(measurement, kept_tags, kept_fields, monotonic_ns)


_TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "float": (float, int), "str": (str,), "bool": (bool,)}
_WORDS = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false"}
_INT64 = (-(2**63), 2**63 - 1)


class Table:
    """The measurements that may be recorded on one side. ``specs``: every field by measurement and name, the common ones included."""

    def __init__(
        self, measurements: Mapping[str, Measurement], tags: Sequence[str] = (), fields: Sequence[Field] = ()
    ) -> None:
        kinds = measurements.values()
        self.specs = {kind.name: {field.name: field for field in (*fields, *kind.fields)} for kind in kinds}
        self._tags = {kind.name: dict.fromkeys((*tags, *kind.tags)) for kind in kinds}

    def check(self, measurement: str, tags: Mapping[str, str], fields: Mapping[str, Value]) -> None:
        """RecordError unless names, types and ranges are those of the table."""
        known = self._tags.get(measurement)
        if known is None:
            raise RecordError(f"unknown measurement {measurement!r}; known: {', '.join(self._tags)}")
        specs = self.specs[measurement]
        if not tags.keys() <= known.keys():
            tag = next(tag for tag in tags if tag not in known)
            raise RecordError(f"{measurement}: unknown tag {tag!r}; known: {', '.join(known)}")
        if not fields:
            raise RecordError(f"{measurement}: no field")
        for name, value in fields.items():
            spec = specs.get(name)
            if spec is None:
                raise RecordError(f"{measurement}: unknown field {name!r}; known: {', '.join(specs)}")
            _check_value(measurement, spec, value)


_TABLE = Table(MEASUREMENTS, COMMON_TAGS, COMMON_FIELDS)
SPECS = _TABLE.specs
"""Every field that a probe records, by measurement and name, the common ones included."""

check = _TABLE.check
"""RecordError unless names, types and ranges are those of what a probe records. Common tags and fields may be there."""


def _check_value(measurement: str, spec: Field, value: Value) -> None:
    kind = spec.kind
    # The type itself, not isinstance: a bool is an int to Python, and never a quantity here.
    if type(value) not in _TYPES[kind] and not _is_derived(kind, value):
        raise RecordError(f"{measurement}.{spec.name}: {value!r} is not {_WORDS[kind]}")
    if isinstance(value, str) or kind == "bool":
        return
    if kind == "float":
        if not math.isfinite(value):
            raise RecordError(f"{measurement}.{spec.name}: {value!r} is not finite")
    elif not _INT64[0] <= value <= _INT64[1]:
        raise RecordError(f"{measurement}.{spec.name}: {value} does not fit into 64 bits")
    if spec.minimum is not None and value < spec.minimum:
        raise RecordError(f"{measurement}.{spec.name}: {value} {spec.unit} is below {spec.minimum:g}")
    if spec.maximum is not None and value > spec.maximum:
        raise RecordError(f"{measurement}.{spec.name}: {value} {spec.unit} is above {spec.maximum:g}")


def _is_derived(kind: str, value: Value) -> bool:
    """Types made from the plain ones (an IntEnum, numpy's float64) count as these; a bool never counts as a number."""
    return isinstance(value, _TYPES[kind]) and not (isinstance(value, bool) and kind != "bool")
