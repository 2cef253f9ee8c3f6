"""Wires the indicator: the summary out of what the collector's parts know, its beat, and what the status tells of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tandem.app.config import Config
from tandem.app.config_schema import EPaperConfig
from tandem.indicator import e_paper as paper
from tandem.indicator.e_paper import KernelBus, Showing, show
from tandem.indicator.lamp import Lamp, Phase, Player, Situation, choose, holding
from tandem.schema.status_led import OFF, LedState

_SOON_S = 1.0
"""The summary is made no more often than that, however often the collector's thread turns."""


class Summary:
    """From ``StatusService.brief`` to a situation, with what needs a memory: since when something has been so without a break."""

    def __init__(self) -> None:
        self._since_ns: dict[str, int] = {}

    def of(self, brief: Mapping[str, Any], now_ns: int) -> Situation:
        """How the collector does now. Times are CLOCK_MONOTONIC ns."""
        gone = [
            self._for_s(f"modem {path}", now_ns, so=modem.get("state") in ("lost", "recovering"))
            for path, modem in brief["modem_health"].items()
        ]
        nowhere = all(path.get("state") != "up" for path in brief["paths"].values())
        health = brief["health"] or {}
        return Situation(
            "running",
            undervoltage="undervoltage" in brief["alarms"],
            disk_low="disk_low" in brief["alarms"],
            modem_gone_s=max((s for s in gone if s is not None), default=None),
            no_network_s=self._for_s("no network", now_ns, so=nowhere),
            unsent_s=health.get("spool_oldest_s"),
            measuring=bool(brief["measuring"]),
        )

    def _for_s(self, what: str, now_ns: int, *, so: bool) -> float | None:
        """For how many seconds; None when it is not so."""
        if so:
            return (now_ns - self._since_ns.setdefault(what, now_ns)) / 1e9
        self._since_ns.pop(what, None)
        return None


class IndicatorControl:
    """``beat`` comes from the collector's own thread; when it stays away, that is shown as frozen. Without ``[status_led]``
    nothing is lit, and the status tells the state all the same."""

    def __init__(
        self,
        config: Config,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        draw: Callable[[paper.Page], None] | None = None,
    ) -> None:
        """``draw``: onto the e-paper, instead of the panel of the configuration."""
        self._monotonic_ns, self._summary = monotonic_ns, Summary()
        self._situation, self._beat_ns = Situation("starting"), monotonic_ns()
        self._lamp = None if config.status_led is None else Lamp(config.status_led.leds)
        self._player = None if self._lamp is None else Player(self._lamp, self.state)
        self._paper = None if config.e_paper is None else Showing(draw or _panel(config.e_paper))
        self._words = (config.probe, "" if config.e_paper is None else config.e_paper.call or "")
        self._utc_ns: int | None = None
        self._sent: tuple[int, int | None] = (0, None)

    def start(self) -> None:
        if self._player is not None:
            self._player.start()
        if self._paper is not None:
            self._paper.start()
            self._paper.tell(self._page())

    def beat(self, brief: Callable[[], Mapping[str, Any]]) -> None:
        """The collector's thread turns; ``brief`` is asked at most once a second."""
        now_ns = self._monotonic_ns()
        if self._situation.phase == "running" and now_ns - self._beat_ns < _SOON_S * 1e9:
            return
        before = self.state()
        facts = brief()
        self._situation, self._beat_ns, self._utc_ns = self._summary.of(facts, now_ns), now_ns, facts["utc_ns"]
        if facts["sent"] > self._sent[0]:
            self._sent = (facts["sent"], self._utc_ns)
        self._changed(before)
        if self._paper is not None:
            self._paper.tell(self._page())

    def stopping(self) -> None:
        self._turn("stopping")

    def close(self) -> None:
        """It has ended: the light stays steady."""
        self._turn("ended")
        if self._player is not None:
            self._player.close()
        if self._paper is not None:
            self._paper.close(self._page())

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
            "paper_refreshes": None if self._paper is None else self._paper.refreshes,
            "paper_failures": None if self._paper is None else self._paper.failures,
            "paper_trouble": None if self._paper is None else self._paper.trouble,
        }

    def _now(self) -> Situation:
        situation = self._situation
        if situation.phase != "running":
            return situation
        return replace(situation, beat_age_s=(self._monotonic_ns() - self._beat_ns) / 1e9)

    def _page(self) -> paper.Page:
        """At the end it says that the kit is off: the panel keeps that without power."""
        state = OFF if self._situation.phase == "ended" else paper.shown(self.state())
        kit, call = self._words
        return paper.Page(kit, state, call, paper.reached(self._sent[1], self._utc_ns), paper.as_of(self._utc_ns))

    def _turn(self, phase: Phase) -> None:
        before = self.state()
        self._situation = Situation(phase)
        self._changed(before)

    def _changed(self, before: LedState) -> None:
        if self._player is not None and self.state() is not before:
            self._player.wake()


def _panel(config: EPaperConfig) -> Callable[[paper.Page], None]:
    def draw(page: paper.Page) -> None:
        with KernelBus(config.spi, config.gpio, config.data_command, config.reset, config.busy) as bus:
            show(bus, paper.drawn(page))

    return draw
