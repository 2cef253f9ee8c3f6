"""A modem over its lifetime: where it is reached (a device, a place on the USB bus, a stick's web server), who it is, made ready for
polling, lost, and found again under another number."""

from __future__ import annotations

import logging
import os
import re
import stat
import time
from collections.abc import Callable, Iterable
from itertools import takewhile
from pathlib import Path

from tandem.at.channel import Channel, open_port
from tandem.at.dialogue import NoAnswer, PortLost, Response, Unsolicited
from tandem.at.grammar import prefix, values
from tandem.modem.base import Driver, Identity
from tandem.modem.families import AUTO, FALLBACK, choose, drivers
from tandem.modem.poll import WANTED
from tandem.modem.sim import card_hash
from tandem.modem.usb import SYS, USB_PORT, find
from tandem.modem.web import WebChannel, session_ended, web_address

Conversation = Channel | WebChannel


class DevicePort:
    """A device, or a symbolic link to one, which is resolved whenever it is opened. ``name``: for people."""

    def __init__(self, path: str) -> None:
        self.name = path

    def look(self) -> str:
        """Where it is now, a device's name or an address; PortLost when it is not there."""
        _there(self.name)
        return self.name

    def open(self, where: str, wake_fd: int | None) -> Channel:
        """Open what ``look`` found; PortLost when that cannot be."""
        return Channel(open_port(where), wake_fd=wake_fd)

    def moved(self, channel: Conversation, where: str) -> bool:
        """Whether ``where`` is another device by now than the one that ``channel`` is open at, as when a link was moved."""
        there = _there(where)
        if not isinstance(channel, Channel) or not stat.S_ISCHR(there.st_mode):
            return False
        opened = os.fstat(channel.fileno())
        return (opened.st_rdev, opened.st_ino) != (there.st_rdev, there.st_ino)


class UsbPort(DevicePort):
    """The collector's port of the modem at a USB path (``1-1.2``), or of one of its interfaces (``1-1.2:1.3``), whatever the
    system calls it now."""

    def __init__(self, usb: str, root: Path = SYS) -> None:
        if USB_PORT.match(usb) is None:
            raise ValueError(f"{usb!r} is no USB path as 1-1.2 or 1-1.2:1.3")
        super().__init__(f"usb {usb}")
        self._usb, self._root = usb, root

    def look(self) -> str:
        """Its present device name."""
        found = find(self._usb, "at-second", self._root)
        if found is None:
            raise PortLost(
                f"{self.name}: there is no AT port of a known modem; hint: tandem modem list shows what is plugged in; of one"
                " without an AT port to spare ModemManager can be asked: port = modemmanager: and its place"
            )
        return found


Interface = str | Callable[[], str | None] | None
"""A network interface: its name, or what tells its present name (None: whichever the routes lead to)."""


class WebServer:
    """The web server of a stick, by its interface; used as a ``DevicePort``."""

    def __init__(self, url: str, interface: Interface = None) -> None:
        web_address(url)
        self.name = url
        self._interface = interface

    def look(self) -> str:
        """Its address: whether it is there shows when it is asked."""
        return self.name

    def open(self, where: str, wake_fd: int | None) -> WebChannel:
        """Nothing is sent yet."""
        return WebChannel(where, self._present(), wake_fd)

    def moved(self, channel: Conversation, where: str) -> bool:  # noqa: ARG002 - as DevicePort has it
        """Whether another interface leads to it by now."""
        return isinstance(channel, WebChannel) and channel.interface != self._present()

    def _present(self) -> str | None:
        return self._interface() if callable(self._interface) else self._interface


Access = DevicePort | WebServer
"""Where a modem is."""


def access(port: str | None, usb: str | None = None, interface: Interface = None) -> Access:
    """What a configuration's ``port`` or ``usb`` names; ValueError when it is neither or both."""
    if (port is None) == (usb is None):
        raise ValueError("name either a port or a USB path")
    if usb is not None:
        return UsbPort(usb)
    if port is not None and port.startswith("http://"):
        return WebServer(port, interface)
    return DevicePort(str(port))


def _there(path: str) -> os.stat_result:
    try:
        return Path(path).stat()
    except OSError as error:
        raise PortLost(f"{path}: {error.strerror}") from error


# ---------------------------------------------------------------------------------------------------------------------
# Ask a modem who it is and make it ready for polling.


log = logging.getLogger(__name__)

FIRST_DEADLINE_S = 0.5
"""For the first command: is anybody there?"""

COMMAND_DEADLINE_S = 2.0
"""For each later one: modems that just registered are slow."""

_LABEL = re.compile(r"(manufacturer|model|revision)\s*:\s*(.+)\Z", re.IGNORECASE)
_SERIAL_NUMBER = re.compile(r"[0-9]{14,20}")
MAX_NAME = 64


