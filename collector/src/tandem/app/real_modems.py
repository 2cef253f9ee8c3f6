"""The real pollers and the real steps of the recovery ladder, made from a path's configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial

from tandem.app.bearer_addresses import BearerAddresses
from tandem.app.config import PathConfig
from tandem.app.config_modem import ModemConfig
from tandem.app.parts import EnvironmentLackError, PathChange, PollerLike, PollLike
from tandem.app.position_part import gnss_commands
from tandem.at.unsolicited import Unsolicited
from tandem.modem.families import UnknownDriver
from tandem.modem.mm_poller import KEEP_S, PREFIX, ConnectedPoller, ConnectionSettings, ManagedPoller
from tandem.modem.poll import NO_ANSWER, PORT_LOST, Poll, registration_record
from tandem.modem.poller import Poller
from tandem.modem.reset import (
    AT,
    CFUN,
    REBOOT,
    SESSION,
    USB,
    CannotStepError,
    UsbPlace,
    port_power,
    usb_place,
    usb_reset,
)
from tandem.modem.session import access
from tandem.modem.sim import SecretError, SimWatch, secret_of
from tandem.schema.record import Record


def modem_poller(
    path: PathConfig,
    period_s: float,
    put: Callable[[PollLike | PathChange | list[Record]], None],
    interface_of: Callable[[PathConfig], str | None],
) -> PollerLike:
    """See ``parts.Parts.poller``. ``interface_of``: the interface by which a stick's web server is reached now."""
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
            sim = SimWatch(modem.sim, secret, lambda detail: put(PathChange("sim_mismatch", path.name, detail)))
        gnss = gnss_commands if path.gnss else None
        told = partial(_told_unasked, path, put)
        poller = Poller(path.name, path.operator, reached, modem.driver, period_s, put, told, sim, gnss)
    except UnknownDriver as error:
        raise EnvironmentLackError(f"path {path.name}: {error}") from error
    except SecretError as error:
        raise EnvironmentLackError(str(error)) from error
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
    put: Callable[[PathChange], None],
    measuring: bool = True,
) -> ManagedPoller:
    def tell(detail: str) -> None:
        put(PathChange("path_state", path.name, detail))

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

    def __init__(self, path: str, put: Callable[[PathChange], None]) -> None:
        self._path, self._put = path, put
        self._said: str | None = None

    def polled(self, poll: Poll) -> None:
        """Told at each change."""
        if poll.failure == self._said:
            return
        self._said = poll.failure
        if poll.failure is not None:
            self._put(PathChange("path_state", self._path, f"not_managed: {NOT_MANAGED[poll.failure]}"))


def _told_unasked(path: PathConfig, put: Callable[[list[Record]], None], told: Unsolicited) -> None:
    record = registration_record(path.name, path.operator, told)
    if record is not None:
        put([record])


NOT_MANAGED = {
    NO_ANSWER: "ModemManager does not answer",
    PORT_LOST: "ModemManager has no such modem; mend: mmcli -L, and whether it sees the modem's other AT port",
}

RESET_S = {AT: 12.0, SESSION: 12.0, CFUN: 45.0, REBOOT: 12.0}
"""How long a poller has for a step: its poll under way, and the commands' own deadlines."""


class ModemActions:
    """See ``parts.ModemActionsLike``."""

    def __init__(self, path: PathConfig, poller: PollerLike) -> None:
        if path.modem is None or not isinstance(poller, Poller | ManagedPoller | ConnectedPoller):
            raise ValueError(f"path {path.name} has no modem")
        # A place on USB is named by the device: the interface behind a colon is not reset by itself.
        self._port = (path.modem.usb or "").partition(":")[0] or (path.modem.port or "").removeprefix(PREFIX)
        if self._port.startswith("http://"):  # a stick's web server is plugged in where its network interface is
            self._port = (path.usb or "").partition(":")[0] or path.interface or self._port
        self._poller = poller
        self._place: UsbPlace | None = None

    def seen(self) -> None:
        """A modem that is moved to another port is noticed when it answers there."""
        self._place = usb_place(self._port)

    def do(self, step: str) -> str:
        """See ``parts.ModemActionsLike``."""
        if step in RESET_S:
            return self._poller.reset(step, RESET_S[step])
        place = usb_place(self._port) or self._place
        if place is None:
            raise CannotStepError(f"{self._port} is on no USB port that is known")
        return usb_reset(place) if step == USB else port_power(place)
