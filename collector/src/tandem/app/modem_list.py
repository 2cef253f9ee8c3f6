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
from tandem.at.dialogue import NoAnswer, PortLost, Response
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


def radio_line(reading: Reading) -> str | None:
    """What it hears, for people; None when it reported nothing."""
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
class Listed:
    """One modem. ``found``: on the USB bus; None: only the configuration names it, at ``where``. ``slot``: the path of the configuration
    that names its place or port. ``driver``: of the modem's own answers, else of its USB ids. ``state``: ``ready``, or why it cannot be
    used now. ``answer`` None: it was not asked, or gave none."""

    where: str
    slot: PathConfig | None
    driver: str | None
    state: str
    answer: ModemAnswer | None = None
    found: FoundModem | None = None

    @property
    def present(self) -> bool:
        """Whether it is there, as far as was looked."""
        was_asked = self.found is not None or self.answer is not None
        return was_asked or self.state == "not asked" or self.state.startswith("in use")

    def as_json(self) -> dict[str, Any]:
        """One flat object; of one on the bus with the ports in a list. ``owner`` of a port: the collector, ModemManager, or null."""
        found, answer, slot = self.found, self.answer, self.slot
        identity = NOBODY if answer is None else answer.identity
        names = () if found is None else (found.name, *found.models[:1])
        row: dict[str, Any] = {
            "usb": None if found is None else found.path,
            "where": self.where,
            "model": next((name for name in (identity.model, *names) if name), None),
            "revision": identity.revision or None,
            "driver": self.driver,
            "slot": None if slot is None else slot.name,
            "operator": None if slot is None else slot.operator,
            "sim": None if answer is None else answer.sim,
            "sim_wanted": None if slot is None or slot.modem is None else slot.modem.sim,
            "state": self.state,
            "pollable": self.state == READY,
        }
        if answer is not None:
            heard = ("rat", "plmn", "rsrp_dbm", "rssi_dbm", "eci")
            row |= {"radio_state": answer.reading.state, **{name: getattr(answer.reading, name) for name in heard}}
        if found is None:
            return row
        return {
            **row,
            "vendor": found.vendor,
            "product": found.product,
            "drivers": list(found.drivers),
            "port": found.collector_port,
            "ports": [{**asdict(port), "owner": _owner(found, port)} for port in found.ports],
            "networks": list(found.networks),
            "mode_switch": found.mode_switch,
        }

    def lines(self) -> list[str]:
        """For people."""
        row, found = self.as_json(), self.found
        slot = (row["slot"] or "-") + (f" ({row['operator']})" if row["operator"] else "")
        if found is None:
            title = f"{self.where}  {row['model'] or 'modem of the configuration'}"
            title += f"  driver {self.driver}" if self.driver else ""
        else:
            names = " ".join(str(n) for n in (found.manufacturer, row["model"]) if n) or "unnamed"
            title = f"{found.path}  {found.vendor}:{found.product}  {names}  driver {self.driver}"
        lines = [title, f"    slot {slot}  state {self.state}"]
        heard = radio_line(self.answer.reading) if self.answer else None
        if heard:
            lines.append(f"    hears {heard}")
        if found is None:
            return lines
        if row["sim"]:
            other = row["sim_wanted"] not in (None, row["sim"])
            lines.append(f'    sim = "{row["sim"]}"' + ("  another one than the configuration names" if other else ""))
        if found.mode_switch:
            lines.append(f"    {found.mode_switch}")
        owners = {"collector": "  <- the collector's", "modemmanager": "  ModemManager's"}
        for port in found.ports:
            owner = owners.get(_owner(found, port) or "", "")
            lines.append(f"    interface {port.interface}  {port.name}  {port.role or 'role not known'}{owner}")
        return [*lines, *(f"    network {name}" for name in found.networks)]


def _owner(found: FoundModem, port: ModemPort) -> str | None:
    """Who asks at a port: of two AT ports the second is the collector's and the first ModemManager's."""
    if port.name == found.collector_port:
        return "collector"
    return "modemmanager" if port.role == "at" or port.name.startswith("/dev/cdc-wdm") else None


