"""The endpoint's control channel (docs/reference/endpoint-api.md): sessions, what their answers say (further addresses of the server, its
captures), and under which address it sees each path. Answers come from outside: what is not as specified reads as absent.
"""

from __future__ import annotations

import contextlib
import hmac
import http.client
import ipaddress
import itertools
import json
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tandem.experiment import base, http_head
from tandem.experiment.base import STOPPED, MissingRequirementError, Stop, StoppedError
from tandem.experiment.parameters import CommonParameters, ProbePath
from tandem.mptcp import sockets
from tandem.schema.manifest import Failure, ServerCapture
from tandem.schema.trace import is_sha256, server_capture
from tandem.schema.url import Origin

WHOAMI_S = 3.0
_FAREWELL_S = 2.0
_LONGEST = 1 << 20
_SESSION = re.compile(r"[A-Za-z0-9._~-]{1,200}\Z")
_KEY = re.compile(r"[0-9a-f]{64}\Z")


class ControlError(Exception):
    """The control channel failed; ``failure`` goes into the result. ``status``: that of the server's answer, None without one."""

    def __init__(self, reason: str, *, retry: bool, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.failure = Failure(reason=reason, retry=retry)


def attempt(measure: Callable[[], Failure | None]) -> Failure | None:
    """``measure``; its failure, that of the control channel, or that the run was stopped. MissingRequirementError for what this machine
    lacks."""
    try:
        return measure()
    except ControlError as error:
        return error.failure
    except StoppedError:
        return STOPPED
    except sockets.UnsupportedError as error:
        raise MissingRequirementError(str(error)) from error


@dataclass(frozen=True, slots=True)
class Session:
    """An open session. ``key``: what its connections and datagrams are signed with; never sent on a measured path. ``path``: over which
    path it was opened. ``answer``: all that the server said, as it came."""

    id: str
    key: bytes = field(repr=False)
    path: str
    answer: dict[str, Any] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1), repr=False)

    def claim(self, target: str, method: str = "GET") -> str:
        """``X-Tandem-Session`` of one connection, whose first request asks for ``target``: good once. From any thread."""
        number = next(self._numbers)
        signed = f"{method} {target}\n{self.id}\n{number}".encode()
        return f"{self.id} {number} {hmac.digest(self.key, signed, 'sha256')[:16].hex()}"


class _Connection(http.client.HTTPConnection):
    """An HTTP connection that starts at one path's interface, with TLS when there is a context."""

    def __init__(self, origin: Origin, path: ProbePath, timeout_s: float, tls: ssl.SSLContext | None) -> None:
        super().__init__(origin.host, origin.port, timeout=timeout_s)
        self._path, self.timeout_s, self._tls = path, timeout_s, tls
        self.given_up = False

    def give_up(self) -> None:
        """End what goes on, from another thread: whoever reads sees the end at once."""
        self.given_up = True
        going = self.sock
        if going is not None:
            with contextlib.suppress(OSError):  # it has just ended by itself
                # The socket's own, not TLS's, which would forget that it was TLS while another thread reads.
                socket.socket.shutdown(going, socket.SHUT_RDWR)

    def connect(self) -> None:
        address = sockets.resolve(self.host, self.port, self._path.interface)
        plain = sockets.connect("tcp", address, self._path.source, self.timeout_s).socket
        plain.settimeout(self.timeout_s)
        if self._tls is None:
            self.sock = plain
            return
        try:
            self.sock = self._tls.wrap_socket(plain, server_hostname=self.host)
        except BaseException:
            plain.close()
            raise


def _exchange(
    connection: _Connection, method: str, url: str, headers: dict[str, str], body: bytes | None
) -> tuple[int, Any]:
    """Status and JSON answer (None when it is none). TimeoutError when that takes longer than the connection's time-out as a whole: a
    server that sends a byte now and then, or goes on without end, is none to wait for."""
    over = threading.Timer(connection.timeout_s, connection.give_up)
    over.daemon = True
    try:
        connection.connect()
        over.start()
        connection.request(method, url, body=body, headers=headers)
        response = connection.getresponse()
        raw = response.read(_LONGEST)
    except (OSError, http.client.HTTPException) as error:
        if connection.given_up:
            raise TimeoutError from error
        raise
    finally:
        over.cancel()
        connection.close()
    if connection.given_up:
        raise TimeoutError
    return response.status, parsed(raw)


