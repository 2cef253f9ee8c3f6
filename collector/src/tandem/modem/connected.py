"""A modem with an AT port to spare: the collector polls it there, and ModemManager, which has the other port, keeps it connected."""

from __future__ import annotations

from tandem.modem.card import Card
from tandem.modem.mm_poller import ManagedPoller
from tandem.modem.poller import Poller

KEEP_S = 2.0
"""How often the connection is looked after: an operator who takes it away is noticed within so long."""


class ConnectedPoller:
    """Two threads of one path. ``poller`` makes its records and does the steps of the recovery ladder; ``keeper`` has a connection
    and measures nothing, so that what it asks of ModemManager costs the modem nothing."""

    def __init__(self, poller: Poller, keeper: ManagedPoller) -> None:
        self._poller, self._keeper = poller, keeper

    def start(self) -> None:
        """Begin both. Returns at once."""
        self._poller.start()
        self._keeper.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End both, also when one has not ended within ``timeout`` seconds, which is a TimeoutError."""
        try:
            self._poller.stop(timeout)
        finally:
            self._keeper.stop(timeout)

    def reset(self, step: str, timeout: float) -> str:
        """See ``poll_thread.PollThread``: by the collector's own port."""
        return self._poller.reset(step, timeout)

    def card(self, timeout: float) -> Card | None:
        """See ``poll_thread.PollThread``: by the collector's own port."""
        return self._poller.card(timeout)
