"""When the radio's events begin a paired run, and when the SIMs' limits of a day let none begin."""

from __future__ import annotations

import logging
import time

from tandem.app.account import Account
from tandem.app.campaign.estimate import ASSUMED_BIT_PER_S, ASSUMED_RTT_MS, RULES
from tandem.app.config import Config
from tandem.app.pairs import Pairs
from tandem.app.plan import EXPERIMENT, Plan, wish_of

log = logging.getLogger(__name__)

STARTING = ("mobility_start", "signal_drop", "handover")
"""Events that begin a paired run: the start of mobility, and later on the move whatever shows that the network changed. The paper's
collector takes every change of 6 dB or more for a start of mobility and begins a transfer when none is under way."""

_TRIGGER = "mobility_start"


class PairStart:
    """As ``[runs]`` has it: ``on_mobility_start``, and ``minimum_gap_s`` between two pairs; within what the SIMs may carry a day."""

    def __init__(self, config: Config, account: Account) -> None:
        self._config, self._account = config, account
        self.limits = {path.name: path.day_limit_bytes for path in config.paths}
        runs = config.runs
        asked = {"pairing": runs.on_mobility_start, "seconds": runs.seconds, "bytes": runs.bytes, "pause_s": 0.0}
        rates = dict.fromkeys(self.limits, ASSUMED_BIT_PER_S)
        self._takes = dict(RULES[EXPERIMENT](asked, rates, ASSUMED_RTT_MS / 1000).bytes_by_role)
        self._before: dict[str, int] = {}
        self._begun_s: float | None = None

    def noticed(self, kind: str, pairs: Pairs) -> None:
        """An event on the move while no campaign says what is measured."""
        pairing, now = self._config.runs.on_mobility_start, time.monotonic()
        if kind not in STARTING or pairing == "off":
            return
        if self._begun_s is not None and now - self._begun_s < self._config.runs.minimum_gap_s:
            return
        if (held := self.held()) is not None:
            log.info("no pair begins: %s", held)
        elif pairs.begin(wish_of(self._config, pairing, _TRIGGER)) is not None:
            self._begun_s = now

    def held(self) -> str | None:
        """Why no pair would begin now, as of the account's last ``update``; None when one may, or none is wanted. From any thread."""
        if self._config.runs.on_mobility_start == "off":
            return None
        for path in self._config.paths:
            left, takes = self._account.left_today(path), self._takes[path.name]
            if left is None or left >= takes:
                continue
            if path.day_limit_bytes == 0:
                return f"day_bytes of path {path.name} is 0"
            return (
                f"until 00:00 UTC: path {path.name} has {left / 1e6:.0f} MB of its SIM's limits left, a pair takes {takes / 1e6:.0f} MB; "
                "hint: day_bytes of [[path]], within its plan"
            )
        return None

    def started(self, plan: Plan) -> None:
        """A pair begins, from its thread."""
        self._before = self._carried(plan)

    def ended(self, plan: Plan) -> None:
        """It ended: the next one may take as much."""
        after = self._carried(plan)
        if plan.wish.trigger == _TRIGGER:
            self._takes |= {path: max(self._takes[path], after[path] - self._before[path]) for path in after}

    def _carried(self, plan: Plan) -> dict[str, int]:
        """By path, all bytes that the account knows now."""
        try:
            self._account.update()
        except OSError as error:
            log.error("what the pair takes is not counted now: %s", error.strerror or error)
        return {path: sum(self._account.days(path).values()) for path in plan.wish.paths}
