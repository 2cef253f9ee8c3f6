"""The bearer of a modem that ModemManager holds: PIN, roaming policy, connecting, and what was given. One state at a time."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandem.modem.mm_bus import BEARER, SIM, SIMPLE, Call, Refused, get_all
from tandem.modem.mm_decode import CONNECTED, DISABLED, FAILED, FAILED_REASONS, LOCKED, REGISTERED, Told
from tandem.modem.mm_modem import ManagedModem

log = logging.getLogger(__name__)

IP_TYPES = {"ipv4": 1, "ipv6": 2, "ipv4v6": 4}
"""MMBearerIpFamily."""

_METHODS = {1: "ppp", 2: "static", 3: "dhcp"}
"""MMBearerIpMethod."""

_SIM_PIN = 2
"""MMModemLock: the SIM's PIN. 1 is none; the others (PUK, PIN2 …) are never answered here."""

_ROAMING = (5, 7, 10)
FIRST_AGAIN_S, LONGEST_AGAIN_S = 10.0, 300.0
"""Between attempts to connect that failed."""


@dataclass(frozen=True)
class ConnectionSettings:
    """``pin_file``, ``password_file``: one line each. ``tried``: folder that remembers which PIN a SIM refused."""

    apn: str
    tried: Path
    pin_file: Path | None = None
    roaming: bool = False
    user: str | None = None
    password_file: Path | None = field(default=None, repr=False)
    ip_type: str = "ipv4v6"


@dataclass(frozen=True)
class Address:
    """What the network gave one bearer: ``family`` 4 or 6; ``method`` ppp, static or dhcp. None is "not told"."""

    family: int
    method: str | None
    address: str | None
    prefix: int | None
    gateway: str | None
    dns: tuple[str, ...]
    mtu: int | None


@dataclass(frozen=True)
class BearerGiven:
    """A connected bearer, read back."""

    interface: str | None
    addresses: tuple[Address, ...]

    def line(self) -> str:
        """For people."""
        told = [
            f"{a.address}/{a.prefix}" if a.address else f"IPv{a.family} by {a.method}"
            for a in self.addresses
            if a.method is not None
        ]
        return f"{self.interface or 'no interface'}: {', '.join(told) or 'no address'}"


