"""Asking one modem, once, for ``tandem modem list``: who it is, whether its SIM is ready, what it hears. Changes nothing that stays."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem.at.channel import Channel
from tandem.at.dialogue import Response
from tandem.modem.base import Driver, Identity, Reading
from tandem.modem.families import AUTO, FALLBACK, choose, drivers
from tandem.modem.poll import in_range
from tandem.modem.session import COMMAND_DEADLINE_S, FIRST_DEADLINE_S, identify, prepare_web
from tandem.modem.sim import READY, UNTOLD, HomeNetwork, card_hash, home_network, pin_state
from tandem.modem.web import WebChannel, poll_failure

NOBODY, NOTHING = Identity(), Reading()


@dataclass(frozen=True)
class Asked:
    """What a modem answered. ``state``: ``ready``, or why it cannot be used now; ``sim``: its hash, when the secret was given.
    ``home``: of its SIM, when it was asked for."""

    driver: str
    state: str
    identity: Identity = NOBODY
    reading: Reading = NOTHING
    sim: str | None = None
    home: HomeNetwork = UNTOLD


def asked_at(channel: Channel, families: tuple[str, ...], secret: bytes | None, home: bool = False) -> Asked:
    """At an AT port. ``families``: that its USB ids speak for; ``home``: ask whose SIM it is. NoAnswer, PortLost."""
    channel.ask("ATE0", FIRST_DEADLINE_S)
    channel.ask("AT+CMEE=1", COMMAND_DEADLINE_S)
    answers = [channel.ask(command, COMMAND_DEADLINE_S) for command in ("AT+CGMI", "AT+CGMM", "AT+CGMR")]
    identity = identify(answers)
    chosen = choose(AUTO, identity)
    driver = chosen if chosen.name in families or chosen.name != FALLBACK else drivers()[families[0]]
    state = pin_state(channel.ask("AT+CPIN?", COMMAND_DEADLINE_S))
    if state != READY:
        return Asked(driver.name, state, identity)
    sim = card_hash(channel, secret) if secret is not None else None
    network = home_network(channel) if home else UNTOLD
    polled = driver if driver.transport == "at" else drivers()[FALLBACK]
    # Its set-up too, which a modem forgets when it is switched off: without it many tell no cell.
    asked = (*polled.setup_commands(identity), *polled.poll_commands(identity))
    answers = [channel.ask(command, COMMAND_DEADLINE_S) for command in asked]
    return Asked(driver.name, state, identity, _read(polled, answers, identity), sim, network)


def asked_web(channel: WebChannel, driver_name: str) -> Asked:
    """At a stick's web server. NoAnswer, PortLost."""
    identity, driver = prepare_web(channel, driver_name)
    answers = [channel.ask(command, COMMAND_DEADLINE_S) for command in driver.poll_commands(identity)]
    reading = _read(driver, answers, identity)
    failure = poll_failure(driver, answers, reading)
    return Asked(driver.name, READY if failure is None else f"refuses: {failure.replace('_', ' ')}", identity, reading)


def radio(reading: Reading) -> dict[str, Any]:
    """What it hears, for JSON."""
    return {
        "radio_state": reading.state,
        "rat": reading.rat,
        "plmn": reading.plmn,
        "rsrp_dbm": reading.rsrp_dbm,
        "rssi_dbm": reading.rssi_dbm,
        "eci": reading.eci,
    }


def radio_line(reading: Reading) -> str | None:
    """The same for people; None when it told nothing."""
    if reading.empty:
        return None
    level = next(
        (
            f"{name} {value:.0f} dBm"
            for name, value in (("RSRP", reading.rsrp_dbm), ("RSCP", reading.rscp_dbm), ("RSSI", reading.rssi_dbm))
            if value is not None
        ),
        None,
    )
    cell = None if reading.enb_id is None else f"eNB {reading.enb_id} sector {reading.sector_id}"
    state = None if reading.state == "unknown" else reading.state.replace("_", " ")
    told = (reading.rat, state, reading.plmn and f"network {reading.plmn}", level, cell)
    return ", ".join(one for one in told if one)


def holder(port: str, proc: Path = Path("/proc")) -> str | None:
    """The program that has ``port`` open, as far as we may look: ``ModemManager (812)``; None when it is not seen."""
    wanted = os.path.realpath(port)
    for folder in proc.glob("[0-9]*"):
        try:
            if any(os.path.realpath(link) == wanted for link in (folder / "fd").iterdir()):
                return f"{(folder / 'comm').read_text().strip()} ({folder.name})"
        except OSError:
            continue  # ended meanwhile, or another user's
    return None


def _read(driver: Driver, answers: list[Response], identity: Identity) -> Reading:
    return in_range(driver.decode(answers, identity))[0]
