"""``tandem modem list``: what is plugged in, what it answers, and which path of the configuration it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tandem.app.config import Config, PathConfig
from tandem.app.modem_asked import Asked, asked_at, radio, radio_line
from tandem.app.modem_configured import Configured, by_configuration, configured, refused
from tandem.at.channel import Channel, open_port
from tandem.at.errors import NoAnswer, PortLost
from tandem.modem.sim import READY
from tandem.modem.usb import SYS, FoundModem, ModemPort, modems


@dataclass(frozen=True)
class Listed:
    """One modem on the USB bus. ``slot``: the path of the configuration that names its place or port. ``driver``: of the modem's own
    answers, else of its USB ids. ``state``: ``ready``, or why it cannot be used now. ``asked`` None: it was not, or gave no answer."""

    found: FoundModem
    slot: PathConfig | None
    driver: str
    state: str
    asked: Asked | None = None

    @property
    def present(self) -> bool:
        """It is on the bus."""
        return True

    def as_json(self) -> dict[str, Any]:
        """One flat object with the ports in a list. ``owner`` of a port: the collector, ModemManager, or null."""
        found, asked = self.found, self.asked
        identity = asked.identity if asked else None
        wanted = self.slot.modem.sim if self.slot is not None and self.slot.modem is not None else None
        return {
            "usb": found.path,
            "where": f"usb {found.path}",
            "vendor": found.vendor,
            "product": found.product,
            "model": (identity and identity.model) or found.name or (found.models[0] if found.models else None),
            "revision": (identity and identity.revision) or None,
            "driver": self.driver,
            "drivers": list(found.drivers),
            "port": found.collector_port,
            "ports": [{**asdict(port), "owner": self.owner(port)} for port in found.ports],
            "networks": list(found.networks),
            "slot": self.slot.name if self.slot else None,
            "operator": self.slot.operator if self.slot else None,
            "sim": asked.sim if asked else None,
            "sim_wanted": wanted,
            "state": self.state,
            "pollable": self.state == READY,
            **(radio(asked.reading) if asked else {}),
            "mode_switch": found.mode_switch,
        }

    def owner(self, port: ModemPort) -> str | None:
        """Who asks at a port: of two AT ports the second is the collector's and the first ModemManager's."""
        if port.name == self.found.collector_port:
            return "collector"
        return "modemmanager" if port.role == "at" or port.name.startswith("/dev/cdc-wdm") else None

    def lines(self) -> list[str]:
        """For people."""
        told, found = self.as_json(), self.found
        names = " ".join(str(n) for n in (found.manufacturer, told["model"]) if n)
        slot = self.slot.name if self.slot else "-"
        slot += f" ({told['operator']})" if told["operator"] else ""
        lines = [
            f"{told['usb']}  {told['vendor']}:{told['product']}  {names or 'unnamed'}  driver {self.driver}",
            f"    slot {slot}  state {self.state}",
        ]
        heard = radio_line(self.asked.reading) if self.asked else None
        if heard:
            lines.append(f"    hears {heard}")
        if told["sim"]:
            other = told["sim_wanted"] not in (None, told["sim"])
            lines.append(f'    sim = "{told["sim"]}"' + ("  another one than the configuration names" if other else ""))
        if found.mode_switch:
            lines.append(f"    {found.mode_switch}")
        owners = {"collector": "  <- the collector's", "modemmanager": "  ModemManager's"}
        for port in found.ports:
            owner = owners.get(self.owner(port) or "", "")
            lines.append(f"    interface {port.interface}  {port.name}  {port.role or 'role not known'}{owner}")
        return [*lines, *(f"    network {name}" for name in found.networks)]


def listed(
    config: Config | None, ask: bool, secret: bytes | None = None, root: Path = SYS
) -> list[Listed | Configured]:
    """Every modem, by USB path, then those that only the configuration names. ``ask``: open the collector's port of each and ask who
    it is and what it hears; what holds a port already keeps it."""
    found = plugged(config, ask, secret, root)
    if config is None:
        return [*found]
    slots = {one.slot.name for one in found if one.slot is not None}
    return [*found, *configured(config, slots, ask, secret, open_port)]


def plugged(
    config: Config | None, ask: bool, secret: bytes | None = None, root: Path = SYS, home: bool = False
) -> list[Listed]:
    """The modems on the USB bus. ``home``: ask whose SIM each has, too."""
    return [_one(one, config, ask, secret, home) for one in modems(root)]


def _one(found: FoundModem, config: Config | None, ask: bool, secret: bytes | None, home: bool) -> Listed:
    slot, driver = _slot(found, config), found.drivers[0]
    if found.mode_switch is not None:
        return Listed(found, slot, driver, "waits for its mode switch")
    port = found.collector_port
    if port is None and slot is not None and slot.modem is not None and (slot.modem.port or "").startswith("http://"):
        leads = replace(slot, interface=next(iter(found.networks), slot.interface))
        told = by_configuration(leads, slot.modem, ask, secret, open_port)
        return Listed(found, slot, told.asked.driver if told.asked else driver, told.state, told.asked)
    if port is None:
        return Listed(found, slot, driver, _portless(found))
    if not ask:
        return Listed(found, slot, driver, "not asked")
    try:
        channel = Channel(open_port(port))
    except PortLost as error:
        return Listed(found, slot, driver, refused(port, str(error)))
    try:
        asked = asked_at(channel, found.drivers, secret, home)
    except NoAnswer:
        return Listed(found, slot, driver, "does not answer")
    except PortLost as error:
        return Listed(found, slot, driver, f"went away while it was asked ({error})")
    finally:
        channel.close()
    return Listed(found, slot, asked.driver, asked.state, asked)


def _slot(found: FoundModem, config: Config | None) -> PathConfig | None:
    for path in config.paths if config is not None else ():
        modem = path.modem
        if modem is not None and modem.usb is not None and modem.usb.partition(":")[0] == found.path:
            return path
        if modem is not None and modem.port is not None and modem.port.startswith("/"):
            here = Path(modem.port).resolve()
            if str(here) in (port.name for port in found.ports):
                return path
        if modem is not None and ((path.usb or "").partition(":")[0] == found.path or path.interface in found.networks):
            return path
    return None


def _portless(found: FoundModem) -> str:
    serial = [port for port in found.ports if port.name.startswith("/dev/tty")]
    if serial and not any(port.role for port in found.ports):
        return "which of its ports takes AT commands is not known: name one in the configuration"
    return "no AT port" + (": its web server or ModemManager" if found.networks else "")


def table(found: Sequence[Listed | Configured]) -> list[str]:
    """The list for people."""
    if not found:
        return ["no modem is plugged in (none that a family in tandem/modem claims, and nothing that looks like one)"]
    return [line for one in found for line in one.lines()]
