"""How many records went where. ``made`` = ``sent`` + ``pending`` + ``rejected`` + ``dropped``, always."""

from __future__ import annotations

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
        """As name and value, for a table."""
        fixed = [(name, getattr(self, name)) for name in ("first", "last", "sent", "rejected", "dropped")]
        return fixed + [(f"made.{name}", value) for name, value in self.made.items()]

    @classmethod
    def of_rows(cls, rows: list[tuple[str, int]]) -> Tally:
        """The inverse of ``rows``; KeyError when one is missing."""
        values = dict(rows)
        made = {name.removeprefix("made."): value for name, value in values.items() if name.startswith("made.")}
        return cls(values["first"], values["last"], values["sent"], values["rejected"], values["dropped"], made)

    def copy(self) -> Tally:
        """An independent copy: a commit that fails must leave the counts as they were."""
        return Tally(self.first, self.last, self.sent, self.rejected, self.dropped, dict(self.made))
