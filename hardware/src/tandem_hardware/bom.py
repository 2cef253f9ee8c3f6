"""The bill of materials: ``hardware/bom.csv``, one part a line; how many of it each build has stands in the line, too.

Columns (all of them stand in each line; empty is absent):

- ``id``; ``function``; ``part`` (its name); ``maker``; ``mpn`` (maker's part number, where public)
- ``qty_paper``, ``qty_standard``, ``qty_5g``, ``qty_bench``
- ``idle_w``, ``typical_w``, ``peak_w`` (W, drawn from what feeds it); ``power_source``
- ``feeds_a`` (A at 5 V that it can give); ``capacity_wh``
- ``mass_g``; ``length_mm``, ``width_mm``, ``height_mm``; ``size_source``
- ``price_eur``, ``price_date`` (YYYY-MM)
- ``driver`` (of ``tandem/modem/families/``), ``usb_id`` (vendor:product, hexadecimal)
- ``alternatives`` (``;`` between them, each ``NAME [driver vendor:product]`` or ``NAME``)
- ``estimates`` (the columns that are estimates, a space between them); ``note``
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from tandem_hardware.errors import SourceError
from tandem_hardware.places import HARDWARE

BUILDS = ("paper", "standard", "5g", "bench")
SOURCE = HARDWARE / "bom.csv"

_NUMBERS = {
    "idle_w", "typical_w", "peak_w", "feeds_a", "capacity_wh", "mass_g", "length_mm", "width_mm", "height_mm", "price_eur",
}  # fmt: skip
_FORMS = {
    "id": re.compile(r"[a-z0-9]+(-[a-z0-9]+)*"),
    "price_date": re.compile(r"(20[0-9]{2}-(0[1-9]|1[0-2]))?"),
    "usb_id": re.compile(r"([0-9a-f]{4}:[0-9a-f]{4})?"),
}
_MENDS = {
    "id": "small letters, digits and single hyphens",
    "price_date": "YYYY-MM, or empty",
    "usb_id": "vendor:product, four small hexadecimal digits each, or empty",
}
_QUANTITIES = {f"qty_{build}" for build in BUILDS}


@dataclass(frozen=True, slots=True)
class Part:
    """A line. Numbers are None where nothing is told; units are in the names."""

    id: str
    function: str
    part: str
    maker: str
    mpn: str
    quantities: Mapping[str, int]
    """By build; builds without it are absent."""
    idle_w: float | None
    typical_w: float | None
    peak_w: float | None
    power_source: str
    feeds_a: float | None
    capacity_wh: float | None
    mass_g: float | None
    length_mm: float | None
    width_mm: float | None
    height_mm: float | None
    size_source: str
    price_eur: float | None
    price_date: str
    driver: str
    usb_id: str
    alternatives: tuple[str, ...]
    estimates: frozenset[str]
    note: str
    line: int
    """In bom.csv."""


COLUMNS = tuple(
    name
    for field in fields(Part)
    if field.name != "line"
    for name in ([f"qty_{build}" for build in BUILDS] if field.name == "quantities" else [field.name])
)


def load(path: Path = SOURCE) -> dict[str, Part]:
    """By id, in the file's order. SourceError: the first line that is wrong."""
    try:
        return parse(path.read_bytes(), path.name)
    except OSError as error:
        raise SourceError(f"{path.name}: {error.strerror}") from error


def parse(raw: bytes, file: str) -> dict[str, Part]:
    """The same, of bytes."""
    try:
        rows = csv.DictReader(io.StringIO(raw.decode(), newline=""), strict=True)
        if tuple(rows.fieldnames or ()) != COLUMNS:
            raise SourceError(f"{file}:1: the columns are not these; mend: {','.join(COLUMNS)}")
        parts: dict[str, Part] = {}
        for row in rows:
            part = _part(file, rows.line_num, row)
            if part.id in parts:
                raise SourceError(f"{file}:{part.line}: {part.id!r} stands in line {parts[part.id].line} already")
            parts[part.id] = part
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise SourceError(f"{file}:{line}: no UTF-8; mend: save it as UTF-8") from error
    except csv.Error as error:
        raise SourceError(f"{file}: no CSV: {error}") from error
    return parts


def _part(file: str, line: int, row: Mapping[str, str | None]) -> Part:
    if None in row or any(value is None for value in row.values()):
        raise SourceError(f"{file}:{line}: not {len(COLUMNS)} columns; mend: quotes around what has commas")
    text = {name: (row[name] or "").strip() for name in COLUMNS}
    for name, form in _FORMS.items():
        if not form.fullmatch(text[name]):
            raise SourceError(f"{file}:{line}: {name} is {text[name]!r}; mend: {_MENDS[name]}")
    numbers = {name: _number(file, line, name, text[name]) for name in _NUMBERS}
    quantities = {}
    for build in BUILDS:
        told = text[f"qty_{build}"]
        if told and re.fullmatch(r"[0-9]{1,3}", told) is None:
            raise SourceError(f"{file}:{line}: qty_{build} is {told!r}; mend: a whole number below 1000, or empty")
        if told and int(told):
            quantities[build] = int(told)
    estimates = frozenset(text["estimates"].split())
    if strange := sorted(name for name in estimates if name not in COLUMNS or not text[name]):
        raise SourceError(f"{file}:{line}: estimates names {strange[0]!r}, which has no value here")
    plain = {
        name: value
        for name, value in text.items()
        if name not in _NUMBERS | _QUANTITIES | {"alternatives", "estimates"}
    }
    alternatives = tuple(one.strip() for one in text["alternatives"].split(";") if one.strip())
    return Part(**plain, **numbers, quantities=quantities, alternatives=alternatives, estimates=estimates, line=line)  # type: ignore[arg-type]


def _number(file: str, line: int, name: str, told: str) -> float | None:
    if not told:
        return None
    try:
        value = float(told)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e6:
        raise SourceError(f"{file}:{line}: {name} is {told!r}; mend: a number from 0, or empty")
    return value
