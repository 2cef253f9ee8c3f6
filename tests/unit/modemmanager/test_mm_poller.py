"""The poller's thread at ModemManager: what a bearer was given is told; a connection is kept up where another poller measures."""

import threading
from pathlib import Path
from typing import Any

from fake_bus import DEVICE, PATH, FakeBus, bus_of

from tandem.modem.mm_bus import MODEM, MODEM_3GPP, Call
from tandem.modem.mm_connection import BearerGiven, ConnectionSettings
from tandem.modem.mm_poller import ManagedPoller
from tandem.modem.poll import Poll

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


def test_what_a_bearer_was_given_is_told_and_that_it_was_taken(tmp_path: Path) -> None:
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


def test_a_connection_is_kept_up_without_asking_for_what_the_modem_itself_is_asked_for(tmp_path: Path) -> None:
    bus, polls, changed = FakeBus(), list[Poll](), threading.Condition()
    bus.properties[MODEM]["State"] = 3  # disabled: also to be switched on

    def made(poll: Poll) -> None:
        with changed:
            polls.append(poll)
            bus.properties[MODEM]["State"] = 8
            changed.notify_all()

    settings = ConnectionSettings("web.example", tmp_path)
    keeper = ManagedPoller("a", None, DEVICE, 0.05, made, settings, open_bus=lambda _: bus_of(bus), measuring=False)
    keeper.start()
    try:
        with changed:
            assert changed.wait_for(lambda: bus.asked("Connect") and len(polls) > 5, 60), polls
    finally:
        keeper.stop(timeout=60)
    assert {poll.failure for poll in polls} == {None}
    assert {call.body[0] for call in bus.asked("GetAll") if call.path == PATH} == {MODEM, MODEM_3GPP}
    assert {call.member for call in bus.calls} == {"GetManagedObjects", "GetAll", "Enable", "Connect"}
    assert bus.asked("Connect")[0].body[0]["apn"] == ("s", "web.example")
