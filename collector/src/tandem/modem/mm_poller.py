"""A modem polled or kept connected through ModemManager: its bearer (PIN, roaming, connecting, what was given), and the same ``Poll``
records as by AT."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandem.at.dialogue import AtError, NoAnswer, PortLost
from tandem.modem.mm_bus import BEARER, SIM, SIMPLE, Bus, BusLost, Call, Refused, get_all, system_bus
from tandem.modem.mm_modem import (
    CONNECTED,
    DISABLED,
    FAILED,
    FAILED_REASONS,
    LOCKED,
    REGISTERED,
    Answer,
    ManagedModem,
    ModemProperties,
    card_managed,
    decode,
)
from tandem.modem.poll import NO_ANSWER, Poll
from tandem.modem.poller import DEADLINE_SHARE, ModemAnswer, Poller, PollThread
from tandem.modem.reset import CFUN, CannotStepError, StepFailedError
from tandem.modem.sim import Card

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
    """What the network gave one bearer: ``family`` 4 or 6; ``method`` ppp, static or dhcp. None is "not reported"."""

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
        words = [
            f"{a.address}/{a.prefix}" if a.address else f"IPv{a.family} by {a.method}"
            for a in self.addresses
            if a.method is not None
        ]
        return f"{self.interface or 'no interface'}: {', '.join(words) or 'no address'}"


class Connection:
    """Updated once a poll by the poller's thread. ``tell(state, detail)`` at each change of state.

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
        self._reported: tuple[str, str] | None = None
        self._not_before = 0.0
        self._again_s = FIRST_AGAIN_S

    def update(self, path: str, properties: ModemProperties) -> None:
        """Look at what the poll reported and do what is next, without waiting for it."""
        state = properties.modem.get("State")
        if state != CONNECTED:
            self.given = None
        if state == FAILED:
            self._set_state("sim_unusable", FAILED_REASONS.get(properties.modem.get("StateFailedReason", 0), "unknown"))
        elif state == LOCKED:
            self._enter_pin(properties)
        elif isinstance(state, int) and state > DISABLED:
            self._forget_tried_pin()
            self._update_bearer(path, state, properties)

    def lost(self) -> None:
        """The modem is away, and with it whatever was under way and was reported."""
        self.state = self.given = self._reported = None

    # --- the PIN -------------------------------------------------------------------------------------------------------

    def _enter_pin(self, properties: ModemProperties) -> None:
        """One try with one PIN, ever: three wrong ones lock the card. What was tried is remembered on disk before it is sent, by
        the PIN file's identity, so that a restart (also one in the middle) does not try the same again."""
        if properties.modem.get("UnlockRequired") != _SIM_PIN:
            self._set_state("puk_needed", "the SIM asks for another code than its PIN; hint: unlock it in a phone")
            return
        file, answer = self._settings.pin_file, self._modem.outcome("SendPin")
        if file is None:
            self._set_state("pin_needed", "the SIM asks for its PIN; hint: pin_file in [path.modem.connection]")
            return
        try:
            pin, marker = self._pin(file)
            if isinstance(answer, Refused):
                if answer.denied:
                    marker.unlink(missing_ok=True)  # it never reached the card
                    self._not_before = self._clock() + LONGEST_AGAIN_S
                    raise ValueError(f"{answer.text}; hint: install the polkit rule")
                self._set_state("pin_refused", f"{answer.text}; hint: write the right PIN into {file}")
            if self._clock() < self._not_before or (self.state in ("pin_sent", "pin_refused") and marker.exists()):
                return
            left = properties.modem.get("UnlockRetries", {}).get(_SIM_PIN)
            if isinstance(left, int) and left <= 1:
                self._set_state(
                    "pin_refused", "the card has one try left, which is for people; hint: unlock it in a phone"
                )
            elif marker.exists():
                self._set_state(
                    "pin_refused",
                    f"this PIN was tried before and did not open it; hint: write the right one into {file}",
                )
            elif properties.modem.get("Sim", "/") != "/":
                marker.parent.mkdir(parents=True, exist_ok=True)
                marker.touch()
                self._modem.begin("SendPin", Call(properties.modem["Sim"], SIM, "SendPin", "s", (pin,)))
                self._set_state("pin_sent", "the PIN was sent, once")
        except ValueError as error:
            self._set_state("pin_unusable", str(error))
        except OSError as error:
            self._set_state(
                "pin_unusable", f"{error.filename}: {error.strerror}; a try that cannot be remembered is not made"
            )

    def _forget_tried_pin(self) -> None:
        """The card is open, whoever opened it: what was remembered of tries is no longer true."""
        if self.state == "pin_unusable":
            self._not_before = 0.0
        if self._settings.pin_file is not None and self.state in (None, "pin_sent", "pin_refused"):
            with contextlib.suppress(OSError, ValueError):  # a file that is gone was no try
                self._pin(self._settings.pin_file)[1].unlink(missing_ok=True)

    def _pin(self, file: Path) -> tuple[str, Path]:
        """The PIN, and the file whose being there means that it was tried."""
        stat = file.stat()
        try:
            pin = file.read_text(encoding="ascii").strip()
        except UnicodeDecodeError:
            pin = ""
        if not (pin.isdigit() and 4 <= len(pin) <= 8):
            raise ValueError(f"{file}: a PIN has 4 to 8 digits")
        identity = f"{file.resolve()} {stat.st_mtime_ns} {stat.st_ino}"
        return pin, self._settings.tried / f"pin-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"

    # --- the bearer ----------------------------------------------------------------------------------------------------

    def _update_bearer(self, path: str, state: int, properties: ModemProperties) -> None:
        registered = properties.registration.get("RegistrationState")
        if registered == 3:
            self._set_state("registration_denied", "the network does not take this SIM")
        elif not self._settings.roaming and registered in _ROAMING:
            network = properties.registration.get("OperatorCode") or "an unknown network"
            self._set_state("roaming_refused", f"registered with {network}, which is not this SIM's own")
            self._modem.outcome("Disconnect")  # of the poll before
            if state == CONNECTED:
                self._modem.begin("Disconnect", Call(path, SIMPLE, "Disconnect", "o", ("/",)))
        elif state == CONNECTED:
            self._connected(properties)
        elif state == REGISTERED or self._modem.pending("Connect"):
            self._connect(path)
        elif state < REGISTERED:
            self._set_state("searching", "not registered with a network")

    def _connect(self, path: str) -> None:
        outcome = self._modem.outcome("Connect")
        if isinstance(outcome, Refused):
            self._set_state("not_connected", f"{outcome.text or outcome.name}; tried again in {self._again_s:.0f} s")
            self._not_before = self._clock() + self._again_s
            self._again_s = min(2 * self._again_s, LONGEST_AGAIN_S)
        if self._modem.pending("Connect") or self._clock() < self._not_before:
            return
        try:
            wanted = self._wanted()
        except ValueError as error:
            self._set_state("not_connected", str(error))
            return
        self._modem.begin("Connect", Call(path, SIMPLE, "Connect", "a{sv}", (wanted,)))
        self._set_state("connecting", f"with {self._settings.apn}")

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

    def _connected(self, properties: ModemProperties) -> None:
        """Read the bearer back at every poll: an operator may change the address under a bearer that stays."""
        self._modem.outcome("Connect")
        self._again_s, self._not_before = FIRST_AGAIN_S, 0.0
        answer = self._modem.outcome("Bearer")
        if isinstance(answer, Mapping):
            self.given = given(answer)
            self._set_state("connected", self.given.line())
        bearers = properties.modem.get("Bearers", [])
        if bearers:
            self._modem.begin("Bearer", get_all(str(bearers[-1]), BEARER))

    def _set_state(self, state: str, detail: str) -> None:
        """The state, told when it or its detail is another one."""
        self.state = state
        if self._reported != (state, detail):
            self._reported = state, detail
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


