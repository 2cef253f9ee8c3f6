"""Client of an InfluxDB 2.x: writes by ``/api/v2/write`` with a token, queries by InfluxQL over its 1.x-compatible ``/query``."""

from __future__ import annotations

import json
from urllib.parse import urlencode

from tandem_server.store.http import Link
from tandem_server.store.influx import Influx
from tandem_server.store.kinds import StoreDown

_EVER = {"start": "1970-01-01T00:00:00Z", "stop": "2262-01-01T00:00:00Z"}


class Influx2(Influx):
    """One bucket of ``org``. For queries the bucket must be mapped to a database of its name, as it is by default (``influx v1
    dbrp list``)."""

    def __init__(self, url: str, org: str, bucket: str, token: str, timeout_s: float = 30.0) -> None:
        self._link = Link(url, {"Authorization": f"Token {token}"}, timeout_s, 8086)
        self.url, self.database, self.user = self._link.url, bucket, ""
        self._write_path = "/api/v2/write?" + urlencode({"org": org, "bucket": bucket, "precision": "ns"})
        self._delete_path = "/api/v2/delete?" + urlencode({"org": org, "bucket": bucket})

    def erase(self, probe: str) -> None:
        """See ``SeriesStore``. By ``/api/v2/delete``: its InfluxQL drops no series."""
        body = json.dumps({**_EVER, "predicate": f'probe="{probe}"'}).encode()
        status, _, answer = self._link.request("POST", self._delete_path, body, {"Content-Type": "application/json"})
        if status != 204:
            raise StoreDown(f"{self.url}: delete answered {status}: {answer[:200].decode(errors='replace').strip()}")
