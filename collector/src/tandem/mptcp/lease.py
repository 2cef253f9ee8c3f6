"""An interface's address kept by DHCP: what to ask, when, and what to make of the answers. Pure: times and answers in.

The address that there is (another client got it, before the interface was put behind a NAT) is asked for at once, since how long it
holds is not known. Until a server says something else it stays: where nobody answers, it may have been set by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tandem.mptcp.dhcp import Answer, ask, discover

PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""From one question to the next without an answer; the last repeats."""
KEEPING = 2
"""After so many questions for the same address, any address is asked for: a server that does not know it may keep silent."""
LONGEST_S = 300.0
"""An address is asked for again after half of its time, at the latest after this: a modem that gives another one does not say so."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a server gave."""

    address: str
    prefix: int
    router: str | None


class Lease:
    """For one interface. ``hardware``: its MAC, 6 bytes; ``address``: what it has; ``number``: makes transaction numbers."""

    def __init__(self, hardware: bytes, address: str | None, now_s: float, number: Callable[[], int]) -> None:
        self._hardware, self._number = hardware, number
        self._address = address
        self._offer: Answer | None = None
        self._transaction = number()
        self._asked = 0
        self.due_s = now_s
        """When ``question`` is to be asked next; CLOCK_MONOTONIC seconds."""

    def again(self, now_s: float) -> None:
        """The link was away: whoever is there now is asked at once."""
        self._begin(now_s)

    def _begin(self, due_s: float) -> None:
        self._transaction, self._asked, self._offer, self.due_s = self._number(), 0, None, due_s

    def question(self, now_s: float) -> bytes:
        """What to send now; sets when to ask again."""
        self.due_s = now_s + PAUSES_S[min(self._asked, len(PAUSES_S) - 1)]
        self._asked += 1
        if self._offer is not None:
            offer, self._offer = self._offer, None  # one question for it; without an answer from the beginning
            return ask(self._transaction, self._hardware, offer.address, offer.server)
        if self._address is not None and self._asked <= KEEPING:
            return ask(self._transaction, self._hardware, self._address, None)
        return discover(self._transaction, self._hardware)

    def take(self, answer: Answer, now_s: float) -> Given | None:
        """What is given from now on; None while nothing is, or by an answer to somebody else."""
        if (answer.transaction, answer.hardware) != (self._transaction, self._hardware):
            return None
        if answer.kind == "offer":
            if answer.server is not None:
                self._offer, self.due_s = answer, now_s
            return None
        if answer.kind == "refused":
            self._address = None
            self._begin(now_s)
            return None
        half_s = answer.renew_s or (answer.lease_s or 2 * LONGEST_S) / 2
        self._address = answer.address
        self._begin(now_s + min(LONGEST_S, max(PAUSES_S[0], half_s)))
        return Given(answer.address, answer.prefix, answer.router)
