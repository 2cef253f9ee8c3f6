"""``account.json``: what the spool must remember beyond the life of its daily files.

``folded``: the counts of files that are gone; ``gone``: files whose counts are in ``folded`` already but which may still lie
there after a crash; ``reserved``: no number above it was ever given out, so that a file whose counts are unreadable cannot
make a number be used twice.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandem.spool.counts import Tally
from tandem.spool.durable import write_durably

RESERVE = 10_000
"""Numbers reserved at once: one small file is written for so many records."""


@dataclass(slots=True)
class Account:
    """See the module. ``folded.first`` is 1; ``folded.last`` counts the records of all files gone (it is no number)."""

    path: Path
    folded: Tally = field(default_factory=lambda: Tally(1, 0))
    gone: list[str] = field(default_factory=list)
    reserved: int = 0

    @classmethod
    def read(cls, path: Path) -> Account:
        """The account in ``path``, a new one where there is none. ValueError when it is damaged."""
        try:
            found = json.loads(path.read_bytes())
        except FileNotFoundError:
            return cls(path)
        try:
            folded: dict[str, Any] = found["folded"]
            tally = Tally.of_rows([(str(k), int(v)) for k, v in folded.items()])
            return cls(path, tally, [str(name) for name in found["gone"]], int(found["reserved"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is no account: {error}") from error

    def write(self) -> None:
        """Durable on return. OSError when the disk takes nothing."""
        text = json.dumps({"folded": dict(self.folded.rows()), "gone": self.gone, "reserved": self.reserved})
        write_durably(self.path, text.encode())

    def fold(self, name: str, tally: Tally) -> None:
        """Take over the counts of a file that is going to be deleted."""
        self.folded.last += tally.last - tally.first + 1
        self.folded.sent += tally.sent
        self.folded.rejected += tally.rejected
        self.folded.dropped += tally.dropped
        for measurement, made in tally.made.items():
            self.folded.made[measurement] = self.folded.made.get(measurement, 0) + made
        self.gone.append(name)
