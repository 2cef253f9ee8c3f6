"""The real pollers and the real steps of the recovery ladder, made from a path's configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial

from tandem.app.bearer_addresses import BearerAddresses
from tandem.app.config import PathConfig
from tandem.app.parts import EnvironmentLackError, PathChange, PollerLike, PollLike
from tandem.app.position_part import gnss_commands
from tandem.at.unsolicited import Unsolicited
from tandem.modem.access import access
from tandem.modem.mm_connection import ConnectionSettings
from tandem.modem.mm_poller import PREFIX, ManagedPoller
from tandem.modem.poller import Poller
from tandem.modem.recovery_usb import UsbPlace, port_power, usb_place, usb_reset
from tandem.modem.registry import UnknownDriver
from tandem.modem.reports import registration_record
from tandem.modem.sim import SecretError, SimWatch, secret_of
from tandem.modem.steps import AT, CFUN, REBOOT, SESSION, USB, CannotStepError
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
        return ManagedPoller(
            path.name,
            path.operator,
            modem.port.removeprefix(PREFIX),
            period_s,
            put,
            None if modem.connection is None else ConnectionSettings(**dataclasses.asdict(modem.connection)),
            lambda state, detail: put(PathChange("path_state", path.name, f"{state}: {detail}")),
            on_given=BearerAddresses(
                lambda detail: put(PathChange("path_state", path.name, f"no_address: {detail}"))
            ).keep,
        )
    try:
        reached = access(modem.port, modem.usb, partial(interface_of, path))
        sim = None
        if modem.sim is not None:
            secret = secret_of(modem.sim_secret)
            sim = SimWatch(modem.sim, secret, lambda detail: put(PathChange("sim_mismatch", path.name, detail)))
        gnss = gnss_commands if path.gnss else None
        told = partial(_told_unasked, path, put)
        return Poller(path.name, path.operator, reached, modem.driver, period_s, put, told, sim, gnss)
    except UnknownDriver as error:
        raise EnvironmentLackError(f"path {path.name}: {error}") from error
    except SecretError as error:
        raise EnvironmentLackError(str(error)) from error


def _told_unasked(path: PathConfig, put: Callable[[list[Record]], None], told: Unsolicited) -> None:
    record = registration_record(path.name, path.operator, told)
    if record is not None:
        put([record])


RESET_S = {AT: 12.0, SESSION: 12.0, CFUN: 45.0, REBOOT: 12.0}
"""How long a poller has for a step: its poll under way, and the commands' own deadlines."""


class ModemActions:
    """See ``parts.ModemActionsLike``."""

    def __init__(self, path: PathConfig, poller: PollerLike) -> None:
        if path.modem is None or not isinstance(poller, Poller | ManagedPoller):
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
