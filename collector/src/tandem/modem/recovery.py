"""When to do what to a modem that does not answer, or refuses to: the ladder, as a pure state machine over polls and time.

Nothing is done here. ``RecoveryStateMachine`` is told of polls and of the time, says which step is due for which modem, and is told how it
went. One modem at a time: modems on one powered hub share its fate, and a probe should keep one network while it mends the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tandem.modem.reset import ALL_STEPS, AT, CFUN, POWER, REBOOT, SESSION, STEPS, USB

Sickness = Literal["silent", "refusing"]
"""``refusing``: a web server that answers every poll with an error that starting it anew may mend."""
Kind = Literal["recovery_step", "recovered", "recovery_gave_up"]

PROVE_S = {AT: 10.0, SESSION: 10.0, CFUN: 30.0, REBOOT: 60.0, USB: 45.0, POWER: 60.0}
"""How long a step has to show that it helped: modems need so long to be back (facts of the field: 20 s for a reboot, and registering)."""

FIRST_BACK_OFF_S = 5.0
"""Before the second step; twice as long before each later one."""

RELAPSE_S = 900.0
"""A modem that falls sick again so soon begins above the step that last seemed to help."""

INTERRUPTING = (CFUN, REBOOT, USB, POWER)
"""Steps that end the data connections of the modem's path: never done while something is measured."""


@dataclass(frozen=True)
class RecoverySettings:
    """``after_s``: how long a modem must have been sick. ``steps``: of ``ALL_STEPS``, in that order. ``longest_back_off_s``: cap of the
    waits between steps, and the wait after giving up."""

    enabled: bool = True
    after_s: float = 60.0
    steps: tuple[str, ...] = ALL_STEPS
    longest_back_off_s: float = 3600.0
    first_back_off_s: float = FIRST_BACK_OFF_S
    prove_s: Mapping[str, float] = field(default_factory=lambda: PROVE_S)


@dataclass(frozen=True)
class Due:
    """Do ``step`` to the modem of ``path`` now, then call ``RecoveryStateMachine.did``."""

    path: str
    step: str


@dataclass(frozen=True)
class RecoveryEvent:
    """An event for the records. ``took_ms``: of the step, or of the whole recovery."""

    kind: Kind
    path: str
    step: str | None
    took_ms: float | None
    detail: str


@dataclass
class _Modem:
    """``steps``: that its kind has and that are wanted. ``step``: index of the one under way or last done in this recovery;
    ``waits_until_s``: of its proof or the back-off."""

    steps: tuple[str, ...]
    sick: Sickness | None = None
    since_s: float = 0.0
    locked: bool = False
    phase: Literal["well", "sick", "acting", "proving", "waiting", "gave_up"] = "well"
    step: int = -1
    began_s: float = 0.0
    waits_until_s: float = 0.0
    relapsed: bool = False
    helped: int = -1
    helped_s: float | None = None
    tried: list[str] = field(default_factory=list)


