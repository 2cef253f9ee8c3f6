"""A campaign folder's own database and ledger: the database that answers, else one that is started for as long as it is asked."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from tandem_server.analysis.folder import CampaignFolder
from tandem_server.analysis.influx_source import InfluxSource
from tandem_server.analysis.source import Source
from tandem_server.registry import Registry, RegistryError
from tandem_server.store import Influx, PrivateInflux, QueryError, StoreDown, StoreStartError, find_influxd
from tandem_server.store.private import account_password

DATABASE, REGISTRY = Path("server", "influxdb"), Path("server", "registry.sqlite")
"""In a campaign folder."""


@contextlib.contextmanager
def folder_database(place: Path, name: str, url: str, binary: Path | None = None) -> Iterator[Source | str]:
    """The database ``name`` whose files lie in ``place`` and that may answer at ``url``, or why there is none. ``binary``: what starts it,
    where that is there."""
    if not (place / "tandem.password").is_file():
        yield f"{place} holds no database of this campaign: no records to read"
        return
    answering = _answering(place, name, url)
    if answering is not None:
        with contextlib.closing(answering) as client:
            yield InfluxSource(client)
        return
    if pid := _held_by(place):
        yield f"the database in {place} is held by process {pid} and does not answer here; end it, or report when it has ended"
        return
    try:
        found = binary if binary is not None and binary.is_file() else find_influxd()
        with PrivateInflux(found, place, 0, name) as private, contextlib.closing(private.client()) as client:
            yield InfluxSource(client)
    except StoreStartError as error:
        yield f"the database in {place} cannot be started: {error}"


def _answering(place: Path, database: str, url: str) -> Influx | None:
    """A client when the campaign's own database answers at ``url``: another one there does not know the account."""
    try:
        client = Influx(url, database, "tandem", account_password(place), timeout_s=30.0)
    except (ValueError, OSError):  # no address, no password
        return None
    try:
        client.query("SHOW MEASUREMENTS LIMIT 1")
    except (StoreDown, QueryError):
        client.close()
        return None
    return client


def _held_by(place: Path) -> int | None:
    """The process that runs a database on ``place`` already (in another network namespace): two would spoil the files."""
    wanted = os.fsencode(str((place / "influxd.conf").resolve()))
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if b"-config" in words and any(
                    os.path.realpath(w) == wanted for w in words if w.endswith(b"influxd.conf")
                ):
                    return int(entry.name)
    return None


def in_ledger_of(campaign: CampaignFolder, file: Path) -> set[str] | str:
    """Ids of the probe's runs that the server with the registry ``file`` has, or why that is not known. An export's all are."""
    if campaign.exported:
        return {str(manifest["id"]) for manifest in campaign.manifests}
    if not file.is_file():
        return f"{file} is not there: whether the runs' manifests arrived is not known"
    try:
        with Registry(file) as registry:
            return {run.id for run in registry.runs.each(campaign.probe)}
    except RegistryError as error:
        return f"the ledger cannot be read: {error}"