def parsed(raw: bytes) -> Any:  # noqa: ANN401  any JSON value
    """JSON from a server; None when it is none, or nested without end. NaN and Infinity are none: no result may hold them."""
    try:
        return json.loads(raw, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> Any:  # noqa: ANN401  never returns
    raise ValueError(constant)


# What another program's JSON may hold at some place, or anything else.


def whole(value: object) -> int | None:
    """A count below 2^63, as the kernel's are; None for anything else."""
    return value if type(value) is int and 0 <= value < 2**63 else None


def real(value: object) -> float | None:
    """A finite number; None for anything else."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63
    return float(value) if known and isinstance(value, int | float) else None


def mapping(value: object) -> dict[str, Any]:
    """An object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[dict[str, Any]]:
    """The objects in a list; none for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _tls(request: CommonParameters, origin: Origin) -> ssl.SSLContext | None:
    return ssl.create_default_context(cafile=request.ca_file) if origin.scheme == "https" else None


class Control:
    def __init__(self, request: CommonParameters) -> None:
        self._request = request
        self._captured: set[str] = set()
        try:
            self._tls = _tls(request, request.control)
        except OSError as error:  # ssl.SSLError is one
            raise ControlError(f"CA file {request.ca_file}: {error}", retry=False) from error

    def open(self, kind: str, addresses: dict[str, str], **wanted: Any) -> Session:  # noqa: ANN401  any JSON value
        """Open a session of ``kind``; ``addresses``: each path's public address, as far as known; ``wanted``: what else the request
        says (``bytes``, ``seconds``, …: docs/reference/endpoint-api.md). ControlError when that fails.

        Over the primary path, and over the others when that fails, so that a dead path shows in the measured connection. Where the run
        wants the server's capture and the server refuses the session, one without is requested: measuring comes first.
        """
        r = self._request
        paths = {p.name: {"operator": p.operator, "address": addresses[p.name]} for p in r.paths if p.name in addresses}
        body = {"run": r.run, "kind": kind, "path": r.primary.name, "paths": paths, **wanted}
        if r.measurement.scheme == "https":
            body["tls"] = True
        if not r.capture:
            return self._opened(body)
        try:
            session = self._opened({**body, "capture": True})
        except ControlError as error:
            if error.status not in (400, 429):
                raise
            session = self._opened(body)  # refused again it was not for the capture, and the run says why
            why = error.failure["reason"].removeprefix("control channel: ")
            base.server_captures[session.id] = no_capture(session.id, f"refused: {why}")
            return session
        base.server_captures[session.id] = no_capture(session.id, LEFT_OPEN)
        self._captured.add(session.id)
        return session

    def _opened(self, body: dict[str, Any]) -> Session:
        r = self._request
        status, answer, path = self._over_any("POST", "/v1/sessions", json.dumps(body).encode(), r.control_timeout_s)
        if status == 201 and isinstance(answer, dict):
            session, key = answer.get("session"), answer.get("key")
            if not isinstance(session, str) or not _SESSION.match(session):  # it goes into a header and a URL
                raise ControlError(f"control channel: {session!r} is no session", retry=False)
            if not isinstance(key, str) or not _KEY.match(key):
                raise ControlError("control channel: a session without a key; hint: update the server", retry=False)
            base.server_environment.update(mapping(answer.get("environment")))
            return Session(session, bytes.fromhex(key), path, answer)
        raise _refused(status, answer)

    @contextmanager
    def session(self, stop: Stop, kind: str, **wanted: Any) -> Iterator[Session]:  # noqa: ANN401  any JSON value
        """``open`` without addresses, and ``leave`` at the end of the block. ControlError, StoppedError. Main thread only."""
        with stop.interruptible():
            session = self.open(kind, {}, **wanted)
        try:
            yield session
        finally:
            self.leave(session, stop)

    def get(self, url: str) -> Any:  # noqa: ANN401  any JSON value
        """The server's answer to ``url`` (``/v1/pages``, ``/v1/pages/NAME``). ControlError when it has none, or refuses."""
        status, answer, _ = self._over_any("GET", url, None, self._request.control_timeout_s)
        if status != 200:
            raise _refused(status, answer)
        return answer

    def leave(self, session: Session, stop: Stop) -> dict[str, Any] | None:
        """``close`` with the patience that a run has, and with little once it was stopped: who stops us waits."""
        return self.close(session, _FAREWELL_S if stop.requested else self._request.control_timeout_s)

    def close(self, session: Session, timeout_s: float) -> dict[str, Any] | None:
        """End the session; the answer, which is the server's side, or None without one."""
        answer = None
        try:
            status, found = self.end(session, timeout_s)
            answer = found if status == 200 and isinstance(found, dict) else None
        except ControlError:
            pass  # None says so
        if session.id in self._captured:
            base.server_captures[session.id] = capture_of(self._request.run, session.id, answer)
        return answer

    def end(self, session: Session, timeout_s: float) -> tuple[int, Any]:
        """End the session; the answer's status (404: the server has no such session any more) and JSON. ControlError without an answer."""
        status, answer, _ = self._over_any("DELETE", f"/v1/sessions/{session.id}", None, timeout_s)
        return status, answer

    def _over_any(self, method: str, url: str, body: bytes | None, timeout_s: float) -> tuple[int, Any, str]:
        headers = {"Authorization": f"Bearer {self._request.token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        reasons = []
        # stable: the primary first, unless it has lost its address
        paths = sorted(self._request.paths, key=lambda p: not sockets.has_address(p.interface))
        for path in paths:
            patience_s = timeout_s if path is paths[-1] else timeout_s / 2
            connection = _Connection(self._request.control, path, patience_s, self._tls)
            try:
                return *_exchange(connection, method, url, headers, body), path.name
            except ssl.SSLCertVerificationError as error:
                raise ControlError(f"control channel: certificate: {error.verify_message}", retry=False) from error
            except (OSError, http.client.HTTPException) as error:
                reasons.append(f"{path.name}: {describe(error)}")
        raise ControlError("control channel: " + "; ".join(reasons), retry=True)


def _refused(status: int, answer: object) -> ControlError:
    reason = answer.get("error") if isinstance(answer, dict) else None
    why = f"HTTP {status}" + (f": {reason}" if isinstance(reason, str) else "")
    return ControlError(f"control channel: {why}", retry=status in http_head.WORTH_RETRYING, status=status)


def describe(error: Exception) -> str:
    """A network error in one or two words where there are some."""
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, ConnectionRefusedError):
        return "refused"
    if isinstance(error, ConnectionResetError):
        return "reset"
    if isinstance(error, http.client.RemoteDisconnected):
        return "closed before any answer"
    if isinstance(error, http.client.BadStatusLine):
        return "an answer that is not http/1"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate: {error.verify_message}"
    return " ".join(str(getattr(error, "strerror", None) or error or type(error).__name__).split()).lower()


def whoami(common: CommonParameters, paths: Sequence[ProbePath]) -> dict[str, str]:
    """The address under which the endpoint sees each path, over TCP and all at once; silent paths are left out."""
    found: dict[str, str] = {}
    origin = common.measurement

    def ask(path: ProbePath) -> None:
        try:
            connection = _Connection(origin, path, WHOAMI_S, _tls(common, origin))
            status, answer = _exchange(connection, "GET", "/v1/whoami", {}, None)
        except (OSError, http.client.HTTPException):
            return  # a path that is down has no public address; the run goes on and shows it
        if status == 200 and isinstance(answer, dict) and isinstance(answer.get("address"), str):
            found[path.name] = answer["address"]

    threads = [threading.Thread(target=ask, args=(path,), daemon=True) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WHOAMI_S + 1)
    return dict(found)


MOST_FURTHER = 4
"""More of the server's addresses are passed over: each may cost a handshake on every path."""
_LOOKED_AT = 64


def further_addresses(answer: Mapping[str, Any]) -> list[str]:
    """``further_addresses`` of a session's answer (of the server's measurement listener), each once, in their plainest form. Loopback,
    multicast and the like are passed over: they would have us send handshakes to ourselves or to many."""
    given = answer.get("further_addresses")
    found: list[str] = []
    for text in given[:_LOOKED_AT] if isinstance(given, list) else []:
        try:
            address = ipaddress.ip_address(text if isinstance(text, str) else "")
        except ValueError:
            continue
        if isinstance(address, ipaddress.IPv6Address):
            if address.scope_id is not None:
                continue
            address = address.ipv4_mapped or address
        if address.is_loopback or address.is_multicast or address.is_unspecified or address.is_link_local:
            continue
        if str(address) not in (*found, "255.255.255.255"):
            found.append(str(address))
    return found[:MOST_FURTHER]


LEFT_OPEN = "the run did not end its session; the server may have kept one"
NO_ANSWER = "the server did not answer when the session ended; it may have kept one"
_LONGEST_WHY = 300


def no_capture(session: str | None, why: str) -> ServerCapture:
    """The entry of a session without a capture."""
    return ServerCapture(
        session=session,
        name=None,
        bytes=None,
        sha256=None,
        packets=None,
        packets_dropped=None,
        truncated=False,
        why=" ".join(why.split())[:_LONGEST_WHY],
    )


def capture_of(run: str, session: str, answer: dict[str, Any] | None) -> ServerCapture:
    """The entry of a session that was ended. ``answer``: what the server said then, None: nothing."""
    if answer is None:
        return no_capture(session, NO_ANSWER)
    said = answer.get("capture")
    if not isinstance(said, dict):
        return no_capture(session, "the server made none and does not say why")
    why = said.get("error") if isinstance(said.get("error"), str) else None
    size, sha256, name = whole(said.get("bytes")), said.get("sha256"), server_capture(run, session)
    if said.get("name") != name or size is None or not is_sha256(sha256):
        return no_capture(session, why or "the server kept none among the run's files; hint: update the server")
    return ServerCapture(
        session=session,
        name=name,
        bytes=size,
        sha256=str(sha256),
        packets=whole(said.get("packets")),
        packets_dropped=whole(said.get("packets_dropped")),
        truncated=said.get("truncated") is True,
        why=None if why is None else " ".join(why.split())[:_LONGEST_WHY],
    )
