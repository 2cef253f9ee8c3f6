"""The real receiver of position, made from the configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import SystemRandom
from typing import Any

from tandem.app.config import Config
from tandem.app.parts import EnvironmentLackError, Speed, UtcOf
from tandem.app.position_config import PositionConfig
from tandem.modem.base import Identity
from tandem.modem.usb import beside, find
from tandem.position.gpsd import Gpsd, GpsdMissingError
from tandem.position.key import own_key
from tandem.position.observer import Observer
from tandem.position.privacy import Privacy
from tandem.position.receiver import Receiver, RunningGpsd, Source
from tandem.position.reports import Report
from tandem.position.start_commands import start_commands
from tandem.position.zones import Zone, Zones
from tandem.schema.record import Record

GPSD_HOST, GPSD_PORT = "localhost", 2947
"""Where the time is asked for when position is off."""

ZONES_KEY = "spool/zones.key"
"""In the probe's folder."""


def position_receiver(
    config: Config,
    utc_ns: UtcOf,
    put: Callable[[list[Record] | Speed], None],
    state: Callable[[dict[str, Any]], None],
    heard: Callable[[Report, int], None] = lambda _report, _arrived_ns: None,
) -> Receiver:
    """See ``parts.Parts.position``. EnvironmentLackError when a gpsd of our own is wanted and there is none."""
    position = config.position
    if position is None:
        return Receiver(RunningGpsd(GPSD_HOST, GPSD_PORT), None, put, heard=heard)
    zones = [Zone(zone.latitude_deg, zone.longitude_deg, zone.radius_m) for zone in position.zones]
    key = own_key(config.folder / ZONES_KEY) if zones else b""
    privacy = Privacy(position.mode, position.grid_deg, Zones(zones, key, SystemRandom()))
    observer = Observer(privacy, utc_ns, position.lost_after_s, lambda record: put(Speed(record)))
    return Receiver(_source(config, position), observer, put, lambda now: state(now.as_json()), heard)


def gnss_commands(driver: str, identity: Identity) -> Sequence[str]:
    """What the modem whose GNSS is the source is told after its set-up (``modem.identification.MoreSetup``)."""
    return start_commands(driver, identity.model)


def _source(config: Config, position: PositionConfig) -> Source:
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
        raise EnvironmentLackError(str(error)) from error
    return RunningGpsd(position.host, position.port)
