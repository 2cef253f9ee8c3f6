"""Reads a log of the Android drive-test app G-NetTrack Pro (CSV, a row a second or so), strictly.

The file comes from outside: whatever it holds, the outcome is rows or a ``ScenarioError`` with file, line and hint.
"""

from __future__ import annotations

import csv
import itertools
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tandem_bench.scenario.toml_table import ScenarioError

_REQUIRED = (
    "Timestamp", "Speed", "NetworkMode", "RSRP", "RSRQ", "SNR", "RSSI", "DL_bitrate", "UL_bitrate", "State",
    "LACHEX", "RAWCELLID",
)  # fmt: skip
_TIME = re.compile(r"[0-9]{4}\.[0-9]{2}\.[0-9]{2}_[0-9]{2}\.[0-9]{2}\.[0-9]{2}\Z")
_NUMBER = re.compile(r"[+-]?[0-9]{1,20}(?:\.[0-9]{0,30})?(?:[eE][+-]?[0-9]{1,2})?\Z")
_HEX = re.compile(r"[0-9A-Fa-f]{1,9}\Z")

_ABSENT = {"", "-", "null", "n/a", "nan", "2147483647", "-2147483648"}
"""How the app says that it does not know: a dash, and the largest integers that Android hands out for "unavailable"."""

_JITTER_S = 2.0
"""A clock that steps back no farther than this was being set; the row then belongs to the second before."""

