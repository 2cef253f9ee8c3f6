"""The ``clock`` record."""

from __future__ import annotations

from tandem.app.clock.clock import Clock
from tandem.schema.record import Record, Value

EVERY_NS = 60_000_000_000


class ClockRecords:
    """Used by one thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told_ns: int | None = None
        self._told: tuple[object, ...] | None = None

    def due(self, now_ns: int) -> list[Record]:
        """A record once a minute, and when somebody else vouches, or nobody any more."""
        state, said = self._clock.state(), self._clock.reading
        changed = tuple(state[name] for name in ("synchronised", "vouched", "source"))
        if self._told_ns is not None and now_ns - self._told_ns < EVERY_NS and changed == self._told:
            return []
        self._told_ns, self._told = now_ns, changed
        fields: dict[str, Value | None] = {
            name: state[name]
            for name in ("synchronised", "vouched", "source", "offset_ns", "error_ms", "age_s", "system_error_ms")
        }
        fields["steps"] = self._clock.stepped
        return [Record.make("clock", {}, {**fields, **({} if said is None else said.details)}, now_ns)]
