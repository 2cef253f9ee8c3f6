"""What a connected bearer was given is told by the poller's thread, and that it was taken away."""

import threading
from pathlib import Path
from typing import Any

from fake_bus import DEVICE, FakeBus, bus_of

from tandem.modem.mm_bus import MODEM, Call
from tandem.modem.mm_connection import BearerGiven, ConnectionSettings
from tandem.modem.mm_poller import ManagedPoller

BEARER = {
    "Interface": "wwan0",
    "Ip4Config": {"method": 2, "address": "10.9.8.7", "prefix": 30, "gateway": "10.9.8.6"},
    "Ip6Config": {"method": 0},
}


class ConnectedBus(FakeBus):
    def __init__(self) -> None:
        super().__init__()
        self.properties[MODEM] |= {"State": 11, "Bearers": ["/b/1"]}

    def _answer(self, call: Call) -> Any:
        return BEARER if call.path == "/b/1" else super()._answer(call)


def test_the_poller_tells_what_was_given_and_when_it_was_taken(tmp_path: Path) -> None:
    bus, told, changed = ConnectedBus(), list[BearerGiven | None](), threading.Condition()

    def on_given(given: BearerGiven | None) -> None:
        with changed:
            told.append(given)
            changed.notify_all()

    settings = ConnectionSettings("internet", tmp_path)
    poller = ManagedPoller(
        "a", None, DEVICE, 0.2, lambda _: None, settings, open_bus=lambda _: bus_of(bus), on_given=on_given
    )
    poller.start()
    try:
        with changed:
            assert changed.wait_for(lambda: told and told[-1] is not None, 60)
            given = told[-1]
            bus.properties[MODEM] |= {"State": 8, "Bearers": []}
            assert changed.wait_for(lambda: told[-1] is None, 60)
    finally:
        poller.stop(timeout=60)
    assert given is not None
    assert (given.interface, given.addresses[0].address, given.addresses[0].method) == ("wwan0", "10.9.8.7", "static")
