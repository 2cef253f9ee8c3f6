"""Wires the indicator: the summary out of what the collector's parts know, its beat, and what the status tells of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tandem.app.config import Config
from tandem.indicator.choice import Phase, Situation, choose, holding
from tandem.indicator.lamp import Lamp
from tandem.indicator.player import Player
from tandem.schema.status_led import LedState

_SOON_S = 1.0
"""The summary is made no more often than that, however often the collector's thread turns."""


class Since:
    """Since when something has been so without a break. Times are CLOCK_MONOTONIC ns."""

    def __init__(self) -> None:
        self._since_ns: int | None = None

    def look(self, now_ns: int, *, so: bool) -> float | None:
        """For how many seconds; None when it is not so."""
        if not so:
            self._since_ns = None
            return None
        if self._since_ns is None:
            self._since_ns = now_ns
        return (now_ns - self._since_ns) / 1e9


class Summary:
    """From ``answering.Answering.brief`` to a situation, with what needs a memory. Pure but for that."""

    def __init__(self) -> None:
        self._gone: dict[str, Since] = {}
        self._nowhere = Since()

    def of(self, brief: Mapping[str, Any], now_ns: int) -> Situation:
        """How the collector does now."""
        gone = [
            self._gone.setdefault(path, Since()).look(now_ns, so=modem.get("state") in ("lost", "recovering"))
            for path, modem in brief["modem_health"].items()
        ]
        paths = brief["paths"].values()
        health = brief["health"] or {}
        return Situation(
            "running",
            undervoltage="undervoltage" in brief["alarms"],
            disk_low="disk_low" in brief["alarms"],
            modem_gone_s=max((s for s in gone if s is not None), default=None),
            no_network_s=self._nowhere.look(now_ns, so=all(p.get("state") != "up" for p in paths)),
            unsent_s=health.get("spool_oldest_s"),
            measuring=bool(brief["measuring"]),
        )


class Indicating:
    """``beat`` comes from the collector's own thread; what it has not told for too long is shown as frozen. Without ``[status_led]``
    nothing is lit, and the status tells the state all the same."""

    def __init__(self, config: Config, monotonic_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._monotonic_ns, self._summary = monotonic_ns, Summary()
        self._situation, self._beat_ns = Situation("starting"), monotonic_ns()
        self._lamp = None if config.status_led is None else Lamp(config.status_led.leds)
        self._player = None if self._lamp is None else Player(self._lamp, self.state)

    def start(self) -> None:
        """The collector starts."""
        if self._player is not None:
            self._player.start()

    def beat(self, brief: Callable[[], Mapping[str, Any]]) -> None:
        """The collector's thread turns; ``brief`` is asked at most once a second."""
        now_ns = self._monotonic_ns()
        if self._situation.phase == "running" and now_ns - self._beat_ns < _SOON_S * 1e9:
            return
        before = self.state()
        self._situation, self._beat_ns = self._summary.of(brief(), now_ns), now_ns
        self._changed(before)

    def stopping(self) -> None:
        """The collector ends its work."""
        self._turn("stopping")

    def close(self) -> None:
        """It has ended: the light stays steady."""
        self._turn("ended")
        if self._player is not None:
            self._player.close()

    def state(self) -> LedState:
        """What is to be shown now. From any thread."""
        return choose(self._now())

    def status(self) -> dict[str, Any]:
        """For the status object. From any thread."""
        states = holding(self._now())
        return {
            "state": states[0].name,
            "means": states[0].means,
            "do": states[0].do,
            "holding": [state.name for state in states],
            "led": self._player is not None and self._player.playing,
            "led_failures": None if self._lamp is None else self._lamp.failures,
            "led_trouble": None if self._lamp is None else self._lamp.trouble,
        }

    def _now(self) -> Situation:
        told = self._situation
        if told.phase != "running":
            return told
        return replace(told, beat_age_s=(self._monotonic_ns() - self._beat_ns) / 1e9)

    def _turn(self, phase: Phase) -> None:
        before = self.state()
        self._situation = Situation(phase)
        self._changed(before)

    def _changed(self, before: LedState) -> None:
        if self._player is not None and self.state() is not before:
            self._player.wake()
