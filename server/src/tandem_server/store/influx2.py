"""Client of an InfluxDB 2.x: writes by ``/api/v2/write`` with a token, queries by InfluxQL over its 1.x-compatible ``/query``."""

from __future__ import annotations

from urllib.parse import urlencode

from tandem_server.store.http import Link
from tandem_server.store.influx import Influx


class Influx2(Influx):
    """One bucket of ``org``. For queries the bucket must be mapped to a database of its name, as it is by default (``influx v1
    dbrp list``)."""

    def __init__(self, url: str, org: str, bucket: str, token: str, timeout_s: float = 30.0) -> None:
        self._link = Link(url, {"Authorization": f"Token {token}"}, timeout_s, 8086)
        self.url, self.database, self.user = self._link.url, bucket, ""
        self._write_path = "/api/v2/write?" + urlencode({"org": org, "bucket": bucket, "precision": "ns"})
