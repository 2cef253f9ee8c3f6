"""A record: one row of one measurement, checked against the table of metrics when it is made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tandem.schema.metrics import COMMON_FIELDS, COMMON_TAGS, MEASUREMENTS, SERVER_MEASUREMENTS, Field

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


SPECS: dict[str, dict[str, Field]] = {
    kind.name: {field.name: field for field in (*COMMON_FIELDS, *kind.fields)} for kind in MEASUREMENTS.values()
} | {kind.name: {field.name: field for field in kind.fields} for kind in SERVER_MEASUREMENTS.values()}
"""Every field by measurement and name: with the common ones for what a probe records, without for what the server does."""

_TAGS = {kind.name: frozenset((*COMMON_TAGS, *kind.tags)) for kind in MEASUREMENTS.values()}
_SERVER_TAGS = {kind.name: frozenset(kind.tags) for kind in SERVER_MEASUREMENTS.values()}
_TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "float": (float, int), "str": (str,), "bool": (bool,)}
_WORDS = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false"}
_INT64 = (-(2**63), 2**63 - 1)


def check(measurement: str, tags: Mapping[str, str], fields: Mapping[str, Value]) -> None:
    """Raise RecordError unless names, types and ranges are those of the table of what a probe records. Common tags and fields may
    be there."""
    _check(measurement, tags, fields, _TAGS)


def check_server(measurement: str, tags: Mapping[str, str], fields: Mapping[str, Value]) -> None:
    """The same for what only the server records."""
    _check(measurement, tags, fields, _SERVER_TAGS)


def _check(
    measurement: str, tags: Mapping[str, str], fields: Mapping[str, Value], known: Mapping[str, frozenset[str]]
) -> None:
    allowed = known.get(measurement)
    if allowed is None:
        if measurement in _SERVER_TAGS:
            raise RecordError(f"{measurement!r} is recorded by the server alone")
        raise RecordError(f"unknown measurement {measurement!r}; known: {', '.join(known)}")
    specs = SPECS[measurement]
    if not allowed.issuperset(tags):
        kind = MEASUREMENTS.get(measurement) or SERVER_MEASUREMENTS[measurement]
        tag = next(tag for tag in tags if tag not in allowed)
        common = COMMON_TAGS if measurement in MEASUREMENTS else ()
        raise RecordError(f"{measurement}: unknown tag {tag!r}; known: {', '.join((*common, *kind.tags))}")
    if not fields:
        raise RecordError(f"{measurement}: no field")
    for name, value in fields.items():
        spec = specs.get(name)
        if spec is None:
            raise RecordError(f"{measurement}: unknown field {name!r}; known: {', '.join(specs)}")
        _check_value(measurement, spec, value)


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
