"""How many records went where. ``made`` = ``sent`` + ``pending`` + ``rejected`` + ``dropped``, always."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts since the spool was made, over all restarts.

    ``made``: records numbered; ``sent``: acknowledged by the gateway; ``rejected``: in quarantine; ``dropped``: given up for
    want of room or lost by damage; ``by_measurement``: those of ``made`` whose measurement is known.
    """

    made: int = 0
    sent: int = 0
    rejected: int = 0
    dropped: int = 0
    by_measurement: dict[str, int] = field(default_factory=dict)
    forgotten: int = 0
    """Of ``rejected``: those that are no longer in quarantine, for want of room there. Damaged files too old to be kept count apart."""
    forgotten_files: int = 0

    @property
    def pending(self) -> int:
        """Not yet settled."""
        return self.made - self.sent - self.rejected - self.dropped


@dataclass(slots=True)
class Tally:
    """The counts of one file, or of all files that are gone; ``first`` and ``last``: the numbers it was given (last is
    ``first`` − 1 while there are none)."""

    first: int
    last: int
    sent: int = 0
    rejected: int = 0
    dropped: int = 0
    made: dict[str, int] = field(default_factory=dict)

    @property
    def pending(self) -> int:
        """Not yet settled."""
        return self.last - self.first + 1 - self.sent - self.rejected - self.dropped

    def rows(self) -> list[tuple[str, int]]:
        """As name and value, for a table, with a checksum: a changed digit is still a number."""
        fixed = [(name, getattr(self, name)) for name in ("first", "last", "sent", "rejected", "dropped")]
        rows = fixed + [(f"made.{name}", value) for name, value in self.made.items()]
        return [*rows, ("check", _check(rows))]

    @classmethod
    def of_rows(cls, rows: Iterable[tuple[object, object]]) -> Tally:
        """The inverse of ``rows``; ValueError when they are not as they were written."""
        values: dict[str, int] = {}
        for name, value in rows:
            if not isinstance(name, str) or type(value) is not int:
                raise ValueError(f"{name!r}: {value!r} is no count")
            values[name] = value
        check = values.pop("check", None)
        if check != _check(values.items()):
            raise ValueError("counts that are not as they were written")
        made = {name.removeprefix("made."): value for name, value in values.items() if name.startswith("made.")}
        try:
            return cls(values["first"], values["last"], values["sent"], values["rejected"], values["dropped"], made)
        except KeyError as missing:
            raise ValueError(f"count {missing} is not there") from missing

    def hold(self, records: int) -> int:
        """Make the counts such that ``records`` are pending, whatever they said before; how many of them had to be dropped for it.

        Fewer than were thought to be: the rest is lost. More: rows whose removal was lost; they are sent again.
        """
        lost = max(0, self.pending - records)
        self.dropped += lost
        for name in ("sent", "rejected", "dropped"):
            count = getattr(self, name)
            setattr(self, name, count - min(count, max(0, records - self.pending)))
        return lost

    def copy(self) -> Tally:
        """An independent copy: a commit that fails must leave the counts as they were."""
        return Tally(self.first, self.last, self.sent, self.rejected, self.dropped, dict(self.made))


def _check(rows: Iterable[tuple[str, int]]) -> int:
    return zlib.crc32(repr(sorted(rows)).encode())
