"""The steps of the recovery ladder: a dialogue or a session begun anew, the radio off and on, a stick's own restart, the USB device reset,
its port's power cut."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tandem.at.channel import Channel
from tandem.at.dialogue import NoAnswer, PortLost
from tandem.at.grammar import prefix
from tandem.modem.session import RADIO_S, Session
from tandem.modem.usb import USB_PATH, place_of
from tandem.modem.web import WebChannel, page_fault

AT, SESSION, CFUN, REBOOT, USB, POWER = "at", "session", "cfun", "reboot", "usb", "power"

STEPS = (AT, CFUN, USB, POWER)
"""Of a modem with an AT port, or that ModemManager has, in order."""

WEB_STEPS = (SESSION, REBOOT, USB, POWER)
"""Of a stick's web server, in order: a new session, the restart that its own interface offers, and from outside as any other."""

ALL_STEPS = (AT, SESSION, CFUN, REBOOT, USB, POWER)

ANSWER_S = 2.0


class CannotStepError(Exception):
    """This machine or this modem has no such step; nothing was done. The text says why."""


class StepFailedError(Exception):
    """The step was tried and did not work. The text says what was seen."""


class SimLockedError(Exception):
    """The SIM asks for its PIN or PUK: a modem that waits for a person is not to be reset."""


# ---------------------------------------------------------------------------------------------------------------------
# The two highest steps of the recovery ladder: reset a modem's USB device, and cut its port's power.


USBDEVFS_RESET = 0x5514
"""``_IO('U', 20)`` of linux/usbdevice_fs.h."""

OFF_S = 2
"""How long the power is away; modems with large capacitors need more than one second."""

UNAUTHORIZED_S = 1.0
UHUBCTL_S = 30.0


@dataclass(frozen=True)
class UsbPlace:
    """Where a modem is plugged in: ``path`` as the kernel names it, ``1-1.2``. ``hub`` and ``port`` as uhubctl wants them."""

    path: str

    @property
    def hub(self) -> str:
        """``1-1`` for ``1-1.2``; ``1`` (a root hub) for ``1-2``."""
        return self.path.rpartition("." if "." in self.path else "-")[0]

    @property
    def port(self) -> str:
        """The port of that hub."""
        return self.path.rpartition("." if "." in self.path else "-")[2]


def usb_place(port: str, sys: Path = Path("/sys")) -> UsbPlace | None:
    """The place of the modem that owns a device file (or a link to one) or a network interface, or that is named by USB or sysfs
    path. None when it is no USB device or not there."""
    named = port.rpartition("/")[2] if port.startswith("/sys/") or "/" not in port else ""
    path = named if USB_PATH.match(named) else place_of(port, sys)
    return None if path is None else UsbPlace(path)


def usb_reset(place: UsbPlace, sys: Path = Path("/sys"), dev: Path = Path("/dev")) -> str:
    """Have the device enumerated anew: by its device file, else by taking its authorisation away for a second. CannotStepError when
    it is not plugged in or neither may be written; StepFailedError."""
    folder = sys / "bus/usb/devices" / place.path
    try:
        bus, number = (int((folder / name).read_text()) for name in ("busnum", "devnum"))
    except (OSError, ValueError) as error:
        raise CannotStepError(f"no USB device at {place.path}") from error
    file = dev / "bus/usb" / f"{bus:03d}" / f"{number:03d}"
    try:
        opened = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    except OSError as error:
        return _authorise(folder / "authorized", f"{file}: {error.strerror}")
    try:
        fcntl.ioctl(opened, USBDEVFS_RESET, 0)
    except OSError as error:
        if error.errno != 19:  # ENODEV: it came back as another device, which is as good
            raise StepFailedError(f"{place.path}: USB reset: {error.strerror}") from error
    finally:
        os.close(opened)
    return f"USB device {place.path} reset"


def _authorise(file: Path, before: str) -> str:
    try:
        file.write_text("0")
    except OSError as error:
        raise CannotStepError(f"{before}; {file}: {error.strerror}") from error
    time.sleep(UNAUTHORIZED_S)
    try:
        file.write_text("1")
    except OSError as error:
        raise StepFailedError(f"{file}: {error.strerror}") from error
    return f"USB device {file.parent.name} unauthorised and authorised"


def port_power(place: UsbPlace) -> str:
    """Off and on by uhubctl. CannotStepError when that is missing, may not, or the hub cannot switch this port alone."""
    program = shutil.which("uhubctl") or shutil.which("uhubctl", path="/usr/sbin:/sbin")
    if program is None:
        raise CannotStepError("uhubctl is not installed")
    seen = _uhubctl([program, "-l", place.hub])
    if not switches_alone(seen.stdout, place.hub):
        said = next(
            (line.strip() for line in (seen.stdout + seen.stderr).splitlines() if line.strip()), "says nothing of it"
        )
        raise CannotStepError(f"hub {place.hub} cannot switch one port's power: {said}")
    done = _uhubctl([program, "-a", "cycle", "-d", str(OFF_S), "-l", place.hub, "-p", place.port])
    if done.returncode != 0:
        said = next((line.strip() for line in done.stderr.splitlines() if line.strip()), f"status {done.returncode}")
        raise StepFailedError(f"uhubctl: {said}")
    return f"power of hub {place.hub} port {place.port} off and on"