def prepare(channel: Channel, driver_name: str, gnss: bool = False) -> tuple[Identity, Driver]:
    """Echo off, errors as numbers, who are you, the family's set-up commands, then its GNSS started, then registration reports
    switched on. NoAnswer or PortLost when that fails.

    Echo off is V.250 clause 6.2.4, errors as numbers 27.007 clause 9.1. A modem may refuse any of it: the channel bears echo
    and plain ERROR too.
    """
    channel.ask("ATE0", FIRST_DEADLINE_S)
    channel.ask("AT+CMEE=1", COMMAND_DEADLINE_S)
    answers = [channel.ask(command, COMMAND_DEADLINE_S) for command in ("AT+CGMI", "AT+CGMM", "AT+CGMR")]
    if not all(answer.final.ok and answer.lines for answer in answers[:2]):
        answers.append(channel.ask("ATI", COMMAND_DEADLINE_S))
    identity = identify(answers)
    driver = choose(driver_name, identity)
    if driver.transport != "at":  # the maker's name fits both, but what answers here is an AT port
        driver = drivers()[FALLBACK]
    for command in (*driver.setup_commands(identity), *(driver.gnss_commands(identity) if gnss else ())):
        answer = channel.ask(command, COMMAND_DEADLINE_S)
        if not answer.final.ok:
            log.warning("%s %s refuses %s: %s", identity.manufacturer, identity.model, command, answer.final.code)
    for command in WANTED:
        if command not in driver.setup_commands(identity):
            channel.ask(command, COMMAND_DEADLINE_S)
    return identity, driver


def prepare_web(channel: WebChannel, driver_name: str) -> tuple[Identity, Driver]:
    """The family of a stick that has only a web server: the one named, else the first whose questions it answers.

    A web page does not say of itself what the standard's commands say, so the identity stays empty. A family whose own kind of
    refusal comes (its session ended, it is busy) is taken where none answers: the polls then tell that.
    """
    identity = Identity()
    if driver_name != AUTO:
        driver = choose(driver_name, identity)
        for command in driver.setup_commands(identity):
            channel.ask(command, COMMAND_DEADLINE_S)
        return identity, driver
    refusing: Driver | None = None
    for driver in drivers().values():
        if driver.transport == "http":
            commands = (*driver.setup_commands(identity), *driver.poll_commands(identity))
            answers = [channel.ask(command, COMMAND_DEADLINE_S) for command in commands]
            if not driver.decode(answers, identity).empty:
                return identity, driver
            refusing = refusing or (driver if any(_its_own_fault(driver, answer) for answer in answers) else None)
    if refusing is not None:
        return identity, refusing
    raise NoAnswer("its web server answers no family's questions; name the driver")


def _its_own_fault(driver: Driver, answer: Response) -> bool:
    """Any web server has statuses and pages that are no family's."""
    named = driver.fault(answer) if driver.fault is not None else None
    return named is not None and named != "not_json"


def identify(responses: Iterable[Response]) -> Identity:
    """Manufacturer, model and revision from +CGMI, +CGMM, +CGMR (27.007 clauses 5.1 to 5.3) and, for what is missing, ATI.

    ATI is free text: labelled lines (``Model: EC25``), the three in their usual order, or that and then labels (``Quectel``,
    ``EC25``, ``Revision: …``).
    """
    found = {"manufacturer": "", "model": "", "revision": ""}
    of_command = {"AT+CGMI": "manufacturer", "AT+CGMM": "model", "AT+CGMR": "revision"}
    for response in responses:
        texts = [text for text in map(_text, response.lines) if text]
        key = of_command.get(response.command)
        if not response.final.ok or not texts:
            continue
        if key is not None:
            label = _LABEL.match(texts[0])
            found[key] = label.group(2) if label else texts[0]
            continue
        labelled = {m.group(1).lower(): m.group(2) for m in map(_LABEL.match, texts) if m}
        unlabelled = takewhile(lambda text: not _LABEL.match(text), texts)
        ordered = labelled | dict(zip((name for name in found if name not in labelled), unlabelled, strict=False))
        found = {name: value or ordered.get(name, "") for name, value in found.items()}
    return Identity(**{name: value.strip()[:MAX_NAME] for name, value in found.items()})


def _text(line: str) -> str:
    """A line of text without its prefix and quotes; empty when it holds what may be a serial number."""
    plain = ",".join(values(line)) if prefix(line) else line.strip().strip('"')
    return "" if _SERIAL_NUMBER.search(plain) else plain


# ---------------------------------------------------------------------------------------------------------------------
# A modem over its lifetime: opened, set up, lost, opened again under another number.


FIRST_BACK_OFF_S = 0.5
LONGEST_BACK_OFF_S = 8.0
"""Between attempts to open a port that is there but cannot be opened. One that is not there is looked for at every poll."""

RADIO_S = 15.0
"""+CFUN may take so long."""

