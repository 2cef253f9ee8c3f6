"""When the radio's events begin a paired run."""

from __future__ import annotations

import time

from tandem.app.config import Config
from tandem.app.pairs import Pairs
from tandem.app.plan import wish_of

STARTING = ("mobility_start", "signal_drop", "handover")
"""Events that begin a paired run: the start of mobility, and later on the move whatever shows that the network changed. The paper's
collector takes every change of 6 dB or more for a start of mobility and begins a transfer when none is under way."""


class PairStart:
    """As ``[runs]`` has it: ``on_mobility_start``, and ``minimum_gap_s`` between two pairs."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._begun_s: float | None = None

    def noticed(self, kind: str, pairs: Pairs) -> None:
        """An event on the move while no campaign says what is measured."""
        pairing, now = self._config.runs.on_mobility_start, time.monotonic()
        if kind not in STARTING or pairing == "off":
            return
        if self._begun_s is not None and now - self._begun_s < self._config.runs.minimum_gap_s:
            return
        if pairs.begin(wish_of(self._config, pairing, "mobility_start")) is not None:
            self._begun_s = now
