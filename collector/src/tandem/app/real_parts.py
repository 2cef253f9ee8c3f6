"""The real parts: modems, detectors, kernel, tcpdump. The only module of the app that knows how those are called."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from tandem.app.config import Config, PathConfig
from tandem.app.parts import (
    EnvironmentLackError,
    Parts,
    PathChange,
    experiment_command,
)
from tandem.app.position_part import position_receiver
from tandem.app.real_modems import ModemActions, modem_poller
from tandem.app.runs.captures import Captures
from tandem.mobility.detectors import Detectors
from tandem.mobility.settings import Settings
from tandem.modem.usb import network_interface
from tandem.mptcp import kernels, sysctls
from tandem.mptcp import paths as kernel_paths
from tandem.mptcp.backup import Backup
from tandem.mptcp.iproute import IpError
from tandem.mptcp.watch import Watch
from tandem.schema.manifest import SubflowLoss

log = logging.getLogger(__name__)


FindInterface = Callable[[str], str | None]
"""USB place (``1-1.2``, or with one of its interfaces ``1-1.2:1.4``) → name of a network interface; None while there is none."""


def real_parts(find: FindInterface = network_interface) -> Parts:
    """See ``parts.Parts``. ``find``: which network interface is at a path's ``usb`` place; asked at every check."""
    made: list[_Paths] = []

    def paths(config: Config) -> _Paths:
        made[:] = [_Paths(config, find)]
        return made[0]

    def interface_of(path: PathConfig) -> str | None:
        """Where a stick's web server is reached now: behind a NAT of ours that is not the modem's own interface."""
        reach = made[0].reach(path.name) if made else None
        return path.interface if reach is None else reach.interface

    return Parts(
        poller=partial(modem_poller, interface_of=interface_of),
        detectors=_detectors,
        paths=paths,
        captures=Captures,
        set_sysctls=_set_sysctls,
        environment=lambda: {"sysctls": sysctls.read((*kernels.here().sysctls, *sysctls.RECORDED))},
        experiment=experiment_command,
        actions=ModemActions,
        position=position_receiver,
    )


def _detectors(config: Config) -> Detectors:
    mobility = config.mobility
    return Detectors(
        Settings(
            detector=mobility.detector,
            quantity=mobility.quantity,
            threshold_db=mobility.threshold_db,
            stop_after_s=mobility.stop_after_s,
            period_s=config.period_s,
        )
    )


def _set_sysctls(wanted: Mapping[str, str | int]) -> dict[str, dict[str, Any]]:
    return {name: dataclasses.asdict(setting) for name, setting in sysctls.apply(wanted).items()}


class _Paths:
    def __init__(self, config: Config, find: FindInterface) -> None:
        self._paths = kernel_paths.Paths(
            [
                kernel_paths.Path(p.name, p.interface or partial(find, p.usb or ""), p.gateway, p.address)
                for p in config.paths
            ],
        )
        self._watch: Watch | None = None
        self._backup = Backup(self._paths.manager)

    @property
    def addresses(self) -> dict[str, str]:
        return self._paths.addresses

    @property
    def interfaces(self) -> Mapping[str, str | None]:
        return self._paths.interfaces

    @property
    def states(self) -> dict[str, dict[str, str | None]]:
        return {name: dataclasses.asdict(status) for name, status in self._paths.statuses.items()}

    def reach(self, name: str) -> kernel_paths.Reach | None:
        """See ``mptcp.paths.Paths.reach``."""
        return self._paths.reach(name)

    def apply(self) -> list[PathChange]:
        changes = self._told(self._paths.apply)
        self._watch = Watch(self._paths)
        if self._watch.restoring is not None:
            log.warning("lost subflows are not brought back: %s", self._watch.restoring)
        return changes

    def watch(self) -> list[PathChange]:
        return [] if self._watch is None else self._told(self._watch.turn)

    def wake(self) -> None:
        if self._watch is not None:
            self._watch.wake()

    def rest(self, names: Collection[str], timeout_s: float) -> bool:
        self._paths.resting.tell(names)
        self.wake()
        return self._paths.resting.wait(timeout_s)

    def set_backup(self, name: str, backup: bool, *, again: bool = False) -> None:
        try:
            self._backup.order(self._paths.number(name), backup=backup, again=again)
        except IpError as error:
            raise _lack(error) from error

    def leave(self, token: int) -> None:
        if self._watch is not None:
            self._watch.leave(token)

    def losses(self, token: int) -> list[SubflowLoss] | None:
        return None if self._watch is None else self._watch.losses(token)

    def remove(self) -> None:
        self._backup.close()
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        try:
            self._paths.remove()
        except IpError as error:
            raise _lack(error) from error

    @staticmethod
    def _told(action: Callable[[], list[kernel_paths.PathEvent]]) -> list[PathChange]:
        try:
            return [PathChange(e.kind, e.path, e.detail, e.state, e.took_ms) for e in action()]
        except IpError as error:
            raise _lack(error) from error


def _lack(error: IpError) -> EnvironmentLackError:
    text = str(error)
    if "; mend: " in text:
        return EnvironmentLackError(text)
    if "not permitted" in text:
        return EnvironmentLackError(f"{text}; mend: run as root, or with the capability NET_ADMIN")
    if "mptcp" in text and ("not found" in text or "No such" in text or "Unknown" in text or "not supported" in text):
        return EnvironmentLackError(
            f"{text}; mend: a kernel from 5.6 with Multipath TCP, and sysctl net.mptcp.enabled=1"
        )
    return EnvironmentLackError(text)
