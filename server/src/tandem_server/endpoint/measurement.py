"""What the measurement listener answers: whoami, download, upload, content and pages (server/spec/endpoint-api.md)."""

from __future__ import annotations

import errno
import json
import logging
import socket
import struct
import threading
import time
from collections.abc import Callable
from http import HTTPStatus

from tandem_server.content.library import Library
from tandem_server.content.page.shelf import Shelf
from tandem_server.endpoint import handshake, replay
from tandem_server.endpoint.content import PREFIX, ContentService
from tandem_server.endpoint.desk import Desk, Grant
from tandem_server.endpoint.download import Download
from tandem_server.endpoint.flows import FlowAccount, Labels
from tandem_server.endpoint.options import OptionsError, apply, effective
from tandem_server.endpoint.paths import told_path
from tandem_server.endpoint.recorder import Recorder
from tandem_server.endpoint.request import HEAD_LIMIT_BYTES, Ask, BadRequest, Request, read_ask, read_head
from tandem_server.endpoint.sampler import Sampler
from tandem_server.endpoint.sessions import Limits
from tandem_server.endpoint.upload import Upload

_LOG = logging.getLogger("tandem.endpoint.measurement")
_GOODBYE_S = 2.0


class Measurement:
    """Serves one connection at a time per thread (``Acceptor``). ``boot``: this machine's boot id, for the records."""

    def __init__(
        self,
        desk: Desk,
        limits: Limits,
        recorder: Recorder,
        boot: str,
        content: Library | None = None,
        pages: Shelf | None = None,
    ) -> None:
        self._desk, self._limits, self._recorder, self._boot = desk, limits, recorder, boot
        self._content, self._pages = content, pages

    def serve(self, connection: socket.socket, address: str, port: int, stopped: threading.Event) -> None:
        """One request, one answer, closed. OSError when the peer goes away meanwhile."""
        try:
            head, begun = _receive_head(connection, self._limits.head_s)
            arrived_s = time.monotonic()
            request = read_head(head)
            resources = {"/v1/whoami": "GET", "/v1/download": "GET", "/v1/upload": "POST"}
            page = self._pages is not None and request.path.startswith(replay.PREFIX)
            if page or (self._content is not None and request.path.startswith(PREFIX)):
                resources[request.path] = "GET"
            if request.path not in resources:
                raise BadRequest(404, f"there are {', '.join(resources)}")
            if request.method != resources[request.path]:
                raise BadRequest(405, f"only {resources[request.path]}")
            if begun and request.method != "POST" and not page:
                raise BadRequest(400, "something follows the head")
            if request.path == "/v1/whoami":
                further = handshake.seen(connection) if self._in_session(request) else {}
                _answer(connection, 200, {"address": address, "port": port, **further})
            else:
                self._transfer(connection, request, {"address": address, "port": port}, arrived_s, begun, stopped)
        except BadRequest as refusal:
            _answer(connection, refusal.status, {"error": str(refusal)})
        except TimeoutError:
            _answer(connection, 408, {"error": "the request did not come in time"})

    def _in_session(self, request: Request) -> bool:
        if "x-tandem-session" not in request.headers:
            return False
        try:
            self._desk.admit(request.headers["x-tandem-session"], Ask(None, None)).leave(None)
        except BadRequest:
            return False
        return True

    def _transfer(
        self,
        connection: socket.socket,
        request: Request,
        peer: dict[str, object],
        arrived_s: float,
        begun: bytes,
        stopped: threading.Event,
    ) -> None:
        content = self._content if request.path.startswith(PREFIX) else None
        pages = self._pages if request.path.startswith(replay.PREFIX) else None
        page = None if pages is None else replay.open_page(pages, request)
        ask = Ask(None, None, many=page is not None) if content or page else read_ask(request.query)
        upload = request.path == "/v1/upload"
        if upload and ask.payload_bytes != request.body_bytes:
            raise BadRequest(400, "an upload has Content-Length as bytes= says, with seconds= none")
        session = self._desk.admit(request.headers.get("x-tandem-session", ""), ask)
        summary: dict[str, object] | None = None
        try:
            path = told_path(request.headers.get("x-tandem-path"), session.path, session.paths, session.kind)
            apply(connection, session.options)
            own = {"request": request.line, "peer": peer, **effective(connection).told()}
            labels = Labels(session.probe, self._boot, session.run, session.kind, path, session.paths)

            def stop() -> bool:
                return stopped.is_set() or session.over()

            if page is not None:
                stall_s = self._limits.stall_s
                summary = own | replay.serve(connection, begun, page, session, labels, self._recorder, stop, stall_s)
            elif content is not None:
                summary = own | self._serve_content(connection, content, request, session, labels, stop)
            elif upload:
                summary = own | self._upload(connection, ask, begun, session, labels, stop)
            else:
                summary = own | self._download(connection, ask, arrived_s, session, labels, stop)
            _LOG.info("run %s %s: %s", session.run, request.line, summary["end"])
        except OptionsError as refusal:
            raise BadRequest(503, str(refusal)) from refusal
        finally:
            session.leave(summary)
        if summary["end"] in ("complete", "budget") and not upload:
            _goodbye(connection)
        elif upload and summary["end"] == "complete":
            _answer(connection, 200, {"bytes": summary["bytes_received"], "duration_s": summary["duration_s"]})
        elif upload and summary["end"] == "too short":
            _answer(connection, 400, {"error": "the body was shorter than its Content-Length"})
        else:
            # What still waits in the kernel is worth nothing now: a reset stops it and tells the peer.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _serve_content(
        self,
        connection: socket.socket,
        library: Library,
        request: Request,
        session: Grant,
        labels: Labels,
        stop: Callable[[], bool],
    ) -> dict[str, object]:
        account, sampler = FlowAccount(labels), Sampler(connection)

        def sample() -> None:
            snapshot = sampler.read()
            if snapshot is not None:
                self._recorder.put(account.take(snapshot))

        limits = self._limits
        service = ContentService(
            connection,
            library,
            session,
            lambda: _head_alone(connection, limits.head_s),
            sample,
            account.head,
            stop,
            limits.stall_s,
        )
        end = service.serve(request)
        return {
            **account.summary(),
            "bytes_sent": service.sent_bytes,
            "requests": service.requests,
            "end": end,
            "request_to_last_ack_s": None,
        }

    def _download(
        self,
        connection: socket.socket,
        ask: Ask,
        arrived_s: float,
        session: Grant,
        labels: Labels,
        stop: Callable[[], bool],
    ) -> dict[str, object]:
        head = _head(200, "application/octet-stream", ask.payload_bytes)
        account = FlowAccount(labels, len(head))
        download = Download(
            connection,
            Sampler(connection),
            ask,
            session,
            lambda snapshot: self._recorder.put(account.take(snapshot)),
            stop,
            self._limits.stall_s,
        )
        end = download.run(head)
        acked_s = None if download.acked_at_s is None or end != "complete" else download.acked_at_s - arrived_s
        return {
            **account.summary(),
            "bytes_sent": download.sent_bytes,
            "end": end,
            "request_to_send_s": None if download.first_sent_at_s is None else download.first_sent_at_s - arrived_s,
            "request_to_last_ack_s": acked_s,
            "last_ack_resolution_s": None if acked_s is None else download.look_s,
        }

    def _upload(
        self,
        connection: socket.socket,
        ask: Ask,
        begun: bytes,
        session: Grant,
        labels: Labels,
        stop: Callable[[], bool],
    ) -> dict[str, object]:
        account = FlowAccount(labels)
        upload = Upload(
            connection,
            Sampler(connection),
            ask,
            session,
            lambda snapshot, received: self._recorder.put(account.take(snapshot, received)),
            stop,
            self._limits.stall_s,
        )
        end = upload.run(begun)
        return {
            **account.summary(),
            "bytes_sent": 0,
            "bytes_received": upload.received_bytes,
            "end": end,
            "duration_s": upload.duration_s,
            "request_to_send_s": None,
            "request_to_last_ack_s": None,
            "last_ack_resolution_s": None,
        }