_RATS = {
    "LTE": "LTE", "LTE-A": "LTE", "LTE-CA": "LTE", "LTE_CA": "LTE", "4G": "LTE",
    # The app says 5G while a 5G carrier is added to an LTE cell, which stays the serving one.
    "5G": "NR-NSA", "NR": "NR-NSA", "NSA": "NR-NSA", "5G NSA": "NR-NSA", "5G-NSA": "NR-NSA", "NR-NSA": "NR-NSA",
    "UMTS": "WCDMA", "HSPA": "WCDMA", "HSPA+": "WCDMA", "HSPAP": "WCDMA", "HSDPA": "WCDMA", "HSUPA": "WCDMA",
    "WCDMA": "WCDMA", "3G": "WCDMA",
    "GSM": "GSM", "GPRS": "GSM", "EDGE": "GSM", "2G": "GSM",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One row; None where the app knew nothing. ``t_s`` from the log's first row; rates in bit/s, None while the app was idle.

    For WCDMA ``rsrp_dbm`` is the RSCP, ``rsrq_db`` the Ec/Io, and ``cell`` the 28-bit UTRAN cell id.
    """

    t_s: float
    speed_m_s: float | None
    rat: str | None
    rsrp_dbm: float | None
    rsrq_db: float | None
    sinr_db: float | None
    rssi_dbm: float | None
    tac: int | None
    cell: int | None
    down_bit_per_s: float | None
    up_bit_per_s: float | None
    rtt_ms: float | None


def read(path: str | Path) -> list[Row]:
    """The rows of a log in order of time, several in one second evenly spaced over it. ScenarioError when it is no such log."""
    path = Path(path)
    lines = _lines(path)
    header = _fields(path, 1, lines[0])
    names = [name.strip() for name in header]
    missing = [name for name in _REQUIRED if name not in names]
    if missing:
        raise ScenarioError(
            path, 1, f"no column {', '.join(missing)}", "give a G-NetTrack Pro log with its header line"
        )
    rows: list[tuple[int, Row]] = []
    start = last = None
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        values = _fields(path, number, line)
        if len(values) != len(names):
            if number == len(lines):
                break  # no line break after it: the app was ended while it wrote
            raise ScenarioError(
                path, number, f"{len(values)} fields, the header has {len(names)}", "remove the line or complete it"
            )
        cells = _Cells(path, number, dict(zip(names, values, strict=True)))
        at = cells.time()
        start = at if start is None else start
        second = round((at - start).total_seconds())
        if last is not None and second < last:
            if last - second > _JITTER_S:
                raise ScenarioError(
                    path, number, f"time goes back by {last - second} s", "give one log, sorted by time"
                )
            second = last
        last = second
        rows.append((second, cells.row()))
    if not rows:
        raise ScenarioError(path, None, "no rows", "give a log with at least ten seconds")
    return _spaced(rows)


def _lines(path: Path) -> list[str]:
    try:
        raw = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ScenarioError(path, None, f"cannot be read: {reason}", "give a readable CSV file") from None
    if not raw.strip():
        raise ScenarioError(path, None, "empty", "give a G-NetTrack Pro log")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ScenarioError(path, line, "not text", "give a CSV file in UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _fields(path: Path, number: int, line: str) -> list[str]:
    try:
        return next(csv.reader([line], strict=True), [])
    except csv.Error as error:
        raise ScenarioError(path, number, f"not CSV: {error}", "remove the line") from None


def _spaced(rows: list[tuple[int, Row]]) -> list[Row]:
    out: list[Row] = []
    for second, group in itertools.groupby(rows, key=lambda one: one[0]):
        ones = [row for _, row in group]
        out += [replace(row, t_s=second + i / len(ones)) for i, row in enumerate(ones)]
    return out


class _Cells:
    """One row's fields by column, with errors that say where."""

    def __init__(self, path: Path, number: int, values: dict[str, str]) -> None:
        self._path, self._number = path, number
        self._values = {name: text.strip() for name, text in values.items()}

    def _error(self, name: str, what: str, hint: str = "correct it, or write - where it is not known") -> ScenarioError:
        shown = self._values.get(name, "")[:40]
        return ScenarioError(self._path, self._number, f"{name} {shown!r} {what}", hint)

    def time(self) -> datetime:
        """The row's time; the app writes local time without a zone, only differences are used."""
        text = self._values["Timestamp"]
        try:
            if not _TIME.match(text):
                raise ValueError
            return datetime.strptime(text, "%Y.%m.%d_%H.%M.%S").replace(tzinfo=UTC)
        except ValueError:
            raise self._error("Timestamp", "is no time", "write it as 2019.12.16_07.22.43") from None

    def number(self, name: str, low: float, high: float, unit: str) -> float | None:
        text = self._values.get(name, "")
        if text.lower() in _ABSENT:
            return None
        if not _NUMBER.match(text):
            raise self._error(name, "is no number")
        value = float(text)
        if not low <= value <= high:
            raise self._error(name, f"is outside {low:g} to {high:g} {unit}")
        return value

    def _hex(self, name: str, high: int) -> int | None:
        text = self._values.get(name, "")
        if text.lower() in _ABSENT:
            return None
        if not _HEX.match(text) or int(text, 16) > high:
            raise self._error(name, f"is no hexadecimal number up to {high:X}")
        return int(text, 16)

    def row(self) -> Row:
        """All quantities, at time 0."""
        values = self._values
        mode = values["NetworkMode"].upper()
        if mode.lower() not in _ABSENT and mode not in _RATS:
            raise self._error("NetworkMode", "is not known", f"use one of: {', '.join(sorted(_RATS))}, or -")
        speed = self.number("Speed", 0, 500, "km/h")
        down, up = (self.number(name, 0, 1e8, "kbit/s") for name in ("DL_bitrate", "UL_bitrate"))
        # Only a row in which the app was downloading (D, VD) says something about the network; idle ones show what was not asked.
        busy = "D" in values["State"].upper()
        cell = self.number("RAWCELLID", 0, 2**36 - 1, "")
        if cell is not None and cell != int(cell):
            raise self._error("RAWCELLID", "is no whole number")
        return Row(
            t_s=0.0,
            speed_m_s=None if speed is None else speed / 3.6,
            rat=_RATS.get(mode),
            rsrp_dbm=self.number("RSRP", -160, 0, "dBm"),
            rsrq_db=self.number("RSRQ", -60, 30, "dB"),
            sinr_db=self.number("SNR", -60, 60, "dB"),
            rssi_dbm=self.number("RSSI", -160, 0, "dBm"),
            tac=self._hex("LACHEX", 0xFFFFFF),
            cell=None if cell is None else int(cell),
            down_bit_per_s=None if down is None or not busy else down * 1000,
            up_bit_per_s=None if up is None or not busy else up * 1000,
            rtt_ms=self.number("PINGAVG", 0, 1e5, "ms"),
        )
