"""The database that the incident run left, running again on a copy of its folder: what boards and alarms are asked of."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from incident_results import IncidentRun

from tandem_dashboards.influx import Influx
from tandem_server.store import Influx as StoreInflux
from tandem_server.store import PrivateInflux
from tandem_server.store.private import account_password

READER = "reader"


@dataclass(frozen=True)
class Filled:
    """``reader``: what boards and alarms ask with, as the account that they have. ``store``: a client that may all."""

    incidents: IncidentRun
    reader: Influx
    store: StoreInflux


@contextmanager
def filled_database(incidents: IncidentRun, influxd: Path, folder: Path) -> Iterator[Filled]:
    """In ``folder``, which is made."""
    shutil.copytree(incidents.influx, folder)
    with PrivateInflux(influxd, folder, 0) as private, private.client() as store:
        reader = Influx(private.url, private.database, READER, account_password(folder, READER))
        with closing(reader):
            yield Filled(incidents, reader, store)
