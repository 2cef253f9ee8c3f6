"""The ladder wired into the collector: a silent modem's steps, its recovery and its giving up reach the database as events."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from doubles import Rehearsal
from https_gateway import Gateway

from tandem.app.config import Config, ConfigError, parse
from tandem.app.config_modem import RecoveryConfig
from tandem.app.parts import PathChange
from tandem.modem.steps import CannotStepError
from tandem.schema.line_protocol import Point
from tandem.schema.line_protocol import parse as parse_line

GOOD = (Path(__file__).parent / "good.toml").read_text()
FILE = Path("/etc/tandem/config.toml")


class Actions:
    """``at`` cannot be done here, ``cfun`` can."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.noted = 0

    def seen(self) -> None:
        self.noted += 1

    def do(self, step: str) -> str:
        self.done.append(step)
        if step == "at":
            raise CannotStepError("no port")
        return "radio switched off and on"


def test_a_silent_modem_is_taken_up_the_ladder_and_all_of_it_is_recorded(tmp_path: Path, gateway: Gateway) -> None:
    actions = {"a": Actions(), "b": Actions()}
    collector = Rehearsal(tmp_path, gateway)
    config = replace(collector.config, recovery=RecoveryConfig(True, 0.2, ("at", "cfun"), 600.0))
    collector.rewired(config, actions=lambda path, _poller: actions[path.name]).start()
    for name in ("a", "b"):
        collector.pollers[name].poll(-95.0)
    collector.until(lambda: actions["a"].noted == 1)
    collector.pollers["a"].poll(None, failure="no_answer")
    collector.until(lambda: actions["a"].done == ["at", "cfun"])
    told = collector.supervisor.collector
    assert told is not None

    def events() -> list[Point]:
        found = [parse_line(line) for line in gateway.lines.values()]
        return [p for p in found if p.measurement == "event" and p.tags["kind"].startswith("recover")]

    gateway.until(lambda: len(events()) == 2)
    collector.pollers["a"].poll(-95.0)
    gateway.until(lambda: len(events()) == 3)
    collector.pollers["b"].on_poll(PathChange("path_state", "b", "roaming_refused: registered with 26201"))  # type: ignore[arg-type]
    gateway.until(lambda: any("kind=path_state" in line for line in gateway.lines.values()))
    assert collector.stop()
    by_kind = {(p.tags["kind"], p.fields.get("step")): p for p in events()}
    assert by_kind["recovery_step", "at"].fields["detail"] == "skipped: no port"
    assert by_kind["recovery_step", "cfun"].fields["took_ms"] >= 0
    assert by_kind["recovered", "cfun"].tags["path"] == "a"
    assert actions["b"].done == []


MANAGED = GOOD.replace(
    'port = "/dev/ttyUSB6"', 'port = "modemmanager:1-1.2"\n[path.modem.connection]\napn = "internet"\nX'
)


def modem_b(more: str = "") -> Config:
    return parse(MANAGED.replace("X", more), FILE)


def test_a_modem_of_modemmanager_and_its_connection_are_taken() -> None:
    config = modem_b('pin_file = "pin"\nroaming = true\nip_type = "ipv4"')
    modem = config.paths[1].modem
    assert modem is not None
    assert modem.port == "modemmanager:1-1.2"
    connection = modem.connection
    assert connection is not None
    assert (connection.apn, connection.roaming, connection.ip_type) == ("internet", True, "ipv4")
    assert (connection.pin_file, connection.password_file) == (Path("/etc/tandem/pin"), None)
    assert connection.tried == Path("/etc/tandem/sim")


def test_a_modem_with_a_port_to_spare_is_kept_connected_by_its_place() -> None:
    by_place = MANAGED.replace("X", "").replace('port = "modemmanager:1-1.2"', 'usb = "1-1.2"\ndriver = "quectel"')
    modem = parse(by_place, FILE).paths[1].modem
    assert modem is not None
    assert (modem.port, modem.usb, modem.driver) == (None, "1-1.2", "quectel")
    assert modem.connection is not None
    assert modem.connection.apn == "internet"


def test_the_ladder_has_its_own_order() -> None:
    config = parse(GOOD + '\n[recovery]\nsteps = "power, at"\nafter_s = 30\n', FILE)
    assert config.recovery == RecoveryConfig(True, 30.0, ("at", "power"), 3600.0)
    assert parse(GOOD, FILE).recovery.steps == ("at", "session", "cfun", "reboot", "usb", "power")


BAD: list[tuple[Any, str]] = [
    (lambda: modem_b('ip_type = "x"'), "none of ipv4, ipv6, ipv4v6; mend: ipv4, ipv6 or ipv4v6"),
    (lambda: modem_b('pin = "1234"'), "unknown key 'pin' in [path.modem.connection]"),
    (lambda: parse(MANAGED.replace("X", "").replace('apn = "internet"', ""), FILE), "has no 'apn'"),
    (
        lambda: parse(MANAGED.replace("X", "").replace("modemmanager:1-1.2", "/dev/ttyUSB6"), FILE),
        "for modems that ModemManager has",
    ),
    (lambda: parse(MANAGED.replace("X", "").replace("modemmanager:1-1.2", "modemmanager:"), FILE), "names no modem"),
    (
        lambda: parse(MANAGED.replace("X", "").replace('1-1.2"', '1-1.2"\ndriver = "quectel"'), FILE),
        "has no driver of ours; mend: leave it out",
    ),
    (lambda: parse(GOOD + '\n[recovery]\nsteps = "at,restart"\n', FILE), "'restart' is no step of the recovery ladder"),
    (lambda: parse(GOOD + "\n[recovery]\nafter_s = 1\n", FILE), "recovery.after_s: 1 is below 5"),
]


@pytest.mark.parametrize(("make", "what"), BAD, ids=[what for _, what in BAD])
def test_what_makes_no_sense_is_named_with_its_line_and_mend(make: Any, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make()
    message = str(caught.value)
    assert what in message
    assert message.startswith(f"{FILE}:")
    assert "; mend: " in message
    assert "\n" not in message
