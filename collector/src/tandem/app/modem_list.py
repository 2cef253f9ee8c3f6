"""``tandem modem list``: what is plugged in or configured, what it answers, and which path of the configuration it belongs to. Each modem
is asked once: who it is, whether its SIM is ready, what it hears. Changes nothing that stays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tandem.app.config import Config
from tandem.app.config_schema import ModemConfig, PathConfig
from tandem.at.channel import Channel, open_port
from tandem.at.dialogue import Response
from tandem.at.errors import NoAnswer, PortLost
from tandem.modem.base import Driver, Identity, Reading
from tandem.modem.families import AUTO, FALLBACK, choose, drivers
from tandem.modem.poll import in_range
from tandem.modem.session import COMMAND_DEADLINE_S, FIRST_DEADLINE_S, identify, prepare_web
from tandem.modem.sim import READY, UNTOLD, HomeNetwork, card_hash, home_network, pin_state
from tandem.modem.usb import SYS, FoundModem, ModemPort, modems
from tandem.modem.web import WebChannel, poll_failure

NOBODY, NOTHING = Identity(), Reading()


@dataclass(frozen=True)
class ModemAnswer:
    """What a modem answered. ``state``: ``ready``, or why it cannot be used now; ``sim``: its hash, when the secret was given.
    ``home``: of its SIM, when it was asked for."""

    driver: str
    state: str
    identity: Identity = NOBODY
    reading: Reading = NOTHING
    sim: str | None = None
    home: HomeNetwork = UNTOLD


def ask_at(channel: Channel, families: tuple[str, ...], secret: bytes | None, home: bool = False) -> ModemAnswer:
    """At an AT port. ``families``: that its USB ids speak for; ``home``: ask whose SIM it is. NoAnswer, PortLost."""
    channel.ask("ATE0", FIRST_DEADLINE_S)
    channel.ask("AT+CMEE=1", COMMAND_DEADLINE_S)
    answers = [channel.ask(command, COMMAND_DEADLINE_S) for command in ("AT+CGMI", "AT+CGMM", "AT+CGMR")]
    identity = identify(answers)
    chosen = choose(AUTO, identity)
    driver = chosen if chosen.name in families or chosen.name != FALLBACK else drivers()[families[0]]
    state = pin_state(channel.ask("AT+CPIN?", COMMAND_DEADLINE_S))
    if state != READY:
        return ModemAnswer(driver.name, state, identity)
    sim = card_hash(channel, secret) if secret is not None else None
    network = home_network(channel) if home else UNTOLD
    polled = driver if driver.transport == "at" else drivers()[FALLBACK]
    # Its set-up too, which a modem forgets when it is switched off: without it many tell no cell.
    commands = (*polled.setup_commands(identity), *polled.poll_commands(identity))
    answers = [channel.ask(command, COMMAND_DEADLINE_S) for command in commands]
    return ModemAnswer(driver.name, state, identity, _read(polled, answers, identity), sim, network)


def ask_web(channel: WebChannel, driver_name: str) -> ModemAnswer:
    """At a stick's web server. NoAnswer, PortLost."""
    identity, driver = prepare_web(channel, driver_name)
    answers = [channel.ask(command, COMMAND_DEADLINE_S) for command in driver.poll_commands(identity)]
    reading = _read(driver, answers, identity)
    failure = poll_failure(driver, answers, reading)
    return ModemAnswer(
        driver.name, READY if failure is None else f"refuses: {failure.replace('_', ' ')}", identity, reading
    )


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
    parts = (reading.rat, state, reading.plmn and f"network {reading.plmn}", level, cell)
    return ", ".join(one for one in parts if one)


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


@dataclass(frozen=True)
class Configured:
    """A path's modem. ``where``: as the configuration has it. ``answer`` None: it was not asked, or gave none, as ``state`` says."""

    slot: str
    operator: str | None
    where: str
    state: str
    answer: ModemAnswer | None = None
    sim_wanted: str | None = None

    @property
    def present(self) -> bool:
        """Whether it is there, as far as was looked."""
        return self.answer is not None or self.state == "not asked" or self.state.startswith("in use")

    def as_json(self) -> dict[str, Any]:
        """One flat object, with the keys of ``Listed``."""
        found = self.answer
        return {
            "usb": None,
            "where": self.where,
            "model": (found.identity.model or None) if found else None,
            "revision": (found.identity.revision or None) if found else None,
            "driver": found.driver if found else None,
            "slot": self.slot,
            "operator": self.operator,
            "sim": found.sim if found else None,
            "sim_wanted": self.sim_wanted,
            "state": self.state,
            "pollable": self.state == "ready",
            **(radio(found.reading) if found else {}),
        }

    def lines(self) -> list[str]:
        """For people."""
        row = self.as_json()
        driver = f"  driver {row['driver']}" if row["driver"] else ""
        heard = radio_line(self.answer.reading) if self.answer is not None else None
        slot = self.slot + (f" ({self.operator})" if self.operator else "")
        return [
            f"{self.where}  {row['model'] or 'modem of the configuration'}{driver}",
            f"    slot {slot}  state {self.state}",
            *([f"    hears {heard}"] if heard else []),
        ]