class RecoveryStateMachine:
    """All modems of a probe. Times are seconds on one monotonic clock. ``kinds``: the steps of those that have other ones than
    ``STEPS``, in order."""

    def __init__(
        self, paths: Iterable[str], settings: RecoverySettings, kinds: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self._settings = settings
        has = kinds or {}
        self._modems = {path: _Modem(tuple(s for s in has.get(path, STEPS) if s in settings.steps)) for path in paths}

    @property
    def busy(self) -> str | None:
        """The path whose modem is being recovered."""
        return next((p for p, m in self._modems.items() if m.phase in ("acting", "proving", "waiting")), None)

    def polled(self, path: str, sick: Sickness | None, now_s: float, *, locked: bool = False) -> list[RecoveryEvent]:
        """One poll: well (None) or sick, and whether the SIM asks for a PIN, which a modem is left alone with."""
        modem = self._modems[path]
        modem.locked = locked
        if locked:
            if modem.phase in ("proving", "waiting"):
                modem.phase = "sick"
            modem.sick = None
            return []
        if sick is None:
            return self._well(path, modem, now_s)
        if modem.sick is None:
            modem.sick, modem.since_s = sick, now_s
        modem.sick = sick
        if modem.phase == "well":
            modem.phase = "sick"
        return []

    def due(
        self, now_s: float, may_interrupt: Callable[[], bool] = lambda: True
    ) -> tuple[Due | None, list[RecoveryEvent]]:
        """What is to be done now, if anything, and what is to be reported. After a Due nothing is due until ``did``. ``may_interrupt`` is
        asked before a step of ``INTERRUPTING``, which waits while it says no."""
        events: list[RecoveryEvent] = []
        if not self._settings.enabled:
            return None, events
        for path, modem in self._modems.items():
            if modem.locked or modem.sick is None or modem.phase in ("well", "acting"):
                continue
            if modem.phase in ("sick", "gave_up"):
                if self.busy is not None or not self._ripe(modem, now_s):
                    continue
                self._begin(modem, now_s)
            elif now_s < modem.waits_until_s:
                continue
            elif modem.phase == "proving":
                modem.phase = "waiting"
                modem.waits_until_s = now_s + self._back_off_s(modem)
                if self._next(modem) is not None:
                    continue
            step = self._next(modem)
            if step is None:
                events.append(self._give_up(path, modem, now_s))
                continue
            if modem.steps[step] in INTERRUPTING and not may_interrupt():
                continue
            modem.phase, modem.step = "acting", step
            return Due(path, modem.steps[step]), events
        return None, events

    def did(
        self, due: Due, how: Literal["done", "failed", "skipped", "locked"], detail: str, took_s: float, now_s: float
    ) -> list[RecoveryEvent]:
        """How the step went: ``done`` and ``failed`` get their time to prove themselves (a command may work though its answer was
        lost), ``skipped`` is none and the next follows at once, ``locked`` ends the recovery."""
        modem = self._modems[due.path]
        events = [
            RecoveryEvent(
                "recovery_step", due.path, due.step, took_s * 1000, detail if how == "done" else f"{how}: {detail}"
            )
        ]
        if modem.phase != "acting":
            return events  # it was well again before the step was over
        if how == "locked":
            modem.locked, modem.phase, modem.sick = True, "sick", None
            return events
        if how == "skipped":
            modem.phase, modem.waits_until_s = "waiting", now_s
            return events
        modem.tried.append(due.step)
        modem.phase = "proving"
        modem.waits_until_s = now_s + self._settings.prove_s[due.step]
        return events

    # --- inside --------------------------------------------------------------------------------------------------------

    def _well(self, path: str, modem: _Modem, now_s: float) -> list[RecoveryEvent]:
        was, modem.sick = modem.phase, None
        if was == "acting":
            return []  # the poll began before the step; the next one counts
        modem.phase = "well"
        if was in ("well", "sick"):
            return []
        took_ms = (now_s - modem.began_s) * 1000
        if was == "gave_up" or not modem.tried:
            return [RecoveryEvent("recovered", path, None, took_ms, "by itself")]
        modem.helped, modem.helped_s = modem.step, now_s
        return [RecoveryEvent("recovered", path, modem.tried[-1], took_ms, f"after {', '.join(modem.tried)}")]

    def _ripe(self, modem: _Modem, now_s: float) -> bool:
        if modem.phase == "gave_up":
            return now_s >= modem.waits_until_s
        return now_s - modem.since_s >= self._settings.after_s

    def _begin(self, modem: _Modem, now_s: float) -> None:
        modem.relapsed = modem.phase == "sick" and modem.helped_s is not None and now_s - modem.helped_s < RELAPSE_S
        modem.step = modem.helped if modem.relapsed else -1
        modem.began_s = now_s
        modem.tried = []

    def _next(self, modem: _Modem) -> int | None:
        return modem.step + 1 if modem.step + 1 < len(modem.steps) else None

    def _back_off_s(self, modem: _Modem) -> float:
        return float(
            min(self._settings.first_back_off_s * 2 ** max(0, len(modem.tried) - 1), self._settings.longest_back_off_s)
        )

    def _give_up(self, path: str, modem: _Modem, now_s: float) -> RecoveryEvent:
        modem.phase = "gave_up"
        modem.waits_until_s = now_s + self._settings.longest_back_off_s
        if modem.tried:
            tried = f"{', '.join(modem.tried)} did not help"
        else:
            tried = "what helped did so for a while only" if modem.relapsed else "no step can be done here"
        detail = f"{modem.sick} for {now_s - modem.since_s:.0f} s; {tried}; tried again in {self._settings.longest_back_off_s:.0f} s"
        return RecoveryEvent("recovery_gave_up", path, None, (now_s - modem.began_s) * 1000, detail)
