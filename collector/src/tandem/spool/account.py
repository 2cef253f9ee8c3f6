"""``account.json``: what the spool must remember beyond the life of its daily files, in two copies.

``folded``: the counts of files that are gone; ``gone``: files whose counts are in ``folded`` already but which may still lie
there after a crash; ``reserved``: no number above it was ever given out, so that a file whose counts are unreadable cannot
make a number be used twice; ``newest``: the first number of the newest file, so that it is missed when it is not there.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandem.spool.counts import Tally
from tandem.spool.durable import write_durably

NAME = "account.json"
COPY = "account.copy.json"
RESERVE = 10_000
"""Numbers reserved at once: two small files are written for so many records."""

_HIGHEST = 2**53
"""No number of ours comes near it; SQLite's integers end at 2**63."""


@dataclass(slots=True)
class Account:
    """See the module. ``folded.first`` is 1; ``folded.last`` counts the records of all files gone (it is no number).

    ``forgotten``, ``forgotten_files``: rejected records and damaged files that had to leave the quarantine.
    """

    folder: Path
    folded: Tally = field(default_factory=lambda: Tally(1, 0))
    gone: list[str] = field(default_factory=list)
    reserved: int = 0
    newest: int = 0
    forgotten: int = 0
    forgotten_files: int = 0

    @classmethod
    def read(cls, folder: Path) -> tuple[Account, list[str]]:
        """The account in ``folder`` and why a copy of it could not be read. With two complaints it is a new one; OSError as it comes."""
        complaints: list[str] = []
        found: list[Account] = []
        for name in (NAME, COPY):
            try:
                found.append(cls._of(folder, (folder / name).read_bytes()))
            except FileNotFoundError:
                continue
            except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
                complaints.append(f"{name}: {error}")
        # The copy is written first: what a power cut left between the two is the newer one.
        return max(found, key=lambda a: (a.reserved, a.folded.last, a.newest), default=cls(folder)), complaints

    @classmethod
    def _of(cls, folder: Path, raw: bytes) -> Account:
        told: dict[str, Any] = json.loads(raw)
        if told.pop("check") != _check(told):
            raise ValueError("it is not as it was written")
        counts = [told[name] for name in ("reserved", "newest", "forgotten", "forgotten_files")]
        if not all(type(count) is int and 0 <= count < _HIGHEST for count in counts):
            raise ValueError("no counts")
        tally = Tally.of_rows(told["folded"].items())
        return cls(folder, tally, [str(name) for name in told["gone"]], *counts)

    def write(self) -> None:
        """Durable on return. OSError when the disk takes nothing."""
        told: dict[str, Any] = {
            "folded": dict(self.folded.rows()),
            "gone": self.gone,
            "reserved": self.reserved,
            "newest": self.newest,
            "forgotten": self.forgotten,
            "forgotten_files": self.forgotten_files,
        }
        text = json.dumps({**told, "check": _check(told)}).encode()
        write_durably(self.folder / COPY, text)
        write_durably(self.folder / NAME, text)

    def fold(self, name: str, tally: Tally) -> None:
        """Take over the counts of a file that is going to be deleted."""
        self.folded.last += tally.last - tally.first + 1
        self.folded.sent += tally.sent
        self.folded.rejected += tally.rejected
        self.folded.dropped += tally.dropped
        for measurement, made in tally.made.items():
            self.folded.made[measurement] = self.folded.made.get(measurement, 0) + made
        self.gone.append(name)


def _check(told: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(told, sort_keys=True).encode())