# ---------------------------------------------------------------------------------------------------------------------
# A thread that polls one modem through ModemManager once a period: for modems that have no AT port to spare.


DRIVER = "modemmanager"
"""The tag ``driver`` of its records."""

PREFIX = f"{DRIVER}:"
"""Of a configured port that is a ModemManager device."""


class ManagedPoller(PollThread):
    """A ``PollThread`` for the modem that ModemManager knows by ``device``. ``connection``: keep it connected, if given;
    ``on_state(state, detail)`` is called, from this thread, when the connection's state changes (see ``Connection``), and ``on_given``
    at every poll that was answered what the network gave, None while not connected. ``measuring``: whether levels and cell are wanted.

    ``open_bus`` gets a descriptor that ends its waits when readable; None: the system bus.
    """

    def __init__(
        self,
        path: str,
        operator: str | None,
        device: str,
        period_s: float,
        on_poll: Callable[[Poll], None],
        connection: ConnectionSettings | None = None,
        on_state: Callable[[str, str], None] = lambda _state, _detail: None,
        open_bus: Callable[[int], Bus] | None = None,
        on_given: Callable[[BearerGiven | None], None] = lambda _given: None,
        measuring: bool = True,
    ) -> None:
        super().__init__(path, operator, period_s, on_poll)
        opener = open_bus or system_bus
        self._modem = ManagedModem(device, lambda: opener(self._executor.wake_fd), measuring=measuring)
        self._connection = None if connection is None else Connection(connection, self._modem, on_state)
        self._on_given = on_given
        self._reported: ModemProperties | None = None

    def reset(self, step: str, timeout: float) -> str:
        """``cfun`` switches the modem off and on by ModemManager; ``at`` is not ours to do here."""
        return self._executor.ask(lambda: self._reset(step, time.monotonic() + timeout), timeout)

    def card(self, timeout: float) -> Card | None:  # noqa: ARG002 the last poll has it already
        if self._reported is None:
            raise NoAnswer("ModemManager has not told of the modem")
        return card_managed(self._reported.modem)

    @property
    def given(self) -> BearerGiven | None:
        """What the network gave, while connected."""
        return None if self._connection is None else self._connection.given

    def _reset(self, step: str, until: float) -> str:
        if step != CFUN:
            raise CannotStepError("ModemManager holds the port")
        try:
            self._modem.switch(until)
        except AtError as error:
            raise StepFailedError(str(error)) from error
        return "disabled and enabled by ModemManager"

    def _listen(self, until: float) -> bool:
        if self._modem.bus is None:
            return False
        try:
            self._modem.bus.wait(until)
        except BusLost as error:
            self._log_once(NO_ANSWER, error)
            self._modem.close()
        return True

    def _close(self) -> None:
        self._modem.close()

    def _ask(self) -> ModemAnswer:
        try:
            answer = self._modem.poll(time.monotonic() + self._period_s * DEADLINE_SHARE)
        except (NoAnswer, PortLost):
            self._reported = None
            self._stuck.forget()
            if self._connection is not None:
                self._connection.lost()
            raise
        ended_ns, self._reported = time.monotonic_ns(), answer.properties
        reading = self._in_range(decode(answer.properties))
        if self._connection is not None:
            self._update_connection(self._connection, answer)
        return ModemAnswer(ended_ns, reading, None, (answer.path, answer.changes, reading))

    def _who(self) -> tuple[str | None, str | None]:
        return DRIVER, self._modem.identity.model or None

    def _update_connection(self, connection: Connection, answer: Answer) -> None:
        try:
            connection.update(answer.path, answer.properties)
            self._on_given(connection.given)
        except BusLost as error:
            self._log_once(NO_ANSWER, error)
            self._modem.close()


# ---------------------------------------------------------------------------------------------------------------------
# A modem with an AT port to spare: the collector polls it there, and ModemManager, which has the other port, keeps it
# connected.


KEEP_S = 2.0
"""How often the connection is looked after: an operator who takes it away is noticed within so long."""


class ConnectedPoller:
    """Two threads of one path. ``poller`` makes its records and does the steps of the recovery ladder; ``keeper`` has a connection
    and measures nothing, so that what it asks of ModemManager costs the modem nothing."""

    def __init__(self, poller: Poller, keeper: ManagedPoller) -> None:
        self._poller, self._keeper = poller, keeper

    def start(self) -> None:
        self._poller.start()
        self._keeper.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End both, also when one has not ended within ``timeout`` seconds, which is a TimeoutError."""
        try:
            self._poller.stop(timeout)
        finally:
            self._keeper.stop(timeout)

    def reset(self, step: str, timeout: float) -> str:
        """As a ``PollThread``, by the collector's own port."""
        return self._poller.reset(step, timeout)

    def card(self, timeout: float) -> Card | None:
        """As a ``PollThread``, by the collector's own port."""
        return self._poller.card(timeout)
