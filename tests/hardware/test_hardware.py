"""A probe as it lies on the table: its modems, what they say and how often, their paths, and a pulled plug."""

import contextlib
import http.client
import json
import queue
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from probe import Account, Place

from tandem.app.config import Config
from tandem.app.config_schema import PathConfig
from tandem.at.channel import open_port
from tandem.modem.poll import PORT_LOST, Poll
from tandem.modem.poller import Poller
from tandem.modem.recorder import record_at
from tandem.modem.usb import network_interface

pytestmark = pytest.mark.hardware

PLAUSIBLE = {"rsrp_dbm": (-140, -40), "rsrq_db": (-30, 0), "sinr_db": (-25, 45), "rssi_dbm": (-120, -20)}
"""A modem on a table in range of a network. Wider than what is good, narrower than what can be written."""


def present(place: Place | None) -> Place:
    if place is None:
        pytest.skip(
            "no modem with an AT port is plugged in (tandem modem list), and none is named by --port NAME=DEVICE"
        )
    return place


@contextmanager
def polls_of(place: Place, period_s: float = 1.0) -> Iterator[queue.SimpleQueue[Poll]]:
    heard: queue.SimpleQueue[Poll] = queue.SimpleQueue()
    poller = Poller(place.name, None, place.access, "auto", period_s, heard.put)
    poller.start()
    try:
        yield heard
    finally:
        poller.stop(10)


def test_what_is_plugged_in(place: Place | None, account: Account) -> None:
    found = present(place).found
    told = account.modems[present(place).name]
    told["port"] = present(place).access.look()
    if found is None:
        return  # named by its port: nothing is known of its place
    told.update(usb=found.path, ids=f"{found.vendor}:{found.product}", claimed_by=list(found.drivers))
    told["ports"] = {port.name: port.role for port in found.ports}
    told["networks"] = list(found.networks)
    assert found.mode_switch is None, found.mode_switch
    assert found.drivers


def test_dialogue(place: Place | None, account: Account) -> None:
    """Who it is, and each of its driver's commands answered with something that the driver reads."""
    here = present(place)
    with contextlib.closing(open_port(here.access.look())) as port:
        written = record_at(port)
    identity, further = written["identity"], written["further"]
    account.modems[here.name].update(
        **identity,
        driver=written["driver"],
        refused=[turn["send"] for turn in further if "OK" not in turn["receive"]],
        transcript=written,
    )
    silent = [turn["send"] for turn in further if "failure" in turn]
    assert not silent, f"not answered within the deadline: {silent}"
    assert identity["model"], "it does not say which model it is"
    assert written["expected"], "its driver reads nothing in its answers"


def test_cadence(place: Place | None, account: Account, request: pytest.FixtureRequest) -> None:
    """One poll a second, none missed, none passed over, each over well before the next is due."""
    here, count = present(place), request.config.getoption("--polls")
    with polls_of(here) as heard:
        polls = [heard.get(timeout=30) for _ in range(count)]
    lasted = sorted(poll.duration_ms for poll in polls)
    late = sorted(poll.late_ms for poll in polls)
    account.modems[here.name]["cadence"] = {
        "polls": count,
        "duration_ms_median": round(statistics.median(lasted), 1),
        "duration_ms_max": round(lasted[-1], 1),
        "late_ms_median": round(statistics.median(late), 1),
        "late_ms_max": round(late[-1], 1),
        "failed": sum(poll.failure is not None for poll in polls),
        "skipped": sum(poll.skipped for poll in polls),
    }
    assert [poll.failure for poll in polls if poll.failure is not None] == []
    assert sum(poll.skipped for poll in polls) == 0


def test_radio_records_are_plausible(place: Place | None, account: Account) -> None:
    here = present(place)
    with polls_of(here) as heard:
        polls = [heard.get(timeout=30) for _ in range(5)]
    readings = [poll.reading for poll in polls if poll.reading is not None]
    assert readings, f"no poll gave a reading: {[poll.failure for poll in polls]}"
    last = readings[-1].as_fields() | {"rat": readings[-1].rat}
    account.modems[here.name]["radio"] = {name: value for name, value in last.items() if value is not None}
    account.modems[here.name]["not_given"] = sorted(
        name for name in (*PLAUSIBLE, "plmn", "tac", "eci", "pci", "earfcn") if last[name] is None
    )
    assert last["rat"] is not None, "it is not registered, or its driver cannot tell the radio technology"
    wrong = {
        name: last[name]
        for name, (low, high) in PLAUSIBLE.items()
        if last[name] is not None and not low <= last[name] <= high
    }
    assert not wrong
    assert any(last[name] is not None for name in ("rsrp_dbm", "rscp_dbm", "rssi_dbm")), "no level at all"


def test_data_on_each_path(path: PathConfig | None, config: Config | None, account: Account) -> None:
    """The server answers over this very interface, and says from which address it saw us."""
    if path is None or config is None:
        pytest.skip("no --config FILE, which names the paths and the server")
    server = urlsplit(config.server.measurement)
    interface = path.interface or network_interface(path.usb or "")
    assert interface, f"path {path.name}: there is no network interface at USB {path.usb}"
    began = time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        connection.settimeout(20)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        connection.connect((str(server.hostname), server.port or 80))
        connected_ms = (time.monotonic() - began) * 1000
        own = connection.getsockname()[0]
        connection.sendall(f"GET /v1/whoami HTTP/1.1\r\nHost: {server.hostname}\r\nConnection: close\r\n\r\n".encode())
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        told = json.loads(answer.read())
    assert answer.status == 200
    account.paths[path.name] = {
        "interface": interface,
        "connect_ms": round(connected_ms, 1),
        "behind_nat": told["address"] != own,
    }
    assert told["address"]


def test_unplugged_and_plugged_in_again(
    place: Place | None, account: Account, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """The modem is lost, told so, and comes back at its place whatever its ports are called then."""
    if not request.config.getoption("--unplug"):
        pytest.skip("no --unplug, with which you are asked to pull the plug")
    here, patience = present(place), request.config.getoption("--patience")

    def ask(text: str) -> None:
        with capsys.disabled():
            print(f"\n>>> {here.name}: {text}", flush=True)

    with polls_of(here) as heard:
        before = await_poll(heard, lambda poll: poll.failure is None, patience, "it answers")
        ask("unplug it now")
        await_poll(heard, lambda poll: poll.failure == PORT_LOST, patience, "it is gone")
        gone = time.monotonic()
        ask("plug it in again")
        back = await_poll(heard, lambda poll: poll.failure is None and poll.reading is not None, patience, "it is back")
    account.modems[here.name]["away_s"] = round(time.monotonic() - gone, 1)
    account.modems[here.name]["port_after"] = here.access.look()
    assert (back.driver, back.model) == (before.driver, before.model), "another modem answers at its place"


def await_poll(heard: queue.SimpleQueue[Poll], right: Callable[[Poll], bool], within_s: float, what: str) -> Poll:
    until = time.monotonic() + within_s
    while (left := until - time.monotonic()) > 0:
        try:
            poll = heard.get(timeout=left)
        except queue.Empty:
            break
        if right(poll):
            return poll
    raise AssertionError(f"not within {within_s:.0f} s: {what}")
