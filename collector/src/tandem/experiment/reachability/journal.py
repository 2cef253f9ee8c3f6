"""The journal of a survey: a head line, then a line a name that is done. A survey that was cut off goes on behind its last line."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tandem.experiment.parameters import ParameterError

JOURNAL, ROWS = "reachability.jsonl", "reachability-rows.csv"
Row = dict[str, Any]

COLUMNS = (
    "rank", "name", "family", "resolved_over", "pinged_over", "address",
    "sent", "answered", "resets", "unreachable", "not_sent", "rtt_ms_mean", "rtt_ms_min", "rtt_ms_max",
)  # fmt: skip


class Journal:
    """In ``folder``, which is made. ``head``: what must be the same for two parts to be one survey. ParameterError when it is not."""

    def __init__(self, folder: Path, head: Row) -> None:
        self.file = folder / JOURNAL
        try:
            folder.mkdir(parents=True, exist_ok=True)
            raw = self.file.read_bytes() if self.file.exists() else b""
            whole = raw[: raw.rfind(b"\n") + 1]  # a power cut may have left half a line
            self.rows = _rows(self.file, whole, head)
            self._stream = self.file.open("r+b" if self.file.exists() else "w+b")
            self._stream.truncate(len(whole))
            self._stream.seek(len(whole))
        except OSError as error:
            raise ParameterError(f"parameter 'folder': {error.filename}: {error.strerror}") from error
        if not whole:
            self.add([{"head": head}])

    def add(self, rows: Iterable[Row]) -> None:
        """Write down and wait until it is on the disk. The head is no row."""
        lines = [(json.dumps(row, separators=(",", ":"), sort_keys=True) + "\n").encode() for row in rows]
        self._stream.write(b"".join(lines))
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        """No more rows."""
        self._stream.close()


def _rows(file: Path, whole: bytes, head: Row) -> list[Row]:
    rows = list[Row]()
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ParameterError(f"{file}: line {number}: no JSON; hint: another folder") from error
        if number == 1:
            if not isinstance(row, dict) or not isinstance(row.get("head"), dict):
                raise ParameterError(f"{file}: line 1: no journal of a survey; hint: another folder")
            differs = sorted(k for k in head.keys() | row["head"].keys() if head.get(k) != row["head"].get(k))
            if differs:
                raise ParameterError(f"{file}: a survey with other {', '.join(differs)}; hint: another folder")
        elif not isinstance(row, dict) or not isinstance(row.get("name"), str):
            raise ParameterError(f"{file}: line {number}: no name; hint: another folder")
        else:
            rows.append(row)
    return rows


def write_table(folder: Path, rows: Sequence[Row]) -> Path:
    """All rows as CSV: one line for each name, address, path that resolved it and path that pinged it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in sorted(rows, key=lambda r: int(r["rank"])):
        for resolved, answers in row.get("resolved", {}).items():
            for kind, answer in answers.items():
                for address in answer["addresses"]:
                    for path, pinged in row["pings"].get(address, {}).items():
                        rtts = pinged["rtt_ms"]
                        times = (round(sum(rtts) / len(rtts), 3), min(rtts), max(rtts)) if rtts else ("", "", "")
                        counts = (pinged[k] for k in ("sent", "answered", "resets", "unreachable", "not_sent"))
                        family = 4 if kind == "A" else 6
                        writer.writerow([row["rank"], row["name"], family, resolved, path, address, *counts, *times])
    target = folder / ROWS
    partial = target.with_suffix(".tmp")
    with partial.open("w") as stream:
        stream.write(text.getvalue())
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(target)
    return target
