"""What became of each modem: usable, being recovered, or lost. Pure: polls and events in, fields of ``modem_health`` records out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from tandem.app.parts import PollLike
from tandem.app.recovering import sickness
from tandem.schema.metrics import MODEM_STATES
from tandem.schema.record import Record, Value

LOST_AFTER_S = 5.0
"""So long a modem may be sick before it counts as lost: a poll or two are missed on the move."""


@dataclass(slots=True)
class _Modem:
    since_ns: int
    state: Literal["usable", "recovering", "lost", "unknown"] = "unknown"
    driver: str | None = None
    sickness: str | None = None
    sick_ns: int | None = None
    ok: int = 0
    failed: int = 0
    period_ns: int = 0
    steps: int = 0
    step: str | None = None
    recoveries: int = 0

    def turn(self, state: Literal["usable", "recovering", "lost"], at_ns: int) -> None:
        """Into that state, since then; nothing when it is in it."""
        if self.state != state:
            self.state, self.since_ns = state, at_ns


class ModemStates:
    """Times are CLOCK_MONOTONIC ns. Used by one thread."""

    def __init__(self, paths: Iterable[str], now_ns: int) -> None:
        self._modems = {path: _Modem(now_ns, period_ns=now_ns) for path in paths}

    def polled(self, poll: PollLike) -> None:
        """One poll."""
        modem = self._modems.get(poll.path)
        if modem is None:
            return
        modem.driver = poll.driver or modem.driver
        modem.ok += poll.failure is None
        modem.failed += poll.failure is not None
        sick = sickness(poll)
        if sick is None:
            modem.recoveries += modem.state in ("recovering", "lost")
            modem.sick_ns = modem.sickness = None
            modem.turn("usable", poll.began_monotonic_ns)
            return
        modem.sickness = sick
        if modem.sick_ns is None:
            modem.sick_ns = poll.began_monotonic_ns
        if modem.state != "recovering" and poll.began_monotonic_ns - modem.sick_ns >= LOST_AFTER_S * 1e9:
            modem.turn("lost", modem.sick_ns)

    def noted(self, event: Record) -> None:
        """An event: those of the recovery ladder tell what is done."""
        modem = self._modems.get(event.tags.get("path", ""))
        kind = event.tags.get("kind")
        if modem is None or kind not in ("recovery_step", "recovery_gave_up"):
            return
        if kind == "recovery_step":
            modem.steps += 1
            modem.step = str(event.fields.get("step") or "") or None
        if modem.sick_ns is not None:  # not one that came back while the step was done
            modem.turn("recovering" if kind == "recovery_step" else "lost", event.monotonic_ns)

    def records(self, operators: Mapping[str, str | None], now_ns: int) -> list[Record]:
        """One for each modem; a new period begins."""
        made: list[Record] = []
        for path, modem in self._modems.items():
            fields: dict[str, Value | None] = {
                "state": modem.state,
                "state_code": MODEM_STATES.index(modem.state),
                "state_since_s": max(0, now_ns - modem.since_ns) / 1e9,
                "sickness": modem.sickness,
                "polls_ok": modem.ok,
                "polls_failed": modem.failed,
                "period_s": max(0, now_ns - modem.period_ns) / 1e9,
                "recovery_steps": modem.steps,
                "recovery_step": modem.step,
                "recoveries": modem.recoveries,
            }
            tags = {"path": path, "operator": operators.get(path), "driver": modem.driver}
            made.append(Record.make("modem_health", tags, fields, now_ns))
            modem.ok, modem.failed, modem.period_ns = 0, 0, now_ns
        return made

    def told(self, now_ns: int) -> dict[str, dict[str, Value | None]]:
        """By path, for the status."""
        return {
            path: {
                "state": modem.state,
                "state_since_s": round(max(0, now_ns - modem.since_ns) / 1e9, 1),
                "sickness": modem.sickness,
                "recovery_steps": modem.steps,
                "recovery_step": modem.step,
            }
            for path, modem in self._modems.items()
        }
