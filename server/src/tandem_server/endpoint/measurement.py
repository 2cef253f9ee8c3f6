"""What the measurement listener answers: whoami, download, upload and content (docs/reference/endpoint-api.md)."""

from __future__ import annotations

import logging
import socket
import ssl
import struct
import threading
import time

from tandem.stream import Stream, TlsStream
from tandem_server.content.library import Library
from tandem_server.content.page import PageStore
from tandem_server.endpoint.flows import FlowAccount, Labels
from tandem_server.endpoint.http1 import (
    BadRequest,
    Request,
    Transfer,
    accept_tls,
    answer,
    content_head,
    goodbye,
    read_claim,
    read_head,
    read_transfer,
    receive_first,
)
from tandem_server.endpoint.kept_connection import CONTENT_PREFIX, PAGE_PREFIX, open_page, replay_page, serve_content
from tandem_server.endpoint.pool import BudgetLease, SessionBroker
from tandem_server.endpoint.recorder import Recorder
from tandem_server.endpoint.sessions import Limits
from tandem_server.endpoint.sockets import OptionsError, apply_accepted, effective, handshake_seen
from tandem_server.endpoint.transfers import Download, Measured, Upload

_LOG = logging.getLogger("tandem.endpoint.measurement")


class Measurement:
    """Serves one connection at a time per thread (``Acceptor``). ``boot``: this machine's boot id, for the records. ``tls``: for
    connections to the port that speaks it; None where there is none."""

    def __init__(
        self,
        broker: SessionBroker,
        limits: Limits,
        recorder: Recorder,
        boot: str,
        content: Library | None = None,
        tls: ssl.SSLContext | None = None,
        pages: PageStore | None = None,
    ) -> None:
        self._broker, self._limits, self._recorder, self._boot = broker, limits, recorder, boot
        self._content, self._tls, self._pages = content, tls, pages

    def serve_tls(self, connection: socket.socket, address: str, port: int, stopped: threading.Event) -> None:
        """As ``serve``, with TLS. TlsError when that does not come to be."""
        if self._tls is None:
            raise ValueError("no certificate for the port that speaks TLS")
        try:
            stream, took_ms = accept_tls(connection, self._tls, self._limits.head_s)
        except BadRequest as refusal:
            answer(connection, refusal.status, {"error": str(refusal)})
            return
        self.serve(stream, address, port, stopped, took_ms)

    def serve(
        self,
        connection: Stream,
        address: str,
        port: int,
        stopped: threading.Event,
        tls_ms: float | None = None,
    ) -> None:
        """One request, one answer, closed. OSError when the peer goes away meanwhile. ``tls_ms``: how long TLS's handshake took."""
        try:
            head, begun = receive_first(connection, self._limits.head_s)
            arrived_s = time.monotonic()
            if not head:
                return
            request = read_head(head)
            resources = {"/v1/whoami": "GET", "/v1/download": "GET", "/v1/upload": "POST"}
            page = self._pages is not None and request.path.startswith(PAGE_PREFIX)
            if page or (self._content is not None and request.path.startswith(CONTENT_PREFIX)):
                resources[request.path] = "GET"
            if request.path not in resources:
                raise BadRequest(404, f"there are {', '.join(resources)}")
            if request.method != resources[request.path]:
                raise BadRequest(405, f"only {resources[request.path]}")
            if begun and request.method != "POST" and not page:
                raise BadRequest(400, "something follows the head")
            if request.path == "/v1/whoami":
                further = handshake_seen(connection) if self._in_session(request, tls_ms is not None) else {}
                answer(connection, 200, {"address": address, "port": port, **further})
            else:
                own: dict[str, object] = {
                    "request": request.line,
                    "peer": {"address": address, "port": port},
                    "tls": _tls(connection, tls_ms),
                }
                self._transfer(connection, request, own, arrived_s, begun, stopped)
        except BadRequest as refusal:
            answer(connection, refusal.status, {"error": str(refusal)})
        except TimeoutError:
            answer(connection, 408, {"error": "the request did not come in time"})

    def _in_session(self, request: Request, tls: bool) -> bool:
        try:
            self._broker.admit(read_claim(request), Transfer(None, None), tls).leave(None)
        except BadRequest:
            return False
        return True

    def _transfer(
        self,
        connection: Stream,
        request: Request,
        own: dict[str, object],
        arrived_s: float,
        begun: bytes,
        stopped: threading.Event,
    ) -> None:
        content = self._content if request.path.startswith(CONTENT_PREFIX) else None
        pages = self._pages if request.path.startswith(PAGE_PREFIX) else None
        transfer = Transfer(None, None, many=pages is not None) if content or pages else read_transfer(request.query)
        upload = request.path == "/v1/upload"
        if upload and transfer.payload_bytes != request.body_bytes:
            raise BadRequest(400, "an upload has Content-Length as bytes= says, with seconds= none")
        session = self._broker.admit(read_claim(request), transfer, isinstance(connection, TlsStream))
        summary: dict[str, object] | None = None
        try:
            path = _path(request, session)
            apply_accepted(connection, session.options)
            own = own | effective(connection).to_dict()
            labels = Labels(session.probe, self._boot, session.run, session.kind, path, session.paths)

            def stop() -> bool:
                return stopped.is_set() or session.over()

            account, record = FlowAccount(labels), self._recorder.put
            measured = Measured(connection, session, account, record, stop, self._limits.stall_s)
            if pages is not None:
                summary = own | replay_page(measured, open_page(pages, request, connection), begun)
            elif content is not None:
                summary = own | serve_content(measured, content, request, self._limits.head_s)
            elif upload:
                summary = own | _uploaded(measured, transfer, begun)
            else:
                summary = own | _downloaded(measured, transfer, arrived_s)
            _LOG.info("run %s %s: %s", session.run, request.line, summary["end"])
        except OptionsError as refusal:
            raise BadRequest(503, str(refusal)) from refusal
        finally:
            session.leave(summary)
        if summary["end"] in ("complete", "budget") and not upload:
            goodbye(connection)
        elif upload and summary["end"] == "complete":
            answer(connection, 200, {"bytes": summary["bytes_received"], "duration_s": summary["duration_s"]})
        elif upload and summary["end"] == "too short":
            answer(connection, 400, {"error": "the body was shorter than its Content-Length"})
        else:
            # What still waits in the kernel is worth nothing now: a reset stops it and tells the peer.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _downloaded(measured: Measured, transfer: Transfer, arrived_s: float) -> dict[str, object]:
    head = content_head(200, "application/octet-stream", transfer.payload_bytes, ("Connection", "close"))
    measured.account.head(len(head))
    download = Download(measured, transfer)
    end = download.run(head)
    acked_s = None if download.acked_at_s is None or end != "complete" else download.acked_at_s - arrived_s
    return {
        **measured.account.summary(),
        "bytes_sent": download.sent_bytes,
        "end": end,
        "request_to_send_s": None if download.first_sent_at_s is None else download.first_sent_at_s - arrived_s,
        "request_to_last_ack_s": acked_s,
        "last_ack_resolution_s": None if acked_s is None else download.look_s,
    }


def _uploaded(measured: Measured, transfer: Transfer, begun: bytes) -> dict[str, object]:
    upload = Upload(measured, transfer)
    end = upload.run(begun)
    return {
        **measured.account.summary(),
        "bytes_sent": 0,
        "bytes_received": upload.received_bytes,
        "end": end,
        "duration_s": upload.duration_s,
        "request_to_send_s": None,
        "request_to_last_ack_s": None,
        "last_ack_resolution_s": None,
    }


def _tls(connection: Stream, took_ms: float | None) -> dict[str, object] | None:
    if not isinstance(connection, TlsStream):
        return None
    return {"version": connection.version, "cipher": connection.cipher, "handshake_ms": took_ms}


def _path(request: Request, session: BudgetLease) -> str | None:
    """The path of the connection's first subflow, as far as the request or the session tells."""
    path = request.headers.get("x-tandem-path")
    if path is None:
        # In a session of any kind connections begin on several paths: only an address says which.
        return session.path if session.kind != "any" else None
    if path != session.path and path not in session.paths:
        raise BadRequest(400, "X-Tandem-Path names none of the session's paths")
    return path
