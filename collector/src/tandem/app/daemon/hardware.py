"""What touches modems, kernel and other programs, made from the configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from random import SystemRandom
from typing import Any

from tandem.app.config import Config
from tandem.app.config_schema import PathConfig, PositionConfig
from tandem.app.daemon.modems import ModemActions, ModemPoller, Polled, modem_poller
from tandem.app.daemon.paths import NetworkPaths
from tandem.app.health.machine import Roots
from tandem.app.runs.captures import Captures
from tandem.app.runs.conditions import ConditionsMade, missing_requirement, undo_earlier
from tandem.app.runs.registry import experiment_command
from tandem.experiment.base import MissingRequirementError
from tandem.mobility.detectors import Detectors
from tandem.mobility.settings import Settings
from tandem.modem.usb import beside, find
from tandem.mptcp import kernels, sysctls
from tandem.position.receiver import Gpsd, GpsdMissingError, Observer, Receiver, RunningGpsd
from tandem.position.reports import Report
from tandem.position.zones import Privacy, Zone, Zones, own_key
from tandem.schema.record import Record

GPSD_HOST, GPSD_PORT = "localhost", 2947
"""Where the time is asked for when position is off."""

ZONES_KEY = "spool/zones.key"
"""In the probe's folder."""


class Hardware:
    """Of one collector. A test replaces what would touch a modem, a radio or the kernel."""

    roots = Roots()
    """Where the kernel tells of the machine's health."""
    captures = Captures
    actions = ModemActions
    conditions = ConditionsMade
    missing_requirement = staticmethod(missing_requirement)
    undo_earlier = staticmethod(undo_earlier)
    experiment = staticmethod(experiment_command)

    def __init__(self) -> None:
        self._paths: NetworkPaths | None = None

    def paths(self, config: Config) -> NetworkPaths:
        self._paths = NetworkPaths(config)
        return self._paths

    def poller(self, path: PathConfig, period_s: float, put: Callable[[Polled], None]) -> ModemPoller:
        """Of the path's modem; ``put`` takes its polls, ``path_state`` changes, and ``registration`` records of what it says unasked."""
        return modem_poller(path, period_s, put, self._interface_of)

    def _interface_of(self, path: PathConfig) -> str | None:
        """Where a stick's web server is reached now: behind a NAT of ours that is not the modem's own interface."""
        reach = None if self._paths is None else self._paths.reach(path.name)
        return path.interface if reach is None else reach.interface

    def detectors(self, config: Config) -> Detectors:
        return Detectors(Settings(**dataclasses.asdict(config.mobility), period_s=config.period_s))

    def position(
        self,
        config: Config,
        utc_ns: Callable[[int], int | None],
        put: Callable[[list[Record]], None],
        speed: Callable[[Record], None],
        state: Callable[[dict[str, Any]], None],
        heard: Callable[[Report, int], None],
    ) -> Receiver:
        """The receiver of position. ``utc_ns``: of CLOCK_MONOTONIC ns, None while the clock is not set; ``put`` takes records, ``speed``
        those that are for the detectors alone, ``state`` whether there is a fix, never where, ``heard`` each report for the clock. Where
        position is off, for the clock alone. MissingRequirementError when a gpsd of our own is wanted and there is none."""
        position = config.position
        if position is None:
            return Receiver(RunningGpsd(GPSD_HOST, GPSD_PORT), None, put, heard=heard)
        zones = [Zone(zone.latitude_deg, zone.longitude_deg, zone.radius_m) for zone in position.zones]
        key = own_key(config.folder / ZONES_KEY) if zones else b""
        privacy = Privacy(position.mode, position.grid_deg, Zones(zones, key, SystemRandom()))
        observer = Observer(privacy, utc_ns, position.lost_after_s, speed)
        return Receiver(_source(config, position), observer, put, lambda now: state(dataclasses.asdict(now)), heard)

    def set_sysctls(self, wanted: Mapping[str, str | int]) -> dict[str, dict[str, Any]]:
        """By name what became of each: ``asked``, ``before``, ``now``, ``error``."""
        return {name: dataclasses.asdict(setting) for name, setting in sysctls.apply(wanted).items()}

    def environment(self) -> dict[str, Any]:
        """What shapes every measurement: sysctls, for the manifest."""
        return {"sysctls": sysctls.read((*kernels.here().sysctls, *sysctls.RECORDED))}


def _source(config: Config, position: PositionConfig) -> Gpsd | RunningGpsd:
    try:
        if position.source == "device":
            return Gpsd(lambda: position.device)
        if position.source == "modem":
            (modem,) = [p.modem for p in config.paths if p.gnss and p.modem is not None]
            if modem.usb is not None:
                place = modem.usb.partition(":")[0]
                return Gpsd(lambda: find(place, "nmea"))
            port = modem.port or ""
            return Gpsd(lambda: beside(port, "nmea"))
    except GpsdMissingError as error:
        raise MissingRequirementError(str(error)) from error
    return RunningGpsd(position.host, position.port)
