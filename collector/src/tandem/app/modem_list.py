"""``tandem modem list``: what is plugged in, what it answers, and which path of the configuration it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tandem.app.config import Config
from tandem.at.channel import Channel, open_port
from tandem.at.cme import explained
from tandem.at.dialogue import Response
from tandem.at.errors import NoAnswer, PortLost
from tandem.at.grammar import values
from tandem.modem.discovery import SYS, FoundModem, modems
from tandem.modem.identification import COMMAND_DEADLINE_S, FIRST_DEADLINE_S, identify
from tandem.modem.registry import AUTO, choose
from tandem.modem.sim import card_hash

_PINS = {"READY": "ready", "SIM PIN": "the SIM wants its PIN", "SIM PUK": "the SIM wants its PUK"}


@dataclass(frozen=True)
class Listed:
    """One modem. ``slot``: the path of the configuration that names its place or port. ``driver``: of the modem's own answers, else of
    its USB ids. ``state``: ``ready``, or why it cannot be used now. ``sim``: its hash, when the probe's secret was given."""

    found: FoundModem
    slot: str | None
    driver: str
    state: str
    model: str | None = None
    revision: str | None = None
    sim: str | None = None

    def as_json(self) -> dict[str, Any]:
        """One flat object with the ports in a list."""
        found = self.found
        return {
            "usb": found.path,
            "vendor": found.vendor,
            "product": found.product,
            "model": self.model or found.name or (found.models[0] if found.models else None),
            "revision": self.revision,
            "driver": self.driver,
            "drivers": list(found.drivers),
            "port": found.collector_port,
            "ports": [asdict(port) for port in found.ports],
            "networks": list(found.networks),
            "slot": self.slot,
            "sim": self.sim,
            "state": self.state,
            "mode_switch": found.mode_switch,
        }


def listed(config: Config | None, ask: bool, secret: bytes | None = None, root: Path = SYS) -> list[Listed]:
    """Every modem, by USB path. ``ask``: open the collector's port of each and ask who it is; what holds a port already keeps it."""
    return [_one(found, config, ask, secret) for found in modems(root)]


def _one(found: FoundModem, config: Config | None, ask: bool, secret: bytes | None) -> Listed:
    slot, driver = _slot(found, config), found.drivers[0]
    if found.mode_switch is not None:
        return Listed(found, slot, driver, "waits for its mode switch")
    port = found.collector_port
    if port is None:
        return Listed(found, slot, driver, _portless(found))
    if not ask:
        return Listed(found, slot, driver, "not asked")
    try:
        channel = Channel(open_port(port))
    except PortLost as error:
        return Listed(found, slot, driver, _refused(str(error)))
    try:
        return _asked(found, slot, channel, secret)
    except NoAnswer:
        return Listed(found, slot, driver, "does not answer")
    except PortLost as error:
        return Listed(found, slot, driver, f"went away while it was asked ({error})")
    finally:
        channel.close()


def _asked(found: FoundModem, slot: str | None, channel: Channel, secret: bytes | None) -> Listed:
    channel.ask("ATE0", FIRST_DEADLINE_S)
    channel.ask("AT+CMEE=1", COMMAND_DEADLINE_S)
    answers = [channel.ask(command, COMMAND_DEADLINE_S) for command in ("AT+CGMI", "AT+CGMM", "AT+CGMR")]
    identity = identify(answers)
    chosen = choose(AUTO, identity).name
    driver = chosen if chosen in found.drivers or chosen != "generic" else found.drivers[0]
    state = _pin(channel.ask("AT+CPIN?", COMMAND_DEADLINE_S))
    sim = card_hash(channel, secret) if secret is not None and state == "ready" else None
    return Listed(found, slot, driver, state, identity.model or None, identity.revision or None, sim)


def _pin(answer: Response) -> str:
    """``+CPIN: READY`` (27.007 clause 8.3) and its like in words."""
    if not answer.final.ok:
        return explained(answer.final.code)
    told = next((values(line)[0].upper() for line in answer.lines if values(line)), "")
    return _PINS.get(told, told.lower() or "ready")


def _slot(found: FoundModem, config: Config | None) -> str | None:
    for path in config.paths if config is not None else ():
        modem = path.modem
        if modem is not None and modem.usb is not None and modem.usb.partition(":")[0] == found.path:
            return path.name
        if modem is not None and modem.port is not None and modem.port.startswith("/"):
            here = Path(modem.port).resolve()
            if str(here) in (port.name for port in found.ports):
                return path.name
        if modem is not None and path.interface in found.networks:
            return path.name
    return None


def _portless(found: FoundModem) -> str:
    serial = [port for port in found.ports if port.name.startswith("/dev/tty")]
    if serial and not any(port.role for port in found.ports):
        return "which of its ports takes AT commands is not known: name one in the configuration"
    return "no AT port" + (": its web server or ModemManager" if found.networks else "")


def _refused(error: str) -> str:
    for sign, state in (("lock", "in use"), ("busy", "in use"), ("ermission", "no permission: join the group dialout")):
        if sign in error:
            return state
    return error


def table(found: Sequence[Listed]) -> list[str]:
    """The list for people."""
    if not found:
        return ["no modem is plugged in (none that a family in tandem/modem claims, and nothing that looks like one)"]
    lines: list[str] = []
    for one in found:
        told = one.as_json()
        names = " ".join(str(n) for n in (one.found.manufacturer, told["model"]) if n)
        lines.append(f"{told['usb']}  {told['vendor']}:{told['product']}  {names or 'unnamed'}  driver {one.driver}")
        lines.append(f"    slot {one.slot or '-'}  state {one.state}")
        if one.sim:
            lines.append(f'    sim = "{one.sim}"')
        if one.found.mode_switch:
            lines.append(f"    {one.found.mode_switch}")
        for port in one.found.ports:
            ours = "  <- the collector's" if port.name == told["port"] else ""
            lines.append(f"    interface {port.interface}  {port.name}  {port.role or 'role not known'}{ours}")
        lines.extend(f"    network {name}" for name in one.found.networks)
    return lines