def configured(config: Config, found: set[str], ask: bool, secret: bytes | None) -> list[Configured]:
    """Those of the paths that are not in ``found``."""
    rest = [(path, path.modem) for path in config.paths if path.name not in found]
    return [by_configuration(path, modem, ask, secret) for path, modem in rest if modem is not None]


def by_configuration(path: PathConfig, modem: ModemConfig, ask: bool, secret: bytes | None) -> Configured:
    """The modem as the configuration reaches it."""
    where = f"usb {modem.usb}" if modem.usb is not None else str(modem.port)
    state, answer = "not asked", None
    if modem.usb is not None:
        state = "nothing that is a modem is plugged in there"
    elif where.startswith("modemmanager:"):
        state = "through ModemManager: tandem status and mmcli show it"
    elif where.startswith("/") and not Path(where).exists():
        state = "there is no such port"
    elif ask:
        try:
            answer = _ask(path, modem, where, secret)
            state = answer.state
        except NoAnswer as error:
            state = str(error) if where.startswith("http://") else "does not answer"
        except PortLost as error:
            state = refused(where, str(error))
    return Configured(path.name, path.operator, where, state, answer, modem.sim)


def _ask(path: PathConfig, modem: ModemConfig, where: str, secret: bytes | None) -> ModemAnswer:
    if where.startswith("http://"):
        return ask_web(WebChannel(where, path.interface), modem.driver)
    channel = Channel(open_port(where))
    try:
        return ask_at(channel, (modem.driver if modem.driver != AUTO else FALLBACK,), secret)
    finally:
        channel.close()


def refused(port: str, error: str) -> str:
    """Why a port cannot be opened, in words, and who has it."""
    if "lock" in error or "busy" in error:
        who = holder(port)
        return f"in use by {who}" if who else "in use"
    return "no permission: join the group dialout" if "ermission" in error else error


@dataclass(frozen=True)
class Listed:
    """One modem on the USB bus. ``slot``: the path of the configuration that names its place or port. ``driver``: of the modem's own
    answers, else of its USB ids. ``state``: ``ready``, or why it cannot be used now. ``answer`` None: it was not asked, or gave none."""

    found: FoundModem
    slot: PathConfig | None
    driver: str
    state: str
    answer: ModemAnswer | None = None

    @property
    def present(self) -> bool:
        """It is on the bus."""
        return True

    def as_json(self) -> dict[str, Any]:
        """One flat object with the ports in a list. ``owner`` of a port: the collector, ModemManager, or null."""
        found, answer = self.found, self.answer
        identity = answer.identity if answer else None
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
            "sim": answer.sim if answer else None,
            "sim_wanted": wanted,
            "state": self.state,
            "pollable": self.state == READY,
            **(radio(answer.reading) if answer else {}),
            "mode_switch": found.mode_switch,
        }

    def owner(self, port: ModemPort) -> str | None:
        """Who asks at a port: of two AT ports the second is the collector's and the first ModemManager's."""
        if port.name == self.found.collector_port:
            return "collector"
        return "modemmanager" if port.role == "at" or port.name.startswith("/dev/cdc-wdm") else None

    def lines(self) -> list[str]:
        """For people."""
        row, found = self.as_json(), self.found
        names = " ".join(str(n) for n in (found.manufacturer, row["model"]) if n)
        slot = self.slot.name if self.slot else "-"
        slot += f" ({row['operator']})" if row["operator"] else ""
        lines = [
            f"{row['usb']}  {row['vendor']}:{row['product']}  {names or 'unnamed'}  driver {self.driver}",
            f"    slot {slot}  state {self.state}",
        ]
        heard = radio_line(self.answer.reading) if self.answer else None
        if heard:
            lines.append(f"    hears {heard}")
        if row["sim"]:
            other = row["sim_wanted"] not in (None, row["sim"])
            lines.append(f'    sim = "{row["sim"]}"' + ("  another one than the configuration names" if other else ""))
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
    return [*found, *configured(config, slots, ask, secret)]


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
        by_web = by_configuration(leads, slot.modem, ask, secret)
        return Listed(found, slot, by_web.answer.driver if by_web.answer else driver, by_web.state, by_web.answer)
    if port is None:
        return Listed(found, slot, driver, _portless(found))
    if not ask:
        return Listed(found, slot, driver, "not asked")
    try:
        channel = Channel(open_port(port))
    except PortLost as error:
        return Listed(found, slot, driver, refused(port, str(error)))
    try:
        answer = ask_at(channel, found.drivers, secret, home)
    except NoAnswer:
        return Listed(found, slot, driver, "does not answer")
    except PortLost as error:
        return Listed(found, slot, driver, f"went away while it was asked ({error})")
    finally:
        channel.close()
    return Listed(found, slot, answer.driver, answer.state, answer)


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
