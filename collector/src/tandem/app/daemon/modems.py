"""The modems of a running collector: their pollers, made from the configuration, the recovery of those that fall silent, and the addresses
of connections that ModemManager makes."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

from tandem.app.config import Config
from tandem.app.config_schema import ModemConfig, PathConfig
from tandem.app.runs.executor import RunScheduler
from tandem.at.dialogue import AtError, Unsolicited
from tandem.experiment.base import MissingRequirementError
from tandem.modem.families import UnknownDriver
from tandem.modem.mm_poller import (
    KEEP_S,
    PREFIX,
    Address,
    BearerGiven,
    ConnectedPoller,
    ConnectionSettings,
    ManagedPoller,
)
from tandem.modem.poll import NO_ANSWER, PORT_LOST, Poll, registration_record
from tandem.modem.poller import Poller, PollThread
from tandem.modem.recovery import INTERRUPTING, Due, RecoveryEvent, RecoverySettings, RecoveryStateMachine, Sickness
from tandem.modem.reset import (
    AT,
    CFUN,
    REBOOT,
    SESSION,
    USB,
    WEB_STEPS,
    CannotStepError,
    SimLockedError,
    StepFailedError,
    UsbPlace,
    port_power,
    usb_place,
    usb_reset,
)
from tandem.modem.session import access
from tandem.modem.sim import Card, SecretError, SimWatch, secret_of
from tandem.modem.web import helped_by_restart
from tandem.mptcp import iproute
from tandem.mptcp.iproute import IpError
from tandem.mptcp.paths import PathEvent
from tandem.schema.record import Record, Value

log = logging.getLogger(__name__)

ModemPoller = PollThread | ConnectedPoller
Polled = Poll | PathEvent | list[Record]
"""What comes of a poller."""

STOP_S = 3.0
CARD_S = 15.0
"""For the question who the SIM is: six commands of two seconds at the most, behind a poll."""

SILENT = (NO_ANSWER, PORT_LOST)
LOCKED = ("cme_error 11", "cme_error 12")
"""SIM PIN and PUK required, 3GPP TS 27.007 clause 9.2.1."""

RESET_S = {AT: 12.0, SESSION: 12.0, CFUN: 45.0, REBOOT: 12.0}
"""How long a poller has for a step: its poll under way, and the commands' own deadlines."""

NOT_MANAGED = {
    NO_ANSWER: "ModemManager does not answer",
    PORT_LOST: "ModemManager has no such modem; hint: mmcli -L, and whether it sees the modem's other AT port",
}

LOOK_AGAIN_S = 30.0
"""Somebody may take a bearer's addresses away; then they are missing for so long at most."""
_STATIC = "static"


class Polling:
    """All modems' pollers, and the ``recovery`` of the modems that they lose (None: off). ``actions``: what can be done to each; ``put``
    takes what comes of pollers and of recovery, from any thread; ``measuring``: never interrupted by a step."""

    def __init__(
        self,
        config: Config,
        poller: Callable[[PathConfig, float, Callable[[Polled], None]], ModemPoller],
        actions: Callable[[PathConfig, ModemPoller], ModemActions],
        put: Callable[[Polled], None],
        measuring: RunScheduler,
    ) -> None:
        paths = [path for path in config.paths if path.modem is not None]
        self._pollers = {path.name: poller(path, config.period_s, put) for path in paths}
        self.recovery: Recovery | None = None
        if config.recovery.enabled:
            self.recovery = Recovery(
                RecoverySettings(**dataclasses.asdict(config.recovery)),
                {path.name: actions(path, self._pollers[path.name]) for path in paths},
                config.operators,
                put,
                {
                    p.name: WEB_STEPS
                    for p in paths
                    if p.modem is not None and (p.modem.port or "").startswith("http://")
                },
                measuring,
            )

    def start(self) -> None:
        for poller in self._pollers.values():
            poller.start()

    def stop(self) -> None:
        """End. A poller that is still busy is left behind, with a line in the log."""
        if self.recovery is not None:
            self.recovery.stop()
        for poller in self._pollers.values():
            try:
                poller.stop(STOP_S)
            except TimeoutError as error:
                log.warning("%s", error)

    def cards(self, found: Callable[[str, Card | None, str | None], None]) -> list[str]:
        """Have the SIM of each modem looked at, by a thread a modem; ``found`` gets its path, the card, why it could not be. The paths."""
        for path, poller in self._pollers.items():
            threading.Thread(target=_card, args=(path, poller, found), name=f"card-{path}", daemon=True).start()
        return list(self._pollers)


