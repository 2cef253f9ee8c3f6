"""A reader's client of InfluxDB's ``/query``, as Grafana's data source is configured here: POST, the account in the header, times in ms."""

from __future__ import annotations

import base64
import http.client
import json
from typing import Any
from urllib.parse import urlencode, urlsplit


class InfluxError(Exception):
    """The database refused the query; the message is its own."""


class AwayError(InfluxError):
    """The database does not answer, or refuses the account."""


class Influx:
    """One database at ``url`` (``http://host:port``), read as ``user``. Keeps its connection; not for several threads."""

    def __init__(self, url: str, database: str, user: str, password: str, timeout_s: float = 60.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise AwayError(f"{url!r} is no address; hint: http://127.0.0.1:8086")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self.url, self.database, self._path = url, database, parts.path.rstrip("/")
        self._connection = kind(parts.hostname, parts.port or 8086, timeout=timeout_s)
        login = base64.b64encode(f"{user}:{password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {login}"} if user else {}

    def query(self, influxql: str) -> list[dict[str, Any]]:
        """The series of one statement: ``name``, ``columns``, perhaps ``tags``, ``values``. InfluxError, AwayError."""
        where = urlencode({"db": self.database, "epoch": "ms"})
        form = urlencode({"q": influxql}).encode()
        headers = self._headers | {"Content-Type": "application/x-www-form-urlencoded"}
        try:
            self._connection.request("POST", f"{self._path}/query?{where}", form, headers)
            answer = self._connection.getresponse()
            body, status = answer.read(), answer.status
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise AwayError(f"{self.url}: {error or type(error).__name__}") from error
        try:
            return series_of(status, body)
        except AwayError as error:
            raise AwayError(f"{self.url}: {error}") from error

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Influx:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def series_of(status: int, body: bytes) -> list[dict[str, Any]]:
    """The answer to one statement. InfluxError: the database refused the query. AwayError: no InfluxDB, or not this account."""
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise AwayError(f"no InfluxDB answers there (status {status})")
    if status in (401, 403):
        raise AwayError(str(answer.get("error", status)))
    if "error" in answer or status != 200:
        raise InfluxError(str(answer.get("error", f"status {status}")))
    results = answer.get("results")
    result = results[0] if isinstance(results, list) and results else {}
    if not isinstance(result, dict):
        raise AwayError("no InfluxDB answers there: its results are none")
    if "error" in result:
        raise InfluxError(str(result["error"]))
    series = result.get("series", [])
    if not isinstance(series, list) or not all(_is_series(one) for one in series):
        raise AwayError("no InfluxDB answers there: its series are none")
    if any(one.get("partial") for one in [result, *series]):
        raise InfluxError("the database cut the answer short (max-row-limit); hint: a coarser query")
    return series


def _is_series(one: object) -> bool:
    """It has columns by name, rows as long as these, and tags that are texts."""
    if not isinstance(one, dict) or not isinstance(one.get("columns"), list):
        return False
    rows, tags = one.get("values", []), one.get("tags", {})
    wide = len(one["columns"])
    return (
        all(isinstance(name, str) for name in one["columns"])
        and isinstance(rows, list)
        and all(isinstance(row, list) and len(row) == wide for row in rows)
        and isinstance(tags, dict)
        and all(isinstance(value, str) for value in tags.values())
        and isinstance(one.get("name", ""), str)
    )