class Connection:
    """Tended once a poll by the poller's thread. ``tell(state, detail)`` at each change of state.

    States: ``pin_needed`` (no PIN configured), ``pin_unusable``, ``pin_sent``, ``pin_refused`` (one try was made and there will be
    no other with this PIN), ``puk_needed``, ``sim_unusable``, ``searching``, ``registration_denied``, ``roaming_refused``,
    ``connecting``, ``connected``, ``not_connected`` (with the network's reason; tried again after 10 s to 5 min).
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        modem: ManagedModem,
        tell: Callable[[str, str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._modem, self._tell, self._clock = settings, modem, tell, clock
        self.state: str | None = None
        self.given: BearerGiven | None = None
        self._told: tuple[str, str] | None = None
        self._not_before = 0.0
        self._again_s = FIRST_AGAIN_S

    def tend(self, path: str, told: Told) -> None:
        """Look at what the poll told and do what is next, without waiting for it."""
        state = told.modem.get("State")
        if state != CONNECTED:
            self.given = None
        if state == FAILED:
            self._is("sim_unusable", FAILED_REASONS.get(told.modem.get("StateFailedReason", 0), "unknown"))
        elif state == LOCKED:
            self._unlock(told)
        elif isinstance(state, int) and state > DISABLED:
            self._unlocked()
            self._bear(path, state, told)

    def lost(self) -> None:
        """The modem is away, and with it whatever was under way and was told."""
        self.state = self.given = self._told = None

    # --- the PIN -------------------------------------------------------------------------------------------------------

    def _unlock(self, told: Told) -> None:
        """One try with one PIN, ever: three wrong ones lock the card. What was tried is remembered on disk before it is sent, by
        the PIN file's identity, so that a restart (also one in the middle) does not try the same again."""
        if told.modem.get("UnlockRequired") != _SIM_PIN:
            self._is("puk_needed", "the SIM asks for another code than its PIN; mend: unlock it in a phone")
            return
        file, answer = self._settings.pin_file, self._modem.outcome("SendPin")
        if file is None:
            self._is("pin_needed", "the SIM asks for its PIN; mend: pin_file in [path.modem.connection]")
            return
        try:
            pin, marker = self._pin(file)
            if isinstance(answer, Refused):
                if answer.denied:
                    marker.unlink(missing_ok=True)  # it never reached the card
                    self._not_before = self._clock() + LONGEST_AGAIN_S
                    raise ValueError(f"{answer.text}; mend: install the polkit rule")
                self._is("pin_refused", f"{answer.text}; mend: write the right PIN into {file}")
            if self._clock() < self._not_before or (self.state in ("pin_sent", "pin_refused") and marker.exists()):
                return
            left = told.modem.get("UnlockRetries", {}).get(_SIM_PIN)
            if isinstance(left, int) and left <= 1:
                self._is("pin_refused", "the card has one try left, which is for people; mend: unlock it in a phone")
            elif marker.exists():
                self._is(
                    "pin_refused",
                    f"this PIN was tried before and did not open it; mend: write the right one into {file}",
                )
            elif told.modem.get("Sim", "/") != "/":
                marker.parent.mkdir(parents=True, exist_ok=True)
                marker.touch()
                self._modem.begin("SendPin", Call(told.modem["Sim"], SIM, "SendPin", "s", (pin,)))
                self._is("pin_sent", "the PIN was sent, once")
        except ValueError as error:
            self._is("pin_unusable", str(error))
        except OSError as error:
            self._is("pin_unusable", f"{error.filename}: {error.strerror}; a try that cannot be remembered is not made")

    def _unlocked(self) -> None:
        """The card is open, whoever opened it: what was remembered of tries is no longer true."""
        if self.state == "pin_unusable":
            self._not_before = 0.0
        if self._settings.pin_file is not None and self.state in (None, "pin_sent", "pin_refused"):
            with contextlib.suppress(OSError, ValueError):  # a file that is gone was no try
                self._pin(self._settings.pin_file)[1].unlink(missing_ok=True)

    def _pin(self, file: Path) -> tuple[str, Path]:
        """The PIN, and the file whose being there means that it was tried."""
        told = file.stat()
        try:
            pin = file.read_text(encoding="ascii").strip()
        except UnicodeDecodeError:
            pin = ""
        if not (pin.isdigit() and 4 <= len(pin) <= 8):
            raise ValueError(f"{file}: a PIN has 4 to 8 digits")
        identity = f"{file.resolve()} {told.st_mtime_ns} {told.st_ino}"
        return pin, self._settings.tried / f"pin-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"

    # --- the bearer ----------------------------------------------------------------------------------------------------

    def _bear(self, path: str, state: int, told: Told) -> None:
        registered = told.registration.get("RegistrationState")
        if registered == 3:
            self._is("registration_denied", "the network does not take this SIM")
        elif not self._settings.roaming and registered in _ROAMING:
            network = told.registration.get("OperatorCode") or "an unknown network"
            self._is("roaming_refused", f"registered with {network}, which is not this SIM's own")
            self._modem.outcome("Disconnect")  # of the poll before
            if state == CONNECTED:
                self._modem.begin("Disconnect", Call(path, SIMPLE, "Disconnect", "o", ("/",)))
        elif state == CONNECTED:
            self._connected(told)
        elif state == REGISTERED or self._modem.pending("Connect"):
            self._connect(path)
        elif state < REGISTERED:
            self._is("searching", "not registered with a network")

    def _connect(self, path: str) -> None:
        outcome = self._modem.outcome("Connect")
        if isinstance(outcome, Refused):
            self._is("not_connected", f"{outcome.text or outcome.name}; tried again in {self._again_s:.0f} s")
            self._not_before = self._clock() + self._again_s
            self._again_s = min(2 * self._again_s, LONGEST_AGAIN_S)
        if self._modem.pending("Connect") or self._clock() < self._not_before:
            return
        try:
            wanted = self._wanted()
        except ValueError as error:
            self._is("not_connected", str(error))
            return
        self._modem.begin("Connect", Call(path, SIMPLE, "Connect", "a{sv}", (wanted,)))
        self._is("connecting", f"with {self._settings.apn}")

    def _wanted(self) -> dict[str, tuple[str, Any]]:
        settings = self._settings
        found: dict[str, tuple[str, Any]] = {
            "apn": ("s", settings.apn),
            "allow-roaming": ("b", settings.roaming),
            "ip-type": ("u", IP_TYPES[settings.ip_type]),
        }
        if settings.user is not None:
            found["user"] = ("s", settings.user)
        if settings.password_file is not None:
            try:
                found["password"] = ("s", settings.password_file.read_text(encoding="utf-8").strip())
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or "is not UTF-8 text"
                raise ValueError(f"{settings.password_file}: {why}") from error
        return found

    def _connected(self, told: Told) -> None:
        """Read the bearer back at every poll: an operator may change the address under a bearer that stays."""
        self._modem.outcome("Connect")
        self._again_s, self._not_before = FIRST_AGAIN_S, 0.0
        answer = self._modem.outcome("Bearer")
        if isinstance(answer, Mapping):
            self.given = given(answer)
            self._is("connected", self.given.line())
        bearers = told.modem.get("Bearers", [])
        if bearers:
            self._modem.begin("Bearer", get_all(str(bearers[-1]), BEARER))

    def _is(self, state: str, detail: str) -> None:
        """The state, told when it or its detail is another one."""
        self.state = state
        if self._told != (state, detail):
            self._told = state, detail
            log.info("connection: %s: %s", state, detail)
            self._tell(state, detail)


def given(properties: Mapping[str, Any]) -> BearerGiven:
    """A Bearer's properties: ``Ip4Config`` and ``Ip6Config``, each with its method; 0 is "none"."""
    addresses = []
    for family, name in ((4, "Ip4Config"), (6, "Ip6Config")):
        config = properties.get(name)
        if not isinstance(config, Mapping) or not config.get("method"):
            continue
        dns = tuple(str(config[key]) for key in ("dns1", "dns2", "dns3") if config.get(key))
        addresses.append(
            Address(
                family,
                _METHODS.get(config["method"]),
                config.get("address") or None,
                config.get("prefix") or None,
                config.get("gateway") or None,
                dns,
                config.get("mtu") or None,
            )
        )
    return BearerGiven(properties.get("Interface") or None, tuple(addresses))