def _card(path: str, poller: ModemPoller, found: Callable[[str, Card | None, str | None], None]) -> None:
    try:
        found(path, poller.card(CARD_S), None)
    except (AtError, TimeoutError) as error:
        found(path, None, str(error) or "it did not answer in time")


# ---------------------------------------------------------------------------------------------------------------------
# Pollers.


def modem_poller(
    path: PathConfig, period_s: float, put: Callable[[Polled], None], interface_of: Callable[[PathConfig], str | None]
) -> ModemPoller:
    """Of the path's modem. ``interface_of``: the interface by which a stick's web server is reached now. MissingRequirementError when it
    cannot be polled as configured."""
    modem = path.modem
    if modem is None:
        raise ValueError(f"path {path.name} has no modem")
    if modem.port is not None and modem.port.startswith(PREFIX):
        return _managed(path, modem, modem.port.removeprefix(PREFIX), period_s, put, put)
    try:
        reached = access(modem.port, modem.usb, partial(interface_of, path))
        sim = None
        if modem.sim is not None:
            secret = secret_of(modem.sim_secret)
            sim = SimWatch(modem.sim, secret, lambda detail: put(PathEvent("sim_mismatch", path.name, detail)))
        unasked = partial(_unasked, path, put)
        poller = Poller(path.name, path.operator, reached, modem.driver, period_s, put, unasked, sim, path.gnss)
    except UnknownDriver as error:
        raise MissingRequirementError(f"path {path.name}: {error}") from error
    except SecretError as error:
        raise MissingRequirementError(str(error)) from error
    if modem.connection is None or modem.usb is None:
        return poller
    # An interface behind a colon is the collector's own port's: ModemManager knows the modem by its place.
    place, once = modem.usb.partition(":")[0], OnceUntilChanged(path.name, put)
    return ConnectedPoller(poller, _managed(path, modem, place, KEEP_S, once.polled, put, measuring=False))


def _managed(
    path: PathConfig,
    modem: ModemConfig,
    device: str,
    period_s: float,
    polled: Callable[[Poll], None],
    put: Callable[[PathEvent], None],
    measuring: bool = True,
) -> ManagedPoller:
    def tell(detail: str) -> None:
        put(PathEvent("path_state", path.name, detail))

    return ManagedPoller(
        path.name,
        path.operator,
        device,
        period_s,
        polled,
        None if modem.connection is None else ConnectionSettings(**dataclasses.asdict(modem.connection)),
        lambda state, detail: tell(f"{state}: {detail}"),
        on_given=BearerAddresses(lambda detail: tell(f"no_address: {detail}")).keep,
        measuring=measuring,
    )


class OnceUntilChanged:
    """Tells that ModemManager does not have a modem, or does not answer: the records are another poller's, and show neither."""

    def __init__(self, path: str, put: Callable[[PathEvent], None]) -> None:
        self._path, self._put = path, put
        self._said: str | None = None

    def polled(self, poll: Poll) -> None:
        if poll.failure == self._said:
            return
        self._said = poll.failure
        if poll.failure is not None:
            self._put(PathEvent("path_state", self._path, f"not_managed: {NOT_MANAGED[poll.failure]}"))


def _unasked(path: PathConfig, put: Callable[[list[Record]], None], line: Unsolicited) -> None:
    record = registration_record(path.name, path.operator, line)
    if record is not None:
        put([record])


