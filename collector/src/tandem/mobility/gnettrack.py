"""Reads logs of the Android drive-test app G-NetTrack Pro: comma- or tab-separated, a row a second or so. Pure.

Bytes from outside: whatever they hold, the outcome is seconds or a ``LogError`` with line and hint.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from tandem.schema.record import SPECS, Record, Value

NAMES = {
    "time": ("Timestamp",),
    "speed": ("Speed",),
    "longitude": ("Longitude", "Lon"),
    "latitude": ("Latitude", "Lat"),
    "level": ("RSRP", "Level"),
    "quality": ("RSRQ", "Qual"),
    "sinr": ("SNR",),
    "rssi": ("RSSI", "LTERSSI"),
    "technology": ("NetworkMode", "NetworkTech"),
    "cell": ("RAWCELLID",),
    "cell_hex": ("CELLHEX",),
    "node_hex": ("NODEHEX",),
    "area_hex": ("LACHEX",),
    "pci": ("PCI", "PSC"),
    "earfcn": ("ARFCN", "EARFCN"),
}
"""What the columns are called in the app's versions and in the published sets of logs made with it."""

REQUIRED = ("time", "speed", "level")
ABSENT = {"", "-", "--", "null", "n/a", "na", "nan", "none", "unknown", "2147483647", "-2147483648"}

TECHNOLOGIES = {
    "LTE": "LTE", "LTE-A": "LTE", "LTE-CA": "LTE", "LTE_CA": "LTE", "4G": "LTE",
    "5G": "NR-NSA", "NR": "NR-NSA", "NSA": "NR-NSA", "5G NSA": "NR-NSA", "5G-NSA": "NR-NSA", "NR-NSA": "NR-NSA",
    "SA": "NR-SA", "5G SA": "NR-SA", "5G-SA": "NR-SA", "NR-SA": "NR-SA",
    "UMTS": "WCDMA", "WCDMA": "WCDMA", "3G": "WCDMA", "HSPA": "WCDMA", "HSPA+": "WCDMA", "HSPAP": "WCDMA",
    "HSDPA": "WCDMA", "HSUPA": "WCDMA", "DC-HSPA": "WCDMA",
    "GSM": "GSM", "GPRS": "GSM", "EDGE": "GSM", "2G": "GSM",
}  # fmt: skip
"""``5G`` is what the app says while a 5G carrier is added to an LTE cell, which stays the serving one."""