def by_configuration(path: PathConfig, modem: ModemConfig, ask: bool, secret: bytes | None) -> Listed:
    """The modem as the configuration reaches it."""
    where = f"usb {modem.usb}" if modem.usb is not None else str(modem.port)
    state, answer = "not asked", None
    if modem.usb is not None:
        state = "nothing that is a modem is plugged in there"
    elif where.startswith("modemmanager:"):
        state = "through ModemManager: tandem status and mmcli show it"
    elif where.startswith("/") and not Path(where).exists():
        state = "there is no such port"
    elif ask and where.startswith("http://"):
        try:
            answer = ask_web(WebChannel(where, path.interface), modem.driver)
            state = answer.state
        except (NoAnswer, PortLost) as error:
            state = str(error)
    elif ask:
        state, answer = _asked(where, (modem.driver if modem.driver != AUTO else FALLBACK,), secret)
    return Listed(where, path, answer.driver if answer else None, state, answer)


def _asked(
    port: str, families: tuple[str, ...], secret: bytes | None, home: bool = False
) -> tuple[str, ModemAnswer | None]:
    """The state of the modem at an AT port, and what it answered: ``ask_at``."""
    try:
        channel = Channel(open_port(port))
    except PortLost as error:
        return refused(port, str(error)), None
    try:
        answer = ask_at(channel, families, secret, home)
        return answer.state, answer
    except NoAnswer:
        return "does not answer", None
    except PortLost as error:
        return f"went away during the request ({error})", None
    finally:
        channel.close()


def refused(port: str, error: str) -> str:
    """Why a port cannot be opened, in words, and who has it."""
    if "lock" in error or "busy" in error:
        who = holder(port)
        return f"in use by {who}" if who else "in use"
    return "no permission: join the group dialout" if "ermission" in error else error


def listed(config: Config | None, ask: bool, secret: bytes | None = None, root: Path = SYS) -> list[Listed]:
    """Every modem, by USB path, then those that only the configuration names. ``ask``: open the collector's port of each and ask who
    it is and what it hears; what holds a port already keeps it."""
    found = [one for _, one in plugged(config, ask, secret, root)]
    slots = {one.slot.name for one in found if one.slot is not None}
    rest = () if config is None else config.paths
    named = [(path, path.modem) for path in rest if path.name not in slots]
    return found + [by_configuration(path, modem, ask, secret) for path, modem in named if modem is not None]


def plugged(
    config: Config | None, ask: bool, secret: bytes | None = None, root: Path = SYS, home: bool = False
) -> list[tuple[FoundModem, Listed]]:
    """The modems on the USB bus. ``home``: ask whose SIM each has, too."""
    return [(one, _one(one, config, ask, secret, home)) for one in modems(root)]


def _one(found: FoundModem, config: Config | None, ask: bool, secret: bytes | None, home: bool) -> Listed:
    slot, driver = _slot(found, config), found.drivers[0]

    def row(state: str, answer: ModemAnswer | None = None) -> Listed:
        return Listed(f"usb {found.path}", slot, answer.driver if answer else driver, state, answer, found)

    if found.mode_switch is not None:
        return row("waits for its mode switch")
    port = found.collector_port
    if port is None and slot is not None and slot.modem is not None and (slot.modem.port or "").startswith("http://"):
        leads = replace(slot, interface=next(iter(found.networks), slot.interface))
        by_web = by_configuration(leads, slot.modem, ask, secret)
        return row(by_web.state, by_web.answer)
    if port is None:
        return row(_portless(found))
    if not ask:
        return row("not asked")
    return row(*_asked(port, found.drivers, secret, home))


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


def table(found: Sequence[Listed]) -> list[str]:
    """The list for people."""
    if not found:
        return ["no modem is plugged in (none that a family in tandem/modem claims, and nothing that looks like one)"]
    return [line for one in found for line in one.lines()]
