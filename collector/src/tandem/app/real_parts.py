"""The real parts: modems, detectors, kernel, tcpdump. The only module of the app that knows how those are called."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tandem.app.config import Config, PathConfig
from tandem.app.parts import (
    CaptureEnd,
    EnvironmentLackError,
    Parts,
    PathChange,
    PollerLike,
    PollLike,
    experiment_command,
)
from tandem.app.position_part import gnss_commands, position_receiver
from tandem.capture import Budget, Capture, CaptureError
from tandem.mobility.detectors import Detectors
from tandem.mobility.settings import Settings
from tandem.modem.poller import Poller
from tandem.mptcp import paths as kernel_paths
from tandem.mptcp import sysctls
from tandem.mptcp.iproute import IpError


def real_parts() -> Parts:
    """See ``parts.Parts``."""
    return Parts(
        poller=_poller,
        detectors=_detectors,
        paths=_Paths,
        captures=_Captures,
        set_sysctls=_set_sysctls,
        environment=lambda: {"sysctls": sysctls.read()},
        experiment=experiment_command,
        position=position_receiver,
    )


def _poller(path: PathConfig, period_s: float, on_poll: Callable[[PollLike], None]) -> PollerLike:
    if path.modem is None:
        raise ValueError(f"path {path.name} has no modem")
    gnss = gnss_commands if path.gnss else None
    return Poller(path.name, path.operator, path.modem.port, path.modem.driver, period_s, on_poll, gnss)


def _detectors(config: Config) -> Detectors:
    mobility = config.mobility
    return Detectors(
        Settings(
            quantity=mobility.quantity,
            threshold_db=mobility.threshold_db,
            stop_after_s=mobility.stop_after_s,
            period_s=config.period_s,
        )
    )


def _set_sysctls(wanted: Mapping[str, str | int]) -> dict[str, dict[str, Any]]:
    return {name: dataclasses.asdict(setting) for name, setting in sysctls.apply(wanted).items()}


class _Paths:
    def __init__(self, config: Config) -> None:
        self._paths = kernel_paths.Paths(
            [kernel_paths.Path(p.name, p.interface, p.gateway, p.address) for p in config.paths],
        )

    @property
    def addresses(self) -> dict[str, str]:
        return self._paths.addresses

    def apply(self) -> list[PathChange]:
        return self._told(self._paths.apply)

    def check(self) -> list[PathChange]:
        return self._told(self._paths.check)

    def remove(self) -> None:
        try:
            self._paths.remove()
        except IpError as error:
            raise _lack(error) from error

    @staticmethod
    def _told(action: Callable[[], list[kernel_paths.PathEvent]]) -> list[PathChange]:
        try:
            return [PathChange(e.kind, e.path, e.detail) for e in action()]
        except IpError as error:
            raise _lack(error) from error


def _lack(error: IpError) -> EnvironmentLackError:
    text = str(error)
    if "not permitted" in text:
        return EnvironmentLackError(f"{text}; mend: run as root, or with the capability NET_ADMIN")
    if "mptcp" in text and ("not found" in text or "No such" in text or "Unknown" in text or "not supported" in text):
        return EnvironmentLackError(
            f"{text}; mend: a kernel from 5.6 with Multipath TCP, and sysctl net.mptcp.enabled=1"
        )
    return EnvironmentLackError(text)


class _Capture:
    def __init__(self, capture: Capture) -> None:
        self._capture = capture

    def start(self) -> None:
        try:
            self._capture.start()
        except CaptureError as error:
            raise EnvironmentLackError(str(error)) from error

    def stop(self) -> CaptureEnd:
        done = self._capture.stop()
        return CaptureEnd(done.file, done.bytes, done.packets, done.cut, done.sha256, done.reason, done.dropped_packets)


class _Captures:
    def __init__(self, config: Config, used_bytes: int) -> None:
        self._snaplen = config.capture.snaplen_bytes
        self._budget = Budget(config.capture.budget_bytes, used_bytes)

    @property
    def used_bytes(self) -> int:
        return self._budget.used_bytes

    def of(self, interface: str, file: Path) -> _Capture:
        return _Capture(Capture(interface, file, self._snaplen, self._budget))