def _receive_head(connection: socket.socket, within_s: float) -> tuple[bytes, bytes]:
    """The bytes up to and with the empty line, and those that came after it.

    TimeoutError, BadRequest (too long), ConnectionError (closed before)."""
    deadline_s = time.monotonic() + within_s
    head = b""
    while b"\r\n\r\n" not in head:
        if len(head) > HEAD_LIMIT_BYTES:
            raise BadRequest(431, f"the head is longer than {HEAD_LIMIT_BYTES} bytes")
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        connection.settimeout(left_s)
        more = connection.recv(HEAD_LIMIT_BYTES)
        if not more:
            raise ConnectionError("closed before the request was whole")
        head += more
    connection.settimeout(within_s)
    head, empty, begun = head.partition(b"\r\n\r\n")
    return head + empty, begun


def _head_alone(connection: socket.socket, within_s: float) -> bytes:
    """A head that nothing follows."""
    head, begun = _receive_head(connection, within_s)
    if begun:
        raise BadRequest(400, "something follows the head")
    return head


def _head(status: int, kind: str, length: int | None) -> bytes:
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"Content-Type: {kind}",
        *([] if length is None else [f"Content-Length: {length}"]),
        "Cache-Control: no-store",
        "Connection: close",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


def _answer(connection: socket.socket, status: int, body: dict[str, object]) -> None:
    content = json.dumps(body).encode()
    connection.settimeout(_GOODBYE_S)
    connection.sendall(_head(status, "application/json", len(content)) + content)
    _goodbye(connection)


def _goodbye(connection: socket.socket) -> None:
    """Close our side and wait a moment for the peer's: closing at once with bytes unread would reset the answer away."""
    try:
        connection.shutdown(socket.SHUT_WR)
    except OSError as error:
        if error.errno == errno.ENOTCONN:
            return  # the peer has reset it: a client that stopped reading by its own clock does
        raise
    deadline_s = time.monotonic() + _GOODBYE_S
    unread = HEAD_LIMIT_BYTES
    while unread > 0 and (left_s := deadline_s - time.monotonic()) > 0:
        connection.settimeout(left_s)
        try:
            more = connection.recv(HEAD_LIMIT_BYTES)
        except TimeoutError:
            return
        if not more:
            return
        unread -= len(more)