class ModemActions:
    """What can be done to one modem that does not answer. Called by one thread."""

    def __init__(self, path: PathConfig, poller: ModemPoller) -> None:
        if path.modem is None:
            raise ValueError(f"path {path.name} has no modem")
        # A place on USB is named by the device: the interface behind a colon is not reset by itself.
        self._port = (path.modem.usb or "").partition(":")[0] or (path.modem.port or "").removeprefix(PREFIX)
        if self._port.startswith("http://"):  # a stick's web server is plugged in where its network interface is
            self._port = (path.usb or "").partition(":")[0] or path.interface or self._port
        self._poller = poller
        self._place: UsbPlace | None = None

    def seen(self) -> None:
        """It answers: now is the time to note where it is plugged in, which another port may be."""
        self._place = usb_place(self._port)

    def do(self, step: str) -> str:
        """Do a step of ``tandem.modem.reset.STEPS``; one line of what was done. Raises what is named there, or TimeoutError."""
        if step in RESET_S:
            return self._poller.reset(step, RESET_S[step])
        place = usb_place(self._port) or self._place
        if place is None:
            raise CannotStepError(f"{self._port} is on no USB port that is known")
        return usb_reset(place) if step == USB else port_power(place)


# ---------------------------------------------------------------------------------------------------------------------
# Recovery.


class Recovery:
    """Has the steps of recovery done: polls in, steps done, events out. What is due when: ``tandem.modem.recovery``. A step, which may take
    a minute, has a thread of its own; there is one at a time.

    ``polled`` and ``tick`` by one thread. ``actions``: what can be done to the modem of each path. ``put`` takes events, from any thread.
    ``kinds``: which steps there are for a path's modem, where not all.
    ``measuring``: never interrupted by a step; None: nobody measures."""

    def __init__(
        self,
        settings: RecoverySettings,
        actions: Mapping[str, ModemActions],
        operators: Mapping[str, str | None],
        put: Callable[[list[Record]], None],
        kinds: Mapping[str, Sequence[str]] | None = None,
        measuring: RunScheduler | None = None,
    ) -> None:
        self._measuring = measuring
        self._actions, self._operators, self._put = dict(actions), operators, put
        self._state_machine = RecoveryStateMachine(actions, settings, kinds)
        self._unwell: set[str] = set(actions)  # until a first good poll
        self._back: set[str] = set()
        self._lock = threading.Lock()
        self._step: threading.Thread | None = None

    def stop(self, timeout: float = 5.0) -> None:
        """``tick`` is called no more; a step under way is left to itself."""
        if self._step is not None:
            self._step.join(timeout)

    def polled(self, poll: Poll) -> None:
        if poll.path not in self._actions:
            return
        sick = sickness(poll)
        with self._lock:
            events = self._state_machine.polled(poll.path, sick, time.monotonic(), locked=poll.failure in LOCKED)
        if sick is not None:
            self._unwell.add(poll.path)
        elif poll.path in self._unwell:
            self._unwell.discard(poll.path)
            self._back.add(poll.path)
        self._report(events)

    def tick(self) -> None:
        """Once a second: note where modems are that answer again, and begin a step when one is due."""
        while self._back:
            self._actions[self._back.pop()].seen()
        if self._step is not None and self._step.is_alive():
            return
        with self._lock:
            due, events = self._state_machine.due(
                time.monotonic(), (lambda: True) if self._measuring is None else self._measuring.hold
            )
        self._report(events)
        if due is not None:
            self._step = threading.Thread(target=self._take, args=(due,), name="recovery", daemon=True)
            self._step.start()

    def _take(self, due: Due) -> None:
        try:
            self._do(due)
        finally:
            if self._measuring is not None and due.step in INTERRUPTING:
                self._measuring.release()

    def _do(self, due: Due) -> None:
        began_s = time.monotonic()
        how: Literal["done", "failed", "skipped", "locked"] = "done"
        try:
            detail = self._actions[due.path].do(due.step)
        except CannotStepError as error:
            how, detail = "skipped", str(error)
        except SimLockedError as error:
            how, detail = "locked", f"the SIM asks for a code: {error}"
        except (StepFailedError, TimeoutError, OSError) as error:
            how, detail = "failed", str(error) or "not done in time"
        now_s = time.monotonic()
        with self._lock:
            events = self._state_machine.did(due, how, detail, now_s - began_s, now_s)
        self._report(events)

    def _report(self, events: list[RecoveryEvent]) -> None:
        now_ns = time.monotonic_ns()
        for one in events:
            log.warning("%s: %s %s: %s", one.path, one.kind.replace("_", " "), one.step or "", one.detail)
            tags = {"kind": one.kind, "path": one.path, "operator": self._operators.get(one.path)}
            fields: dict[str, Value | None] = {"step": one.step, "took_ms": one.took_ms, "detail": one.detail[:500]}
            self._put([Record.make("event", tags, fields, now_ns)])