RENEW_AGAIN_S = 30.0
"""A session that ended again sooner is not renewed within the poll."""

SILENT_POLLS = 3
"""After so many missed deadlines in a row the modem may have been reset: it is set up again when it answers."""


class Session:
    """Owned by one poller thread. ``driver`` and ``identity`` stay those of the last set-up while the modem is away.

    ``on_unsolicited`` gets what it says unasked. ``sim_secret``: when given, each set-up asks once for the SIM's number, and
    ``sim`` is its hash, None when the modem does not tell. ``gnss``: start it, too.
    """

    def __init__(
        self,
        access: Access,
        driver_name: str,
        wake_fd: int,
        on_unsolicited: Callable[[Unsolicited], None] | None = None,
        sim_secret: bytes | None = None,
        gnss: bool = False,
    ) -> None:
        self._access = access
        self._driver_name = driver_name
        self._gnss = gnss
        self._wake_fd = wake_fd
        self._on_unsolicited = on_unsolicited
        self._sim_secret = sim_secret
        self._ready = False
        self._silent = 0
        self._back_off_s = FIRST_BACK_OFF_S
        self._not_before = 0.0
        self._refusal = ""
        self._renew_not_before = 0.0
        self.channel: Conversation | None = None
        self.identity = Identity()
        self.driver: Driver | None = None
        self.sim: str | None = None
        self.switch_on = False
        """The radio may have been left off: it is switched on at the next set-up."""

    def prepare(self) -> bool:
        """Have the port open and the modem set up; True when that had to be done now. NoAnswer or PortLost when it failed."""
        channel = self._opened()
        if self._ready:
            return False
        try:
            if isinstance(channel, Channel):
                if self.switch_on:
                    self.switch_on = not channel.ask("AT+CFUN=1", RADIO_S).final.ok
                self.identity, self.driver = prepare(channel, self._driver_name, self._gnss)
                if self._sim_secret is not None:
                    self.sim = card_hash(channel, self._sim_secret)
            else:
                self.identity, self.driver = prepare_web(channel, self._driver_name)
        except PortLost:
            self.lost()
            raise
        name = f"{self.identity.manufacturer} {self.identity.model}".strip() or "a modem that does not say what it is"
        log.info("%s: %s, driver %s", self._access.name, name, self.driver.name)
        self._ready = True
        return True

    def ask_all(self, deadline_s: float) -> list[Response]:
        """One poll: the driver's command lines, one after the other, all within ``deadline_s``."""
        if self.channel is None or self.driver is None:
            raise PortLost(f"{self._access.name}: not open")
        until = time.monotonic() + deadline_s
        try:
            commands = self.driver.poll_commands(self.identity)
            answers = [self.channel.ask(command, until - time.monotonic()) for command in commands]
            if isinstance(self.channel, WebChannel) and session_ended(self.driver, answers) and self._may_renew():
                self.channel.renew(until)
                answers = [self.channel.ask(command, until - time.monotonic()) for command in commands]
        except PortLost:
            self.lost()
            raise
        except NoAnswer:
            self._silent += 1
            if self._silent >= SILENT_POLLS:
                self._ready = False
            raise
        self._silent = 0
        return answers

    def _may_renew(self) -> bool:
        """Once, and only after a while again: a stick that a new session does not mend is not to be asked twice at every poll."""
        now = time.monotonic()
        if now < self._renew_not_before:
            return False
        self._renew_not_before = now + RENEW_AGAIN_S
        return True

    def reopen(self) -> Conversation:
        """Close the port and open it now, whatever was owed and however often it was refused; PortLost when it cannot be."""
        self.lost()
        self._not_before = 0.0
        return self._opened()

    def lost(self) -> None:
        """The port is gone: close what is left of it."""
        self.close()
        self._silent = 0
        self._ready = False

    def close(self) -> None:
        if self.channel is not None:
            self.channel.close()
            self.channel = None

    def _opened(self) -> Conversation:
        try:
            where = self._access.look()
            moved = self.channel is not None and self._access.moved(self.channel, where)
        except PortLost:
            if self.channel is None:
                raise
            return self.channel  # only its name is gone; whether the port works is seen when it is used
        if moved:
            log.warning("%s: now leads to another device", self._access.name)
            self.lost()
        if self.channel is None:
            self.channel = self._open(where)
        return self.channel

    def _open(self, where: str) -> Conversation:
        if time.monotonic() < self._not_before:
            raise PortLost(self._refusal)
        try:
            channel = self._access.open(where, self._wake_fd)
        except PortLost as error:
            self._refusal = str(error)
            self._not_before = time.monotonic() + self._back_off_s
            self._back_off_s = min(2 * self._back_off_s, LONGEST_BACK_OFF_S)
            raise
        self._back_off_s = FIRST_BACK_OFF_S
        if isinstance(channel, Channel):
            channel.on_unsolicited = self._on_unsolicited
        return channel