_NUMBER = re.compile(r"([+-]?[0-9]{1,20}(?:[.,][0-9]{0,30})?(?:[eE][+-]?[0-9]{1,2})?)(?: ?(?:km/h|dBm?))?\Z")
_UNIT = re.compile(r"[ _]*[(\[]([^)\]]*)[)\]]\Z")
"""Behind a column's name."""
_HEX = re.compile(r"[0-9A-Fa-f]{1,12}\Z")
_TIME = re.compile(
    r"([0-9]{4})[./-]([0-9]{2})[./-]([0-9]{2})[_T ]([0-9]{2})[.:]([0-9]{2})[.:]([0-9]{2})(?:[.,][0-9]{1,9})?"
    r"(?: ?(Z|UTC|[+-][0-9]{2}:?[0-9]{2}))?\Z"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_SPEED_KM_H = 1200.0


class LogError(ValueError):
    """A log that cannot be read; the message names its line (from 1), what is wrong, and the hint."""

    def __init__(self, line: int, wrong: str, hint: str) -> None:
        super().__init__(f"line {line}: {wrong}; hint: {hint}")


@dataclass(frozen=True, slots=True)
class Second:
    """One second of a log. ``at_s``: UTC where the log tells its offset, else local time as if it were, good for differences. None: the
    app did not know."""

    at_s: int
    speed_km_h: float | None
    rat: str | None
    fields: dict[str, Value]
    place: tuple[float, float] | None = None
    """Latitude and longitude of the last fix in degrees; None where the log has none."""

    def record(self, path: str, at_s: float) -> Record:
        """As the radio record of a poll at ``at_s``."""
        return Record.make("radio", {"path": path, "rat": self.rat}, self.fields, round(at_s * 1e9))


def read(raw: bytes) -> list[Second]:
    """The log's seconds in order of time.

    Of several rows of one second the last in the file counts, rows out of order are put in order, a gap stays a gap. A last
    row that was cut off in writing is left out. LogError when the text is no such log.
    """
    # What is not UTF-8 stands in an operator's name, which is not read.
    wide = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = raw.decode("utf-16" if wide else "utf-8-sig", errors="replace")
    lines = text.splitlines(keepends=True)
    if not lines or not text.strip():
        raise LogError(1, "the file is empty", "give a log of G-NetTrack Pro")
    rows = _rows(lines)
    _, header = next(rows)
    header = _trimmed(header, 0)
    columns = _columns(header)
    found: dict[int, Second] = {}
    whole = lines[-1].endswith(("\n", "\r"))
    for line, cells in rows:
        if not any(cell.strip() for cell in cells):
            continue
        row = _trimmed(cells, len(header))
        if len(row) != len(header):
            if line >= len(lines) and not whole:
                break
            hint = "the log was damaged; leave this row out"
            raise LogError(line, f"{len(row)} columns where the first line has {len(header)}", hint)
        second = _second(line, {name: row[i].strip() for name, i in columns.items()})
        found[second.at_s] = second
    if not found:
        raise LogError(len(lines), "no row after the first line", "give a log that holds a drive")
    return [found[at_s] for at_s in sorted(found)]


def _rows(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    lines = list(lines)
    head = lines[0]
    delimiter = "\t" if "\t" in head else ";" if head.count(";") > head.count(",") else ","
    reader = csv.reader(lines, delimiter=delimiter)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise LogError(
                reader.line_num, f"not comma-separated text ({error})", "give the log as the app wrote it"
            ) from None
        yield reader.line_num, row


def _trimmed(row: list[str], columns: int) -> list[str]:
    """Without the empty cells behind the last column: some versions end every row with a separator."""
    end = len(row)
    while end > columns and not row[end - 1].strip():
        end -= 1
    return row[:end]


def _columns(header: list[str]) -> dict[str, int]:
    at = {_UNIT.sub("", name.strip()).lower(): i for i, name in reversed(list(enumerate(header)))}
    columns = {}
    for name, spellings in NAMES.items():
        places = [at[s.lower()] for s in spellings if s.lower() in at]
        if places:
            columns[name] = places[0]
        elif name in REQUIRED:
            hint = "give a log of G-NetTrack Pro with its first line"
            raise LogError(1, f"no column {' or '.join(spellings)}", hint)
    unit = _UNIT.search(header[columns["speed"]].strip())
    if unit is not None and unit.group(1).strip().lower() not in ("", "km/h", "kmh", "kph"):
        raise LogError(1, f"Speed is in {unit.group(1)[:40]!r}", "give it in km/h")
    return columns


def _second(line: int, row: dict[str, str]) -> Second:
    rat = TECHNOLOGIES.get(row.get("technology", "").upper())
    speed = _number(line, "Speed", row["speed"])
    if speed is not None and not 0 <= speed <= _MOST_SPEED_KM_H:
        speed = None
    level, quality = _number(line, "RSRP", row["level"]), _number(line, "RSRQ", row.get("quality", ""))
    wide = rat == "WCDMA"
    measured: dict[str, float | int | None] = {
        "rscp_dbm" if wide else "rsrp_dbm": level,
        "ecno_db" if wide else "rsrq_db": quality,
        "sinr_db": _number(line, "SNR", row.get("sinr", "")),
        "rssi_dbm": _number(line, "RSSI", row.get("rssi", "")),
        "pci": _whole(_number(line, "PCI", row.get("pci", ""))),
        "earfcn": _whole(_number(line, "ARFCN", row.get("earfcn", ""))),
    }
    if rat == "GSM":  # RxLev; it has no pilot
        measured["rssi_dbm"] = measured.pop("rsrp_dbm")
    measured |= _cell(line, row, old=rat in ("WCDMA", "GSM"))
    fields: dict[str, Value] = {"state": "unknown"}
    fields |= {name: value for name, value in measured.items() if value is not None and _in_range(name, value)}
    return Second(_time(line, row["time"]), speed, rat, fields, _place(line, row))


def _place(line: int, row: dict[str, str]) -> tuple[float, float] | None:
    latitude = _number(line, "Latitude", row.get("latitude", ""))
    longitude = _number(line, "Longitude", row.get("longitude", ""))
    if latitude is None or longitude is None or abs(latitude) > 90 or abs(longitude) > 180:
        return None
    return latitude, longitude


def _cell(line: int, row: dict[str, str], *, old: bool) -> dict[str, float | int | None]:
    cell = _whole(_number(line, "RAWCELLID", row.get("cell", "")))
    node, sector, area = (_hex(row.get(name, "")) for name in ("node_hex", "cell_hex", "area_hex"))
    if cell is None and node is not None and sector is not None and sector < 256 and not old:
        cell = node << 8 | sector
    return {"lac": area, "ci": cell} if old else {"tac": area, "eci": cell}


def _in_range(name: str, value: float) -> bool:
    """Out of range is what the app writes for what it does not know."""
    spec = SPECS["radio"][name]
    return (spec.minimum is None or value >= spec.minimum) and (spec.maximum is None or value <= spec.maximum)


def _number(line: int, column: str, text: str) -> float | None:
    if text.lower() in ABSENT:
        return None
    match = _NUMBER.match(text)
    if match is None:
        raise LogError(line, f"{column} {text[:40]!r} is no number", "use a number, or - where there is none")
    return float(match.group(1).replace(",", "."))


def _whole(value: float | None) -> int | None:
    return None if value is None or value != int(value) else int(value)


def _hex(text: str) -> int | None:
    return int(text, 16) if _HEX.match(text) else None


def _time(line: int, text: str) -> int:
    match = _TIME.match(text)
    try:
        if match is None:
            raise ValueError
        *parts, zone = match.groups()
        when = datetime(*map(int, parts), tzinfo=UTC)  # type: ignore[misc,arg-type]  # six parts
    except ValueError:
        raise LogError(line, f"{text[:40]!r} is no time", "as in 2019.12.16_07.22.43") from None
    return round((when - _EPOCH).total_seconds()) - _offset_s(zone)


def _offset_s(zone: str | None) -> int:
    """Seconds east of Greenwich."""
    if zone in (None, "Z", "UTC"):
        return 0
    digits = str(zone)[1:].replace(":", "")
    return (int(digits[:2]) * 3600 + int(digits[2:]) * 60) * (-1 if str(zone).startswith("-") else 1)
