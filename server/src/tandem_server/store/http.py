"""Kept-alive connections to a database's HTTP interface, shared by threads."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

from tandem_server.store.kinds import StoreDown


class Link:
    """To ``url`` (``http://host:port``). ``timeout_s`` holds for connecting and for each read; ``headers`` go with every request."""

    def __init__(self, url: str, headers: dict[str, str], timeout_s: float, port: int) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no http:// or https:// address")
        self.url, self._headers, self._timeout_s = url.rstrip("/"), headers, timeout_s
        self._tls = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port or (443 if self._tls else port)
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    @property
    def near(self) -> bool:
        """Whether it is this machine: then nothing is gained by packing what is sent."""
        return self._host in ("127.0.0.1", "::1", "localhost")

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the answer; StoreDown without one. Every request here may be sent twice."""
        with self.answered(method, path, body, headers) as response:
            return response.status, dict(response.getheaders()), response.read()

    @contextlib.contextmanager
    def answered(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        """The answer, to be read within; StoreDown without one, and where it ends too soon. Every request here may be sent twice."""
        connection, response = self._requested(method, path, body, {**self._headers, **(headers or {})})
        try:
            yield response
        except (OSError, http.client.HTTPException) as error:
            raise StoreDown(f"{self.url} does not answer: {error}") from error
        finally:
            # What was not read to its end cannot carry another request.
            if response.will_close or not response.isclosed():
                connection.close()
            else:
                with self._lock:
                    self._idle.append(connection)

    def _requested(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        while True:
            with self._lock:
                reused = bool(self._idle)
                connection = self._idle.pop() if reused else self._connection()
            try:
                connection.request(method, path, body, headers)
                return connection, connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                # The server may close a connection that stood idle: once more, over another.
                if reused and isinstance(error, ConnectionError | http.client.BadStatusLine):
                    continue
                raise StoreDown(f"{self.url} does not answer: {error}") from error

    def close(self) -> None:
        """Close the connections kept alive."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._tls else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=self._timeout_s)
