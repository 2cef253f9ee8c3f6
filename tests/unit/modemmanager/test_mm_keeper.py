"""A connection is kept up and nothing is measured, where the collector polls the modem by a port of its own."""

import threading
from pathlib import Path

from fake_bus import DEVICE, PATH, FakeBus, bus_of

from tandem.modem.mm_bus import MODEM, MODEM_3GPP
from tandem.modem.mm_connection import ConnectionSettings
from tandem.modem.mm_poller import ManagedPoller
from tandem.modem.poll import Poll


def test_it_connects_and_asks_for_nothing_that_the_modem_itself_is_asked_for(tmp_path: Path) -> None:
    bus, polls, changed = FakeBus(), list[Poll](), threading.Condition()
    bus.properties[MODEM]["State"] = 3  # disabled: also to be switched on

    def made(poll: Poll) -> None:
        with changed:
            polls.append(poll)
            bus.properties[MODEM]["State"] = 8
            changed.notify_all()

    states: list[str] = []
    keeper = ManagedPoller(
        "a", None, DEVICE, 0.05, made, ConnectionSettings("web.example", tmp_path), lambda state, _: states.append(state),
        open_bus=lambda _: bus_of(bus), measuring=False,
    )  # fmt: skip
    keeper.start()
    try:
        with changed:
            assert changed.wait_for(lambda: bus.asked("Connect") and len(polls) > 5, 60), states
    finally:
        keeper.stop(timeout=60)
    assert {poll.failure for poll in polls} == {None}
    assert {call.body[0] for call in bus.asked("GetAll") if call.path == PATH} == {MODEM, MODEM_3GPP}
    assert {call.member for call in bus.calls} == {"GetManagedObjects", "GetAll", "Enable", "Connect"}
    assert bus.asked("Connect")[0].body[0]["apn"] == ("s", "web.example")
