"""The bill of materials: ``hardware/bom.csv``, one part a line; how many of it each build has stands in the line, too. All columns stand
in each line; empty is absent."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tandem_hardware.sources import HARDWARE, SourceError

BUILDS = ("paper", "standard", "5g", "bench")
SOURCE = HARDWARE / "bom.csv"


@dataclass(frozen=True, slots=True)
class Part:
    """A line, its number ``line``. Numbers are None where nothing is told; units are in the names: W and A at 5 V. ``mpn``: the maker's
    part number, where public; ``driver``: a modem's module of ``tandem/modem/families/``; ``usb_id``: vendor:product, hexadecimal."""

    id: str
    function: str
    part: str
    maker: str
    mpn: str
    quantities: Mapping[str, int]
    """By build; builds without it are absent. A column each: ``qty_paper``, ``qty_standard``, ``qty_5g``, ``qty_bench``."""
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
    """``;`` between them, each ``NAME [driver vendor:product]`` or ``NAME``."""
    estimates: frozenset[str]
    """The columns that are estimates, a space between them."""
    note: str
    line: int


NUMBERS = {field.name for field in fields(Part) if field.type == "float | None"}
_QUANTITIES = tuple(f"qty_{build}" for build in BUILDS)
COLUMNS = tuple(
    name
    for field in fields(Part)
    if field.name != "line"
    for name in (_QUANTITIES if field.name == "quantities" else (field.name,))
)
_FORMS = {
    "id": (r"[a-z0-9]+(-[a-z0-9]+)*", "small letters, digits and single hyphens"),
    "price_date": (r"(20[0-9]{2}-(0[1-9]|1[0-2]))?", "YYYY-MM, or empty"),
    "usb_id": (r"([0-9a-f]{4}:[0-9a-f]{4})?", "vendor:product, four small hexadecimal digits each, or empty"),
    **dict.fromkeys(_QUANTITIES, (r"([0-9]{1,3})?", "a whole number below 1000, or empty")),
    **dict.fromkeys(sorted(NUMBERS), (r"([0-9]{1,6}(\.[0-9]+)?)?", "a number from 0, or empty")),
}


def load() -> dict[str, Part]:
    """By id, in the file's order. SourceError: the first line that is wrong."""
    return parse(SOURCE.read_bytes(), SOURCE.name)


def parse(raw: bytes, file: str) -> dict[str, Part]:
    """The same, of bytes."""
    parts: dict[str, Part] = {}
    try:
        rows = csv.DictReader(io.StringIO(raw.decode(), newline=""), strict=True)
        if tuple(rows.fieldnames or ()) != COLUMNS:
            raise SourceError(f"{file}:1: the columns are not these; hint: {','.join(COLUMNS)}")
        for row in rows:
            part = _part(f"{file}:{rows.line_num}", rows.line_num, row)
            if part.id in parts:
                raise SourceError(f"{file}:{part.line}: {part.id!r} stands in line {parts[part.id].line} already")
            parts[part.id] = part
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise SourceError(f"{file}:{line}: no UTF-8; hint: save it as UTF-8") from error
    except csv.Error as error:
        raise SourceError(f"{file}: no CSV: {error}") from error
    return parts


def _part(at: str, line: int, row: Mapping[str, str | None]) -> Part:
    if None in row or None in row.values():
        raise SourceError(f"{at}: not {len(COLUMNS)} columns; hint: quotes around what has commas")
    text: dict[str, Any] = {name: (row[name] or "").strip() for name in COLUMNS}
    for name, (form, hint) in _FORMS.items():
        if not re.fullmatch(form, text[name], re.ASCII):
            raise SourceError(f"{at}: {name} is {text[name]!r}; hint: {hint}")
    estimates = frozenset(text["estimates"].split())
    if strange := sorted(name for name in estimates if not text.get(name)):
        raise SourceError(f"{at}: estimates names {strange[0]!r}, which has no value here")
    counts = {build: int(text.pop(f"qty_{build}") or 0) for build in BUILDS}
    text |= {name: float(text[name]) if text[name] else None for name in NUMBERS}
    text["alternatives"] = tuple(one.strip() for one in text["alternatives"].split(";") if one.strip())
    text["estimates"] = estimates
    return Part(**text, quantities={build: count for build, count in counts.items() if count}, line=line)
