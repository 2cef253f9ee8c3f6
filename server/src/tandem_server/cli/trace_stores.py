"""The store of traces that a server.toml names, and the gateway's service for uploads in front of it."""

from __future__ import annotations

from tandem_server.cli.configuration import ServerConfig
from tandem_server.cli.stop import EnvironmentLacks
from tandem_server.ingest.periodic import Periodic
from tandem_server.registry import Registry
from tandem_server.uploads.folder import TraceFolder
from tandem_server.uploads.s3 import TraceBucket, is_in_bucket
from tandem_server.uploads.service import UploadLimits, UploadService
from tandem_server.uploads.store import TraceStore, TraceStoreDown

UNFINISHED = ".unfinished"
_SWEEP_S = 600.0


def trace_store(config: ServerConfig) -> TraceStore:
    """Where traces that come now are kept; EnvironmentLacks without what S3 needs."""
    wanted = config.traces.s3
    if wanted is None:
        return TraceFolder(config.traces.folder)
    try:
        return TraceBucket(wanted.bucket, wanted.prefix, wanted.endpoint_url, wanted.region, wanted.encryption)
    except TraceStoreDown as error:
        raise EnvironmentLacks(str(error)) from error


def store_of(config: ServerConfig, place: str) -> TraceStore:
    """The store that has this place, also when traces that come now go to another."""
    if not is_in_bucket(place):
        return TraceFolder(config.traces.folder)
    wanted = config.traces.s3
    try:
        endpoint_url, region = (None, None) if wanted is None else (wanted.endpoint_url, wanted.region)
        return TraceBucket(place.split("/")[2], "", endpoint_url, region)
    except TraceStoreDown as error:
        raise EnvironmentLacks(str(error)) from error


class Stores:
    """The stores of places, each opened once. For several threads: two may open one twice, and the later one stays."""

    def __init__(self, config: ServerConfig) -> None:
        self._config, self._open = config, dict[str, TraceStore]()

    def at(self, place: str) -> TraceStore:
        """The store that has this place; EnvironmentLacks."""
        key = "/".join(place.split("/")[:3]) if place.startswith("s3://") else ""
        if key not in self._open:
            self._open[key] = store_of(self._config, place)
        return self._open[key]


def upload_service(config: ServerConfig, registry: Registry) -> UploadService:
    """The service; EnvironmentLacks when its folder cannot be made."""
    wanted = config.traces
    limits = UploadLimits(
        wanted.trace_bytes,
        wanted.probe_bytes_per_day,
        wanted.unfinished_per_probe,
        wanted.unfinished_days,
        wanted.reserve_bytes,
    )
    try:
        return UploadService(registry, trace_store(config), wanted.folder / UNFINISHED, limits)
    except OSError as error:
        hint = "hint: let this user write there, or name another [traces] folder"
        raise EnvironmentLacks(f"{error.filename}: {error.strerror}; {hint}") from error


class UploadSweeper(Periodic):
    """Gives up unfinished traces in the background, now and every ten minutes. Several processes may."""

    def __init__(self, service: UploadService) -> None:
        super().__init__("unfinished traces", _SWEEP_S)
        self._service = service

    def turn(self) -> None:
        """See ``UploadService.sweep``."""
        self._service.sweep()
