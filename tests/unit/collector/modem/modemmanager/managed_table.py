"""A modem of ModemManager at a fake bus and clock, and its connection."""

from pathlib import Path
from typing import Any

from support.fake_bus import FakeBus
from tandem.modem.mm_modem import ManagedModem
from tandem.modem.mm_poller import Connection, ConnectionSettings


class Table:
    """A modem at a fake bus and clock, and its connection."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.bus, self.now_s, self.opened = FakeBus(), 0.0, 0
        self.told: list[tuple[str, str]] = []
        self.folder = folder
        self.modem = ManagedModem("1-1.2", self._open, lambda: self.now_s)
        self.settings = ConnectionSettings("internet", folder / "tried", **settings)
        self.connection = self.connected()

    def _open(self) -> Any:
        self.opened += 1
        return self.bus

    def connected(self) -> Connection:
        """A connection that remembers nothing but what is on disk."""
        return Connection(
            self.settings, self.modem, lambda state, detail: self.told.append((state, detail)), lambda: self.now_s
        )

    def poll(self, times: int = 1) -> Any:
        for _ in range(times):
            self.now_s += 1
            answer = self.modem.poll(0.0)  # what the bus does not answer at once, it never does
            self.connection.update(answer.path, answer.properties)
        return answer

    @property
    def state(self) -> str | None:
        return self.connection.state
