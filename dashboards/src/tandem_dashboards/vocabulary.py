"""The names that a query may use: measurements, tags and fields of ``tandem.schema``, raw or rolled up, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, Literal

from tandem.schema.metrics import COMMON_FIELDS, COMMON_TAGS, MEASUREMENTS, Field, Kind
from tandem_server.schema.derived import DERIVED_POLICIES, HOURS_OF
from tandem_server.schema.measurements import SERVER_MEASUREMENTS
from tandem_server.schema.rollups import NOT_ROLLED, ROLLUPS

RESOLUTION: Final = "${resolution:raw}"
"""Retention policy by the board's time range, raw for short ones. Only names that raw records and roll-ups share."""
ROLLED: Final = "${rolled:raw}"
"""Likewise, but never raw: for what only roll-ups have (``records``, ``rsrp_dbm_min``, ``state_silent_count`` …)."""
RAW = "kept"
Policy = Literal["kept", "minute", "hour", "${resolution:raw}", "${rolled:raw}"]


class UnknownNameError(LookupError):
    """A query names what the schema has not; the message says what, where, and what was perhaps meant."""


@dataclass(frozen=True)
class Known:
    """One field as a query sees it. ``field``: the schema's field whose figures they are (a roll-up's minimum, too); None for counts
    and sums, which have a unit only."""

    kind: Kind
    unit: str
    field: Field | None


@dataclass(frozen=True)
class Names:
    """What one measurement has: ``tags`` and ``fields`` by name. ``called``: in messages."""

    called: str
    tags: tuple[str, ...]
    fields: Mapping[str, Known]

    def field(self, name: str) -> Known:
        """The field called ``name``; UnknownNameError when there is none."""
        if name not in self.fields:
            raise UnknownNameError(f"{self.called} has no field {name!r}{_perhaps(name, tuple(self.fields))}")
        return self.fields[name]

    def tag(self, name: str) -> str:
        """``name``, when it is a tag; UnknownNameError otherwise."""
        if name not in self.tags:
            raise UnknownNameError(f"{self.called} has no tag {name!r}; it has {', '.join(self.tags) or 'none'}")
        return name


def names_of(measurement: str, policy: Policy | None = None) -> Names:
    """The names of ``measurement`` in ``policy`` (None: raw); UnknownNameError when the schema has no such measurement or roll-up."""
    raw = _raw(measurement)
    if measurement in DERIVED_POLICIES:
        return _derived(measurement, raw, policy)
    if policy in (None, RAW):
        return raw
    if measurement not in ROLLUPS:
        raise UnknownNameError(
            f"{measurement} is not rolled up ({NOT_ROLLED.get(measurement, 'no reason told')}); ask it raw"
        )
    rolled = _rolled(measurement, raw)
    if policy != RESOLUTION:
        return rolled
    both = {name: known for name, known in rolled.fields.items() if name in raw.fields}
    return Names(f"{measurement} (raw and rolled up)", tuple(t for t in rolled.tags if t in raw.tags), both)


def _derived(measurement: str, names: Names, policy: Policy | None) -> Names:
    """What the server derives is in one policy; of days and their hours the time range says which."""
    kept = DERIVED_POLICIES[measurement]
    if policy in (None, kept) or (policy == ROLLED and measurement in HOURS_OF):
        return names
    by_range = " or ROLLED" if measurement in HOURS_OF else ""
    raise UnknownNameError(f"{measurement} is in the retention policy {kept!r}: ask it with policy={kept!r}{by_range}")


def _raw(measurement: str) -> Names:
    if measurement in MEASUREMENTS:
        kind, common = MEASUREMENTS[measurement], True
    elif measurement in SERVER_MEASUREMENTS:
        kind, common = SERVER_MEASUREMENTS[measurement], False
    else:
        known = (*MEASUREMENTS, *SERVER_MEASUREMENTS)
        raise UnknownNameError(f"the schema has no measurement {measurement!r}{_perhaps(measurement, known)}")
    fields = {field.name: field for field in ((*COMMON_FIELDS, *kind.fields) if common else kind.fields)}
    tags = (*COMMON_TAGS, *kind.tags) if common else kind.tags
    return Names(measurement, tags, {name: Known(field.kind, field.unit, field) for name, field in fields.items()})


def _rolled(measurement: str, raw: Names) -> Names:
    rollup = ROLLUPS[measurement]
    for rolled in rollup.fields:
        raw.field(rolled.field)  # one that was renamed in the schema is told by its name
    fields: dict[str, Known] = {}
    for column in rollup.columns:
        base = next((name for name in (column.name, column.name[:-4]) if _stays(name, column.name, raw)), None)
        fields[column.name] = Known(column.kind, column.unit, raw.fields[base].field if base else None)
    return Names(f"{measurement} (rolled up)", rollup.tags, fields)


def _stays(base: str, column: str, raw: Names) -> bool:
    """The roll-up's column has figures of the raw field ``base``: its mean, last or sum, its minimum, its maximum."""
    return base in raw.fields and column in (base, f"{base}_min", f"{base}_max")


def _perhaps(name: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(name, known, 1)
    return f"; did you mean {close[0]!r}?" if close else f"; it has {', '.join(known)}"
