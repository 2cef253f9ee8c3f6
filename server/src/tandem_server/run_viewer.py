"""Pages of runs and their files, for people: drawn at each request, read-only (docs/reference/pages.md)."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import ipaddress
import json
import logging
import math
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, BinaryIO
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tandem.schema.manifest import PLAIN_NAME
from tandem_server.analysis.one_run import RunAccount, account_of, file_of
from tandem_server.analysis.run_samples import RunSamples
from tandem_server.http.ranges import Part, part_of
from tandem_server.registry import Registry, TraceRow
from tandem_server.report.run_page import encoded, render, script_hash
from tandem_server.store import SeriesStore
from tandem_server.uploads.store import NotTheFile, TraceStore, TraceStoreDown, file_parts

_STRICT = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
NOTHING = "default-src 'none'; sandbox; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""Content-Security-Policy of all but pages."""


def page_policy(script_hash: str) -> str:
    """Of a page: its own script, by its hash, its own styles, and nothing from anywhere."""
    return (
        f"default-src 'none'; script-src '{script_hash}'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    )


class Front:
    """GET and HEAD only. Without a proxy in front (``any_host`` False) only names of loopback are answered: a page elsewhere that leads
    its own name to this address (DNS rebinding) reads nothing."""

    def __init__(self, app: ASGIApp, *, any_host: bool) -> None:
        self._app, self._any_host = app, any_host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _STRICT.items():
                    headers[name] = value
                headers.setdefault("content-security-policy", NOTHING)
            await send(message)

        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["method"] not in ("GET", "HEAD"):
            refused = PlainTextResponse("here is nothing but to read: GET and HEAD\n", 405, {"Allow": "GET, HEAD"})
            await refused(scope, receive, answered)
        elif not self._any_host and not is_loopback(Headers(scope=scope).get("host", "")):
            refused = PlainTextResponse("ask by localhost, or set [pages] behind_proxy\n", 421)
            await refused(scope, receive, answered)
        else:
            await self._app(scope, receive, answered)


def is_loopback(host: str) -> bool:
    """Whether a Host header (with or without a port) is a name of this machine for itself."""
    name = host.rpartition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


_LOG = logging.getLogger("tandem.pages")


class Damaged(RuntimeError):  # noqa: N818  (it reads as what it is)
    """What is stored is not the file that was received: the answer must not look whole."""


def opened(store: TraceStore, row: TraceRow, start: int) -> BinaryIO:
    """What is stored, to be read for the bytes from ``start`` on: those that are packed only from their beginning. FileNotFoundError,
    TraceStoreDown."""
    return store.open(row.place, start if row.encoding == "identity" else 0)


def pieces(stored: BinaryIO, row: TraceRow, start: int, end: int) -> Iterator[bytes]:
    """The file's bytes from ``start`` to ``end``, out of ``opened``. Damaged before the last of them is given, so that no reader takes a
    damaged file for whole: its hash is wrong (where all of it was read), or it has too few bytes."""
    at = start if row.encoding == "identity" else 0
    whole = hashlib.sha256() if at == 0 and end == row.bytes else None
    held = b""
    try:
        for piece in file_parts(stored, row.encoding):
            if whole is not None:
                whole.update(piece)
            wanted = piece[max(0, start - at) : max(0, end - at)]
            at += len(piece)
            if wanted:
                if held:
                    yield held
                held = wanted
            if whole is None and at >= end:
                break
    except NotTheFile as error:
        raise Damaged(f"{row.place}: {error}") from error
    if at < end or (whole is not None and (at != row.bytes or whole.hexdigest() != row.sha256)):
        raise Damaged(f"{row.place}: it is not the file with the SHA-256 {row.sha256} any more")
    if held:
        yield held


class Sending(StreamingResponse):
    """A part of a file as an answer. ``left`` is called once, when it is over in whatever way. What breaks on the way ends the connection
    before the promised length: a reader sees that it has not the file, and may ask for the rest."""

    def __init__(
        self, stored: BinaryIO, row: TraceRow, part: Part, headers: dict[str, str], left: Callable[[], None]
    ) -> None:
        self._stored, self._row, self._left = stored, row, left
        self._broken = False
        super().__init__(self._pieces(pieces(stored, row, part.start, part.end)), part.status, headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""

        async def answered(message: Message) -> None:
            if not (self._broken and message["type"] == "http.response.body"):
                await send(message)

        try:
            await super().__call__(scope, receive, answered)
        finally:
            self._left()
            with contextlib.suppress(OSError):
                self._stored.close()

    async def _pieces(self, found: Iterator[bytes]) -> AsyncIterator[bytes]:
        """Each read in a worker thread, when the one before has gone out."""
        try:
            while piece := await run_in_threadpool(next, found, b""):
                yield piece
        except (Damaged, TraceStoreDown, OSError) as error:
            self._broken = True
            _LOG.warning("%s of %s: %s", self._row.name, self._row.probe, error)


FORMAT = "tandem-run-page/1"
_DRAWN_AT_ONCE, _WAITING, _FILES_AT_ONCE = 2, 16, 16
_LATER = {"Retry-After": "5"}
_UNKNOWN = "no such run is here: its manifest has not arrived (a probe sends it when the run has ended), or there never was one\n"


async def _nothing(_request: Request, _error: Exception) -> Response:
    return PlainTextResponse("here are /runs/ID, /runs/ID.json and /runs/ID/files/NAME\n", 404)


class Pages:
    """``store``: a client that only reads, or a text: why there is none. ``store_of``: of a trace's place."""

    def __init__(
        self,
        registry: Registry,
        store: SeriesStore | str,
        store_of: Callable[[str], TraceStore],
        retention_days: int | None = None,
        samples: RunSamples | None = None,
    ) -> None:
        self._registry, self._store, self._store_of, self._retention_days = registry, store, store_of, retention_days
        self._samples = samples
        self._drawing = asyncio.Semaphore(_DRAWN_AT_ONCE)
        self._waiting = self._sending = 0
        self._policy = page_policy(script_hash())

    def app(self, *, any_host: bool) -> ASGIApp:
        """The ASGI application."""
        inner = Starlette(
            routes=[
                Route("/runs/{run}", self._answering(self._run)),
                Route("/runs/{run}/files/{name:path}", self._answering(self._file)),
            ],
            exception_handlers={404: _nothing},
        )
        inner.router.redirect_slashes = False
        return Front(inner, any_host=any_host)

    def _answering(self, answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def answered(request: Request) -> Response:
            try:
                return await answer(request)
            except sqlite3.Error as error:
                _LOG.warning("registry: %s", error)
                return PlainTextResponse("the registry does not answer now\n", 503, _LATER)

        return answered

    async def _run(self, request: Request) -> Response:
        run, as_json = request.path_params["run"], False
        if run.endswith(".json") and not await run_in_threadpool(self._known, run):
            run, as_json = run.removesuffix(".json"), True
        if not PLAIN_NAME.match(run):
            return PlainTextResponse(_UNKNOWN, 404)
        if self._waiting >= _WAITING:
            return PlainTextResponse("too many pages at once\n", 503, _LATER)
        self._waiting += 1
        try:
            async with self._drawing:
                body = await run_in_threadpool(self._as_json if as_json else self._drawn, run)
        finally:
            self._waiting -= 1
        if body is None:
            return PlainTextResponse(_UNKNOWN, 404)
        if as_json:
            return Response(body, media_type="application/json")
        return Response(body, media_type="text/html", headers={"content-security-policy": self._policy})

    def _known(self, run: str) -> bool:
        return PLAIN_NAME.match(run) is not None and self._registry.runs.get(run) is not None

    def _drawn(self, run: str) -> bytes | None:
        account = account_of(self._registry, self._store, run, self._retention_days, self._samples)
        return None if account is None else encoded(render(account))

    def _as_json(self, run: str) -> bytes | None:
        account = account_of(self._registry, self._store, run, self._retention_days, with_records=False)
        return None if account is None else json.dumps(run_to_dict(account), indent=1, allow_nan=False).encode()

    async def _file(self, request: Request) -> Response:
        run, name = request.path_params["run"], request.path_params["name"]
        row = await run_in_threadpool(self._found, run, name) if PLAIN_NAME.match(run) else None
        if row is None:
            return PlainTextResponse("no such file of such a run is here\n", 404)
        part = part_of(request.headers, row.bytes, row.sha256)
        headers = {"etag": f'"{row.sha256}"', "accept-ranges": "bytes"}
        if part.status == 416:
            headers["content-range"] = f"bytes */{row.bytes}"
            return PlainTextResponse("the file has no such bytes\n", 416, headers)
        if part.status in (304, 412):
            return Response(status_code=part.status, headers=headers)
        last = name.rpartition("/")[2]
        headers |= {
            "content-type": "application/octet-stream",
            "content-length": str(part.end - part.start),
            "content-disposition": f"attachment; filename*=UTF-8''{quote(last, safe='')}",
        }
        if part.status == 206:
            headers["content-range"] = f"bytes {part.start}-{part.end - 1}/{row.bytes}"
        if request.method == "HEAD":
            return Response(status_code=part.status, headers=headers)
        return await self._sent(row, part, headers)

    async def _sent(self, row: TraceRow, part: Part, headers: dict[str, str]) -> Response:
        if self._sending >= _FILES_AT_ONCE:
            return PlainTextResponse("too many files at once\n", 503, _LATER)
        self._sending += 1
        try:
            stored = await run_in_threadpool(lambda: opened(self._store_of(row.place), row, part.start))
        except BaseException as error:
            self._sending -= 1
            if not isinstance(error, FileNotFoundError | TraceStoreDown):
                raise
            _LOG.warning("%s of %s: %s", row.name, row.probe, error)
            if isinstance(error, FileNotFoundError):
                return PlainTextResponse("the file was received, and is not in the store any more\n", 410)
            return PlainTextResponse("the store of traces does not answer now\n", 503, _LATER)
        return Sending(stored, row, part, headers, self._left)

    def _left(self) -> None:
        self._sending -= 1

    def _found(self, run: str, name: str) -> TraceRow | None:
        known = self._registry.runs.get(run)
        return None if known is None else file_of(self._registry, known, name)


def run_to_dict(account: RunAccount) -> dict[str, Any]:
    """``tandem-run-page/1`` (docs/reference/pages.md)."""
    run = account.run
    content = {
        "format": FORMAT,
        "made_utc_ns": account.made_utc_ns,
        "id": run.id,
        "probe": run.probe,
        "status": run.status,
        "received_utc_ns": run.received_utc_ns,
        "ledger": None if account.row is None else account.row.to_dict(),
        "trouble": account.trouble,
        "files": [
            {
                "name": file.name,
                "promised": file.promised,
                "bytes": file.bytes,
                "sha256": file.sha256,
                "received_utc_ns": None if file.trace is None else file.trace.received_utc_ns,
                "href": None if file.trace is None else f"/runs/{quote(run.id)}/files/{quote(file.name)}",
            }
            for file in account.files
        ],
        "pair": [one.id for one in account.pair],
        "manifest": run.manifest,
    }
    finite: dict[str, Any] = _finite(content)
    return finite


def _finite(value: Any) -> Any:  # noqa: ANN401  any JSON value
    """A probe can spell numbers (1e999) that JSON has no word for: null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list) else value