def sickness(poll: Poll) -> Sickness | None:
    """Silent: no answer, or no port. Refusing: a web server's error that a restart may mend. Any other error is an answer, and so is one
    that repeats itself."""
    if poll.failure in SILENT:
        return "silent"
    if poll.failure is not None and helped_by_restart(poll.failure):
        return "refusing"
    return None


# ---------------------------------------------------------------------------------------------------------------------
# Addresses.


class BearerAddresses:
    """The addresses of a bearer that ModemManager was given without DHCP (method ``static``: most QMI and MBIM modems), on its interface.
    ModemManager reports them and sets nothing; where the collector has the connection, nobody else does. A bearer's interface has these
    addresses and no others of that family. Needs CAP_NET_ADMIN.

    ``keep`` is called once a poll, by one thread. ``report(detail)``: that it could not be done, once for each reason."""

    def __init__(self, report: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._report, self._clock = report, clock
        self._set: BearerGiven | None = None
        self._look_at = 0.0
        self._reported: str | None = None

    def keep(self, given: BearerGiven | None) -> None:
        """``given``: the bearer as it is now; None: it is not connected, and what was set for it is taken away."""
        if given == self._set and (given is None or self._clock() < self._look_at):
            return
        try:
            if self._set is not None and (given is None or given.interface != self._set.interface):
                _set_addresses(self._set, ())
            if given is not None:
                _set_addresses(given, given.addresses)
        except IpError as error:
            if self._reported != str(error):
                self._reported = str(error)
                log.warning("bearer: %s", error)
                self._report(str(error))
        else:
            self._reported = None
        self._set, self._look_at = given, self._clock() + LOOK_AGAIN_S


def _set_addresses(bearer: BearerGiven, wanted: tuple[Address, ...]) -> None:
    """Give the interface the ``wanted`` ones of each family in which the bearer's are static; none are wanted of one that ended."""
    mine = [a for a in bearer.addresses if a.method == _STATIC and a.address and a.prefix]
    interface = bearer.interface
    if not mine or interface is None:
        return
    rows = [row for row in iproute.ip_json("address", "show") if row.get("ifname") == interface]
    if not rows:
        return  # it went away with its modem, and its addresses with it
    row = rows[0]
    had = {
        (f"{a['local']}/{a.get('prefixlen')}", 6 if a.get("family") == "inet6" else 4)
        for a in row.get("addr_info", [])
        if a.get("scope") == "global" and "local" in a
    }
    want = {(f"{a.address}/{a.prefix}", a.family) for a in mine if a in wanted}
    families = {a.family for a in mine}
    for address, family in sorted(had - want):
        if family in families:
            iproute.ip("address", "delete", address, "dev", interface)
    if not want:
        return
    mtu = min((a.mtu for a in mine if a.mtu), default=None)
    if "UP" not in row.get("flags", []) or (mtu is not None and row.get("mtu") != mtu):
        iproute.ip("link", "set", interface, "up", *(("mtu", str(mtu)) if mtu is not None else ()))
    for address, family in sorted(want - had):
        # No duplicate is looked for: the network gave it to this bearer alone.
        iproute.ip("address", "add", address, "dev", interface, *(("nodad",) if family == 6 else ()))