def switches_alone(listing: str, hub: str) -> bool:
    """Whether uhubctl's list has the hub with per-port switching: a ganged one would take the other modem's power too."""
    for line in listing.splitlines():
        match = re.match(r"Current status for hub (\S+) \[(.*)\]", line)
        if match and match.group(1) == hub:
            return "ppps" in re.split(r"[ ,]+", match.group(2))
    return False


def _uhubctl(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            arguments, capture_output=True, text=True, errors="replace", timeout=UHUBCTL_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise StepFailedError(f"uhubctl did not end within {UHUBCTL_S:.0f} s") from error
    except OSError as error:
        raise CannotStepError(f"{arguments[0]}: {error.strerror}") from error


# ---------------------------------------------------------------------------------------------------------------------
# The two lowest steps of the recovery ladder at a stick's web server: a new session, and the device's own restart.


_DONE = re.compile(r"<response>\s*OK\s*</response>|\"result\"\s*:\s*\"(?:success|0)\"", re.IGNORECASE)
"""HiLink's and goform's way of saying that it will be done."""


def reset_web(session: Session, channel: WebChannel, step: str) -> str:
    """Do ``session`` or ``reboot``; one line of what was done. CannotStepError, StepFailedError; NoAnswer and PortLost as the channel."""
    driver = session.driver
    if driver is None:
        raise CannotStepError("its family is not known: nothing was ever read of it")
    if step == SESSION:
        channel.renew(time.monotonic() + ANSWER_S)
        wrong = page_fault(driver, channel.ask(driver.poll_commands(session.identity)[0], ANSWER_S))
        if wrong is not None:
            raise StepFailedError(f"a new session was taken, and the answer is {wrong}")
        return "a new session was taken, its web server answers"
    if step != REBOOT:
        raise CannotStepError("a stick's web server takes no AT commands")
    if driver.reboot_command is None:
        raise CannotStepError(f"how a modem of the family {driver.name} is started anew is not known")
    answer = channel.ask(driver.reboot_command, ANSWER_S)
    wrong = page_fault(driver, answer)
    text = " ".join(answer.lines)
    if wrong is not None or not _DONE.search(text):
        raise StepFailedError(f"it does not start anew: {wrong or text[:60] or 'it says nothing'}")
    session.lost()
    return "told to start anew by its web server"


# ---------------------------------------------------------------------------------------------------------------------
# The two lowest steps of the recovery ladder. At an AT port: start the dialogue anew, and switch the radio off and
# on.


def reset(session: Session, step: str) -> str:
    """Do ``at`` or ``cfun``, of a web server ``session`` or ``reboot``; one line of what was done. CannotStepError, StepFailedError or
    SimLockedError. Owner's thread only."""
    try:
        channel = session.reopen()
    except PortLost as error:
        raise CannotStepError(f"there is no port: {error}") from error
    try:
        if isinstance(channel, WebChannel):
            return reset_web(session, channel, step)
        if step == AT:
            return _dialogue(channel)
        if step == CFUN:
            return _radio(session, channel)
    except PortLost as error:
        session.lost()
        raise StepFailedError(str(error)) from error
    except NoAnswer as error:
        raise StepFailedError(str(error)) from error
    raise CannotStepError(f"{step} is no step of an AT port")


def _dialogue(channel: Channel) -> str:
    """Port opened anew, AT (V.250 clause 5.2.1), ATZ (6.1.1). Not +CFUN=1,1, which takes the modem off the bus."""
    channel.ask("AT", ANSWER_S)
    channel.ask("ATZ", ANSWER_S)
    pin = channel.ask("AT+CPIN?", ANSWER_S)  # 27.007 clause 8.3
    wants_code = [line for line in pin.lines if prefix(line) == "+CPIN" and "READY" not in line.upper()]
    if wants_code or pin.final.code in ("cme_error 11", "cme_error 12"):
        raise SimLockedError(wants_code[0] if wants_code else pin.final.code)
    return "port opened anew, answers AT and ATZ"


def _radio(session: Session, channel: Channel) -> str:
    """Radio off and on (27.007 clause 8.2). A modem that did not confirm the second is switched on at its next set-up."""
    session.switch_on = True
    off = channel.ask("AT+CFUN=4", RADIO_S)
    on = channel.ask("AT+CFUN=1", RADIO_S)
    if not on.final.ok:
        raise StepFailedError(f"AT+CFUN=1: {on.final.code}")
    session.switch_on = False
    return "radio switched off and on" if off.final.ok else f"radio switched on; AT+CFUN=4: {off.final.code}"
