"""Client of an InfluxDB 1.x (``/write``, ``/query``, ``/ping``) over kept-alive connections; safe to share between threads."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from tandem_server.store.series import AnswerError, Series, read_answer

_DROPPED = re.compile(r" dropped=([0-9]+)\s*\Z")
_FAULT_OF_A_LINE = re.compile(
    r"unable to parse|partial write|field type conflict|max key length|invalid field|too large"
)
"""Only these reasons speak of lines. Any other 400 is about the database: then no line may be given up."""
_CHUNK_ROWS = 10_000


class StoreDown(RuntimeError):  # noqa: N818  (the contract's name)
    """The database does not answer, refuses the account, or cannot store now: nothing may be acknowledged."""


class QueryError(ValueError):
    """The database understood the request and says that the query is wrong."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A line that the database will never take: ``index`` in the list written, and the database's reason."""

    index: int
    reason: str


class Influx:
    """One database at ``url`` (``http://host:port``). ``timeout_s`` holds for connecting and for each read."""

    def __init__(self, url: str, database: str, user: str, password: str, timeout_s: float = 30.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no http:// or https:// address")
        self.url, self.database, self.user = url.rstrip("/"), database, user
        self._tls = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port or (443 if self._tls else 8086)
        self._timeout_s = timeout_s
        login = base64.b64encode(f"{user}:{password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {login}"} if user else {}
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def ping(self) -> str:
        """The server's version; StoreDown when it does not answer. Says nothing about the account."""
        status, headers, _ = self._request("GET", "/ping")
        if status not in (200, 204):
            raise StoreDown(f"{self.url}: ping answered {status}")
        return headers.get("X-Influxdb-Version", "")

    def write(self, lines: list[str]) -> list[Rejected]:
        """Store line protocol with times in ns. On return every line is in the database, or is named with the reason.

        When the database refuses part of a batch it is halved until each bad line stands alone: at most
        2·k·log2(n) + 1 requests for k bad among n lines. StoreDown when the database cannot take anything now; part
        of the lines may be in then, and writing them again does no harm.
        """
        rejected: list[Rejected] = []
        pending = [(0, len(lines))] if lines else []
        while pending:
            start, end = pending.pop()
            reason = self._write_once(lines[start:end])
            if reason is None:
                continue
            dropped = _DROPPED.search(reason)
            if end - start == 1 or (dropped and int(dropped[1]) == end - start):
                rejected.extend(Rejected(i, reason) for i in range(start, end))
                continue
            middle = (start + end) // 2
            pending += [(middle, end), (start, middle)]
        return rejected

    def query(self, influxql: str, params: dict[str, Any] | None = None) -> list[Series]:
        """One InfluxQL statement; ``params`` fill its ``$name`` placeholders. Times are ns since 1970 UTC.

        QueryError when the statement is wrong, StoreDown when the database does not answer. The answer is read in chunks.
        """
        form = {
            "db": self.database,
            "q": influxql,
            "epoch": "ns",
            "chunked": "true",
            "chunk_size": str(_CHUNK_ROWS),
        }
        if params:
            form["params"] = json.dumps(params)
        status, _, body = self._request("POST", "/query", urlencode(form).encode(), "application/x-www-form-urlencoded")
        if status == 400:
            raise QueryError(_reason(body))
        if status != 200:
            raise StoreDown(f"{self.url}: query answered {status}: {_reason(body)}")
        try:
            return read_answer(_documents(body))
        except AnswerError as error:
            raise QueryError(str(error)) from error

    def close(self) -> None:
        """Close the connections kept alive; the client can be used again."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __enter__(self) -> Influx:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write_once(self, lines: list[str]) -> str | None:
        """None when all are stored, the reason when the database refused some of them."""
        body = gzip.compress("\n".join(lines).encode(), compresslevel=1)
        path = "/write?" + urlencode({"db": self.database, "precision": "ns"})
        status, _, answer = self._request("POST", path, body, "text/plain; charset=utf-8", {"Content-Encoding": "gzip"})
        if status == 204:
            return None
        reason = _reason(answer)
        if status == 413:
            return "too large for the database"
        if status == 400 and _FAULT_OF_A_LINE.search(reason):
            return reason[:500] if len(lines) == 1 else reason
        raise StoreDown(f"{self.url}: write answered {status}: {reason}")

    def _request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str | None = None,
        extra: dict[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        headers = {**self._headers, **(extra or {})}
        if content_type:
            headers["Content-Type"] = content_type
        while True:
            with self._lock:
                reused = bool(self._idle)
                connection = self._idle.pop() if reused else self._connection()
            try:
                connection.request(method, path, body, headers)
                response = connection.getresponse()
                answer = response.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                # The server may close a connection that stood idle; every request here may be sent twice, so once more.
                if reused and isinstance(error, ConnectionError | http.client.BadStatusLine):
                    continue
                raise StoreDown(f"{self.url} does not answer: {error}") from error
            if response.will_close:
                connection.close()
            else:
                with self._lock:
                    self._idle.append(connection)
            return response.status, dict(response.getheaders()), answer

    def _connection(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._tls else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=self._timeout_s)


def _documents(body: bytes) -> Iterator[bytes]:
    for line in body.split(b"\n"):
        if line.strip():
            yield line


def _reason(body: bytes) -> str:
    try:
        answer = json.loads(body)
    except ValueError:
        return body[:200].decode(errors="replace").strip()
    if isinstance(answer, dict) and "error" in answer:
        return str(answer["error"])
    return str(answer)[:200]
