"""A modem with an AT port to spare: polled there, and kept connected by ModemManager."""

import threading
from pathlib import Path

import pytest
from good_config import GOOD

from tandem.app.config import parse
from tandem.app.parts import PathChange
from tandem.app.real_modems import ModemActions, OnceUntilChanged, modem_poller
from tandem.modem.connected import ConnectedPoller
from tandem.modem.poll import NO_ANSWER, PORT_LOST, Poll

PLACE = 'usb = "9-9.9:1.3"\n[path.modem.connection]\napn = "internet"'


def poll(failure: str | None) -> Poll:
    return Poll("b", None, "modemmanager", None, 0, 0, 1, None, failure, False, 0)


def test_its_records_and_its_connections_state_are_both_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path}/none")
    path = parse(GOOD.replace('port = "/dev/ttyUSB6"', PLACE), tmp_path / "config.toml").paths[1]
    told, changed = list[object](), threading.Condition()

    def put(thing: object) -> None:
        with changed:
            told.append(thing)
            changed.notify_all()

    poller = modem_poller(path, 0.1, put, lambda _path: None)
    assert isinstance(poller, ConnectedPoller)
    poller.start()
    try:
        with changed:
            assert changed.wait_for(lambda: len([one for one in told if isinstance(one, Poll)]) > 2, 60)
            assert changed.wait_for(lambda: any(isinstance(one, PathChange) for one in told), 60)
    finally:
        poller.stop(60)
    assert {one.failure for one in told if isinstance(one, Poll)} == {PORT_LOST}, "one poller makes records"
    changes = [one for one in told if isinstance(one, PathChange)]
    assert [(one.kind, one.path, one.detail) for one in changes] == [
        ("path_state", "b", "not_managed: ModemManager does not answer")
    ]
    ModemActions(path, poller).seen()


def test_what_modemmanager_lacks_is_told_once_at_each_change() -> None:
    told: list[str] = []
    once = OnceUntilChanged("b", lambda change: told.append(change.detail))
    for failure in (None, PORT_LOST, PORT_LOST, None, PORT_LOST, NO_ANSWER):
        once.polled(poll(failure))
    assert [one.partition(";")[0] for one in told] == [
        "not_managed: ModemManager has no such modem",
        "not_managed: ModemManager has no such modem",
        "not_managed: ModemManager does not answer",
    ]
