"""Client of an InfluxDB 1.x (``/write``, ``/query``, ``/ping``), the quoting of its InfluxQL, and reading its answers."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlencode

from tandem_server.store.http import Link
from tandem_server.store.kinds import LinesRefused, QueryError, Rejected, Series, StoreDown, TooManyRefused

_DROPPED = re.compile(r" dropped=([0-9]+)\s*\Z")
_FAULT_OF_A_LINE = re.compile(
    r"unable to parse|partial write|field type conflict|max key length|invalid field|too large|beyond retention|outside retention"
)
"""Only these reasons speak of lines. Any other 400 is about the database, or about who knows what: then no line may be given up."""
_CHUNK_ROWS = 10_000


def quoted(name: str) -> str:
    """An identifier of InfluxQL."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def literal(text: str) -> str:
    """A string of InfluxQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


class Influx:
    """One database at ``url`` (``http://host:port``). ``timeout_s`` holds for connecting and for each read."""

    def __init__(self, url: str, database: str, user: str, password: str, timeout_s: float = 30.0) -> None:
        login = base64.b64encode(f"{user}:{password}".encode()).decode()
        self._link = Link(url, {"Authorization": f"Basic {login}"} if user else {}, timeout_s, 8086)
        self._password = password
        self.url, self.database, self.user = self._link.url, database, user
        self._write_path = "/write?" + urlencode({"db": database, "precision": "ns"})

    def patient(self, timeout_s: float) -> Influx:
        """Another client of the same database and account that waits so long."""
        return Influx(self.url, self.database, self.user, self._password, timeout_s)

    def ping(self) -> str:
        """The server's version; StoreDown when it does not answer. Says nothing about the account."""
        status, headers, _ = self._link.request("GET", "/ping")
        if status not in (200, 204):
            raise StoreDown(f"{self.url}: ping answered {status}")
        return headers.get("X-Influxdb-Version", "")

    def write(self, lines: list[str], policy: str | None = None, *, most_requests: int | None = None) -> list[Rejected]:
        """See ``SeriesStore``. ``policy``: the retention policy, None: the database's default one.

        When the database refuses part of a batch it is halved until each bad line stands alone: at most
        2·k·log2(n) + 1 requests for k bad among n lines.
        """
        path = self._write_path if policy is None else f"{self._write_path}&{urlencode({'rp': policy})}"
        rejected: list[Rejected] = []
        requests = 0
        pending = [(0, len(lines))] if lines else []
        while pending:
            if requests == most_requests:
                raise TooManyRefused(f"{requests} requests did not find all the lines that the database refuses")
            requests += 1
            start, end = pending.pop()
            reason = self._write_once(lines[start:end], path)
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
        """See ``SeriesStore``."""
        return joined(self.parts(influxql, params))

    def parts(self, influxql: str, params: dict[str, Any] | None = None) -> Iterator[Series]:
        """See ``SeriesStore``. The answer is read as it comes, a line of at most ``_CHUNK_ROWS`` rows at a time."""
        form = {"db": self.database, "q": influxql, "epoch": "ns", "chunked": "true", "chunk_size": str(_CHUNK_ROWS)}
        if params:
            form["params"] = json.dumps(params)
        content_type = {"Content-Type": "application/x-www-form-urlencoded"}
        with self._link.answered("POST", "/query", urlencode(form).encode(), content_type) as response:
            if response.status == 400:
                raise QueryError(_reason(response.read()))
            if response.status != 200:
                raise StoreDown(f"{self.url}: query answered {response.status}: {_reason(response.read())}")
            try:
                yield from read_parts(line for line in response if line.strip())
            except AnswerError as error:
                raise QueryError(str(error)) from error

    def measurements_of(self, probe: str) -> int:
        """See ``SeriesStore``."""
        return sum(len(series.rows) for series in self.query(f'SHOW MEASUREMENTS WHERE "probe" = {literal(probe)}'))

    def erase(self, probe: str) -> None:
        """See ``SeriesStore``. Of all retention policies."""
        self.query(f'DROP SERIES WHERE "probe" = {literal(probe)}')

    def close(self) -> None:
        """Close the connections kept alive; the client can be used again."""
        self._link.close()

    def __enter__(self) -> Influx:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write_once(self, lines: list[str], path: str) -> str | None:
        """None when all are stored, the reason when the database refused some of them."""
        body = "\n".join(lines).encode()
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        if not self._link.near:
            body, headers["Content-Encoding"] = gzip.compress(body, compresslevel=1), "gzip"
        status, _, answer = self._link.request("POST", path, body, headers)
        if status == 204:
            return None
        reason = _reason(answer)
        if status == 413:
            return "too large for the database"
        if status == 400 and _FAULT_OF_A_LINE.search(reason):
            return reason[:500] if len(lines) == 1 else reason
        refused = LinesRefused if status == 400 else StoreDown
        raise refused(f"{self.url}: write answered {status}: {reason}")


def _reason(body: bytes) -> str:
    try:
        answer = json.loads(body)
    except ValueError:
        return body[:200].decode(errors="replace").strip()
    return str(answer["error"]) if isinstance(answer, dict) and "error" in answer else str(answer)[:200]


class AnswerError(ValueError):
    """The database answered something that is no query result, or named an error in it."""


def read_parts(documents: Iterable[bytes]) -> Iterator[Series]:
    """Series of one statement from the JSON documents of its answer, as they come: one may be cut across documents."""
    for document in documents:
        for result in _results(document):
            if "error" in result:
                raise AnswerError(str(result["error"]))
            yield from map(_series, result.get("series", []))


def joined(parts: Iterable[Series]) -> list[Series]:
    """With each series in one piece again."""
    found: list[Series] = []
    for part in parts:
        last = found[-1] if found else None
        if last is not None and (last.name, last.tags, last.columns) == (part.name, part.tags, part.columns):
            last.rows.extend(part.rows)
        else:
            found.append(part)
    return found


def _results(document: bytes) -> list[dict[str, Any]]:
    try:
        answer = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise AnswerError(f"the answer is not JSON: {error}") from error
    if not isinstance(answer, dict):
        raise AnswerError("the answer is no JSON object")
    if "error" in answer:
        raise AnswerError(str(answer["error"]))
    results = answer.get("results", [])
    if not isinstance(results, list) or not all(isinstance(r, dict) for r in results):
        raise AnswerError("the answer has no list of results")
    return results


def _series(entry: object) -> Series:
    if not isinstance(entry, dict):
        raise AnswerError("a series is no JSON object")
    tags, columns, rows = entry.get("tags", {}), entry.get("columns", []), entry.get("values", [])
    if not isinstance(tags, dict) or not isinstance(columns, list) or not isinstance(rows, list):
        raise AnswerError("a series without tags, columns and values of the right kind")
    for row in rows:
        if not isinstance(row, list) or len(row) != len(columns):
            raise AnswerError("a row whose length is not that of the columns")
    return Series(
        str(entry.get("name", "")), {str(k): str(v) for k, v in tags.items()}, [str(c) for c in columns], rows
    )
