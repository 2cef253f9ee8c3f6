"""The gateway: one HTTPS connection over one path, kept open between requests, its bytes counted by the kernel; and any path that works."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import select
import socket
import ssl
import struct
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tandem.mptcp import kernels, names

_ANSWER_BYTES = 4 * 1024 * 1024
_BYTES_ACKED_AT, _SEGMENTS_AT, _BYTES_SENT_AT, _INFO_BYTES = 120, 136, 200, 216
_HEADERS_BYTES = 72
"""IPv6 and TCP with its time stamps; with IPv4 20 less. What is counted against a budget is not to be too little."""
_SO_MAX_PACING_RATE = 47
_UNSENT_BYTES, _LEAST_UNSENT_BYTES = 64 * 1024, 8 * 1024
_PIECE_BYTES = 16 * 1024
_LOOK_S = 0.2
"""How often is asked whether a request is to be broken off."""
_OUT_OF_ITS_TIME = (9, 10)
"""X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED."""


TOKEN_WAIT_S = 30.0
UNKNOWN_WAIT_S = 15.0
BUSY_WAIT_S = 5.0
CLOCK_WAIT_S = 5.0
"""While a clock is wrong: chronyd sets it within seconds of having the network."""


class SetupError(ValueError):
    """The gateway cannot be asked as configured (URL, CA file, token); one line with a hint."""


class LinkError(Exception):
    """This path did not bring an answer; another one may."""


@dataclass
class Later(Exception):  # noqa: N818  no error: everything is kept and tried again
    """Not now: try again in ``wait_s`` seconds. ``reason`` for people."""

    reason: str
    wait_s: float


class Interrupted(Exception):  # noqa: N818  no error: somebody said so
    """It was broken off, by its owner's wish."""


class CertificateTimeError(Exception):
    """The server's certificate does not hold at the time that the system's clock shows: no path helps. One line with a hint."""


@dataclass(frozen=True, slots=True)
class Answer:
    """``content`` is the JSON of the answer, None when it is none. ``retry_after_s``: what the server asked for. ``date_utc_s``: when
    it answered, by its clock (``Date``, whole seconds)."""

    status: int
    content: Any
    retry_after_s: float | None
    date_utc_s: float | None = None

    @property
    def error(self) -> str:
        """The server's reason, for people."""
        error = self.content.get("error") if isinstance(self.content, dict) else None
        # Bounded and on one line: what a broken server says must not fill a log.
        return f"HTTP {self.status}" + (f": {' '.join(error[:1000].split())[:300]}" if isinstance(error, str) else "")


def not_now(answer: Answer) -> Later:
    """What an answer that settles nothing means."""
    if answer.status in (401, 403):
        return Later(f"{answer.error}; hint: give the probe a good token (tandem-server probe rotate)", TOKEN_WAIT_S)
    if answer.status in (408, 429) or answer.status >= 500:
        return Later(answer.error, answer.retry_after_s if answer.retry_after_s is not None else BUSY_WAIT_S)
    return Later(f"{answer.error}: that is no gateway of this version", UNKNOWN_WAIT_S)


@dataclass(frozen=True, slots=True)
class TcpCounts:
    """``payload_bytes``: what arrived of TCP's payload, both ways; ``carried_bytes``: what networks carried for it, both ways, headers and
    everything sent twice included; ``sent_bytes``: of that, payload sent, all that went twice included."""

    payload_bytes: int = 0
    carried_bytes: int = 0
    sent_bytes: int = 0

    def __add__(self, other: TcpCounts) -> TcpCounts:
        return TcpCounts(
            self.payload_bytes + other.payload_bytes,
            self.carried_bytes + other.carried_bytes,
            self.sent_bytes + other.sent_bytes,
        )


def counts_of(connection: socket.socket) -> TcpCounts:
    """Of a connected socket; OSError when it is gone."""
    return read_counts(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES))


def read_counts(info: bytes) -> TcpCounts:
    """From the bytes of ``tcp_info``; struct.error when there are too few. Kernels before 4.19 do not tell what was sent: then what was
    acknowledged stands for it."""
    acked, received = struct.unpack_from("=QQ", info, _BYTES_ACKED_AT)
    segments = sum(struct.unpack_from("=II", info, _SEGMENTS_AT))
    sent = struct.unpack_from("=Q", info, _BYTES_SENT_AT)[0] if len(info) >= _BYTES_SENT_AT + 8 else acked
    return TcpCounts(acked + received, sent + received + segments * _HEADERS_BYTES, sent)


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    """Where the gateway is and how to know it and be known by it."""

    host: str
    port: int
    tls: ssl.SSLContext
    token: str
    token_file: Path | None = None

    @classmethod
    def of(cls, url: str, ca_file: Path | None, token_file: Path, token: str | None = None) -> GatewayAddress:
        """From the configuration; SetupError names what is wrong. ``ca_file`` None: the system's authorities; ``token``: instead of the
        file's."""
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname:
            raise SetupError(f"gateway {url!r}: not of the form https://HOST:PORT; hint: correct the URL")
        try:
            tls = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
        except (OSError, ssl.SSLError) as error:
            raise SetupError(f"ca_file {ca_file}: {error}; hint: copy the server's ca.pem there") from error
        return cls(parts.hostname, parts.port or 443, tls, token or _token(token_file), token_file)

    def token_now(self) -> str:
        """As the file has it now; what was read at the start while the file holds none."""
        if self.token_file is None:
            return self.token
        try:
            return _token(self.token_file)
        except SetupError:
            return self.token


def _token(file: Path) -> str:
    """The token in ``file``; SetupError."""
    try:
        token = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"token_file {file}: {error}; hint: tandem-server probe add NAME --token-file") from error
    if not token or not token.isascii() or not token.isprintable():
        raise SetupError(f"token_file {file}: holds no token; hint: tandem-server probe rotate NAME")
    return token


Ask = Callable[[str, str, bytes, dict[str, str]], Answer]
"""Method, path, body, headers; raises ``Later`` when no path brings an answer."""


class Bound(http.client.HTTPSConnection):
    """HTTPS that leaves by one interface. ``tune`` is given the socket before it connects; ``answered``: whether an answer came over it."""

    def __init__(
        self,
        address: GatewayAddress,
        interface: str | None,
        connect_s: float,
        answer_s: float,
        tune: Callable[[socket.socket], None] | None,
    ) -> None:
        super().__init__(address.host, address.port, timeout=connect_s, context=address.tls)
        self._tls, self._interface, self._answer_s, self._tune = address.tls, interface, answer_s, tune
        self.answered = False

    def connect(self) -> None:
        error: OSError = OSError(f"{self.host} has no address")
        for address in names.addresses(self.host, self._interface):
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            # Of TCP alone, over this path alone: on the v0.9x kernel every socket that does not say so has subflows on all.
            plain = kernels.here().open_socket(family, multipath=False)
            try:
                plain.settimeout(self.timeout)
                if self._interface is not None:
                    plain.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self._interface.encode() + b"\0")
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._tune is not None:
                    self._tune(plain)
                plain.connect((address, self.port))
                # Known before the handshake, so that ``abort`` ends that too.
                self.sock = self._tls.wrap_socket(plain, do_handshake_on_connect=False, server_hostname=self.host)
                self.sock.do_handshake()
            except OSError as refused:
                plain.close()
                self.close()
                error = refused
                continue
            self.sock.settimeout(self._answer_s)
            return
        raise error


_SILENT_S = 15.0
"""So long a connection may take nothing, or leave the whole body without an answer."""


class Outgoing:
    """A body sent piece by piece: slowly if it has to be, and ended early when the answer comes before its end. ``stopped`` is asked
    five times a second and says whether to break off: then the connection is reset, so that nothing of what the kernel still holds
    goes out."""

    def __init__(self, content: bytes, stopped: Callable[[], bool]) -> None:
        self._content, self._stopped = content, stopped
        self._looked_s = time.monotonic()

    def send(self, connection: Bound, method: str, url: str, headers: dict[str, str]) -> bool:
        """The request over ``connection``, until an answer is there to be read; False when it came before all was sent, so that the
        connection is of no further use. OSError when it breaks, Interrupted when ``stopped`` said so."""
        # What comes before the first answer may be TLS's own (session tickets); afterwards it is an answer.
        early = connection.answered
        connection.putrequest(method, url, skip_accept_encoding=True)
        for name, value in {**headers, "Content-Length": str(len(self._content))}.items():
            connection.putheader(name, value)
        connection.endheaders()
        sock = connection.sock
        waited_s = sock.gettimeout()
        sock.settimeout(0)
        try:
            if not self._put(sock, early=early):
                _reset_when_closed(sock)
                return False
            self._await(sock)
            return True
        except Interrupted:
            _reset_when_closed(sock)
            raise
        finally:
            sock.settimeout(waited_s)

    def _put(self, sock: socket.socket, *, early: bool) -> bool:
        """False when an answer came first."""
        rest, since_s = memoryview(self._content), time.monotonic()
        while rest:
            try:
                rest = rest[sock.send(rest[:_PIECE_BYTES]) :]
                since_s = time.monotonic()
                self._look()
                continue
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError, BlockingIOError):
                pass
            readable, _, _ = select.select([sock] if early else [], [sock], [], _LOOK_S)
            if readable:
                return False
            self._look()
            if time.monotonic() - since_s > _SILENT_S:
                raise TimeoutError("the connection takes nothing")
        return True

    def _await(self, sock: socket.socket) -> None:
        until_s = time.monotonic() + _SILENT_S
        while not select.select([sock], [], [], _LOOK_S)[0]:
            self._look()
            if time.monotonic() > until_s:
                raise TimeoutError("no answer")

    def _look(self) -> None:
        now_s = time.monotonic()
        if now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            if self._stopped():
                raise Interrupted


def _reset_when_closed(sock: socket.socket) -> None:
    """What the kernel still holds does not go out then."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Link:
    """The gateway over one path. ``interface`` says where it leaves now, None: as the routes have it; ``tune`` is given each socket before
    it connects. Not for several threads at once."""

    def __init__(
        self,
        path: str,
        interface: Callable[[], str | None],
        address: GatewayAddress,
        connect_s: float = 5.0,
        answer_s: float = 15.0,
        tune: Callable[[socket.socket], None] | None = None,
    ) -> None:
        self.path = path
        self._address, self._interface, self._tune = address, interface, tune
        self._token = address.token
        self._timeouts = connect_s, answer_s
        self._connection: Bound | None = None
        self._left_by: str | None = None
        self._counted = self._closed = TcpCounts()
        self._aborted = False

    @property
    def moved(self) -> TcpCounts:
        """What went over this link, as of the last request or ``count``."""
        return self._closed + self._counted

    def ask(self, method: str, url: str, content: bytes | Outgoing, headers: dict[str, str]) -> Answer:
        """One request; LinkError when no whole answer comes, CertificateTimeError when that is a clock's fault. A kept connection that
        had gone stale is replaced once, unless the body is streamed: that can only be made anew by who knows how much of it arrived."""
        answer = self._ask(method, url, content, headers)
        if answer.status == 401 and (token := self._address.token_now()) != self._token:
            self._token = token  # rotated: the operator has put the new one into the file
            if isinstance(content, bytes):
                answer = self._ask(method, url, content, headers)
        return answer

    def _ask(self, method: str, url: str, content: bytes | Outgoing, headers: dict[str, str]) -> Answer:
        stale = self._connection is not None and isinstance(content, bytes)
        while True:
            try:
                return self._exchange(method, url, content, headers)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                _out_of_its_time(error)
                if not stale or self._aborted or isinstance(error, TimeoutError):
                    raise LinkError(_describe(error)) from error
                stale = False
            except BaseException:
                self.close()  # a body that its owner broke off
                raise

    def _exchange(self, method: str, url: str, content: bytes | Outgoing, headers: dict[str, str]) -> Answer:
        if self._aborted:
            raise OSError("ended")
        interface = self._interface()
        if self._connection is not None and interface != self._left_by:
            self.close()
        if self._connection is None:
            self._left_by = interface
            self._connection = Bound(self._address, interface, *self._timeouts, self._tune)
        connection = self._connection
        headers = {**headers, "Authorization": f"Bearer {self._token}"}
        whole = True
        if isinstance(content, bytes):
            connection.request(method, url, content, headers)
        else:
            whole = content.send(connection, method, url, headers)
        response = connection.getresponse()
        raw = response.read(_ANSWER_BYTES + 1)
        if len(raw) <= _ANSWER_BYTES and response.length:
            raise http.client.IncompleteRead(raw, response.length)  # told of by read() only, not by read(n)
        connection.answered = True
        self.count()
        if response.will_close or not whole or len(raw) > _ANSWER_BYTES:
            self.close()
        try:
            decoded = json.loads(raw)
        except (ValueError, RecursionError):
            decoded = None
        return Answer(
            response.status,
            decoded,
            _seconds(response.getheader("Retry-After")),
            http_date_s(response.getheader("Date")),
        )

    def count(self) -> None:
        """Bring ``moved`` up to date, also in the middle of a request. A socket that is gone keeps its last count."""
        if self._connection is None or self._connection.sock is None:
            return
        with contextlib.suppress(OSError, struct.error):
            self._counted = counts_of(self._connection.sock)

    def abort(self) -> None:
        """End a request that waits in another thread; it raises LinkError there, as every request from now on."""
        self._aborted = True
        connection = self._connection
        sock = None if connection is None else connection.sock
        if sock is not None:
            with contextlib.suppress(OSError):
                # The plain socket's method: TLS's would touch a state that the other thread uses.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; the next request opens one again."""
        self.count()
        self._closed, self._counted = self._closed + self._counted, TcpCounts()
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdecimal() and len(text) < 6 else None


def http_date_s(text: str | None) -> float | None:
    """``Date`` (RFC 9110, 5.6.7) in seconds since 1970 UTC; None when there is none that can be read."""
    try:
        date = parsedate_to_datetime(text or "")
        return date.timestamp() if date.tzinfo is not None else None
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _out_of_its_time(error: Exception) -> None:
    """Raise CertificateTimeError when that is what ``error`` means."""
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in _OUT_OF_ITS_TIME:
        shown = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        raise CertificateTimeError(
            f"the server's {error.verify_message} by this system's clock, which shows {shown} UTC; hint: set the clock (chronyc "
            "tracking), or the server's certificate if the clock is right"
        ) from error


def _describe(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return "timeout"
    return " ".join(str(getattr(error, "strerror", None) or error or type(error).__name__).split())


def paced(rate_bit_per_s: int | None) -> Callable[[socket.socket], None]:
    """What makes a socket send at ``rate_bit_per_s`` at most (None: as fast as it can), evenly, as the kernel paces packets; and
    hold back little that was not sent yet, so that a break finds little underway."""

    def tune(sock: socket.socket) -> None:
        unsent = _UNSENT_BYTES
        if rate_bit_per_s is not None:
            sock.setsockopt(
                socket.SOL_SOCKET, _SO_MAX_PACING_RATE, struct.pack("@I", min(rate_bit_per_s // 8, 2**32 - 2))
            )
            unsent = max(_LEAST_UNSENT_BYTES, min(unsent, rate_bit_per_s // 8 // 4))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, unsent)

    return tune


# ---------------------------------------------------------------------------------------------------------------------
# The gateway over whichever path works, or over those that the caller allows: the one that last worked first, the
# others wait for their turn after a failure.


FIRST_S, LONGEST_S = 1.0, 60.0


@dataclass(slots=True)
class _State:
    failures: int = 0
    not_before_s: float = 0.0


class PathChoice:
    """``names`` in the order of preference at the start. Times are seconds of any steady clock."""

    def __init__(self, names: Sequence[str], chance: random.Random) -> None:
        self._chance = chance
        self._states = {name: _State() for name in names}
        self._preferred = names[0]

    def next(self, now_s: float, among: Collection[str] | None = None) -> str | None:
        """The path to try now, None while all of them are held back; of ``among`` only, if given."""
        order = sorted(self._states, key=lambda name: (name != self._preferred, self._states[name].failures))
        allowed = self._states if among is None else among
        return next((n for n in order if n in allowed and self._states[n].not_before_s <= now_s), None)

    def wait_s(self, now_s: float, among: Collection[str] | None = None) -> float:
        """How long until ``next`` has one."""
        allowed = self._states if among is None else among
        return max(0.0, min((s.not_before_s for n, s in self._states.items() if n in allowed), default=now_s) - now_s)

    def worked(self, name: str) -> None:
        """The path brought an answer."""
        self._states[name] = _State()
        self._preferred = name

    def failed(self, name: str, now_s: float) -> None:
        """The path brought none: it waits, twice as long each time, with jitter so that probes do not march in step."""
        state = self._states[name]
        state.failures += 1
        wait = min(LONGEST_S, FIRST_S * 2 ** min(state.failures - 1, 10))
        state.not_before_s = now_s + wait * self._chance.uniform(0.5, 1.0)


class AnyPath:
    """One for each thread that asks. ``interfaces``: interface by path, in the order of preference (None: as the routes have it), asked
    anew for each connection; ``rate_bit_per_s``: at most, on each path, None: no limit; ``ended``: whether ``ask`` is to try no more."""

    def __init__(
        self,
        address: GatewayAddress,
        interfaces: Mapping[str, str | None],
        chance: random.Random | None = None,
        rate_bit_per_s: int | None = None,
        ended: Callable[[], bool] = lambda: False,
    ) -> None:
        self._ended = ended
        tune = paced(rate_bit_per_s)
        self._links = {path: Link(path, partial(interfaces.get, path), address, tune=tune) for path in interfaces}
        self._choice = PathChoice(list(interfaces), chance or random.Random())
        self._reasons: dict[str, str] = {}
        self.answered: str | None = None
        """The path over which the last answer came."""

    def ask(self, method: str, url: str, content: bytes, headers: dict[str, str]) -> Answer:
        """Over the path that last worked, then over the others; Later when none brings an answer, or when ``ended`` says so."""
        while True:
            path = self.choose(self._links)
            if self._ended():
                raise Later("stopped", 0.0)
            try:
                return self._ask(path, method, url, content, headers)
            except LinkError:
                continue

    def choose(self, allowed: Collection[str]) -> str:
        """The path to take now; Later while all that are allowed are held back after a failure."""
        now_s = time.monotonic()
        path = self._choice.next(now_s, allowed)
        if path is None:
            reasons = [f"{name}: {why}" for name, why in self._reasons.items() if name in allowed]
            raise Later("; ".join(reasons) or "no path works", self._choice.wait_s(now_s, allowed))
        return path

    def ask_over(self, path: str, method: str, url: str, content: bytes | Outgoing, headers: dict[str, str]) -> Answer:
        """Over this path; Later (0 s) when no answer comes, after which the path is held back for a while."""
        try:
            return self._ask(path, method, url, content, headers)
        except LinkError as error:
            raise Later(f"{path}: {error}", 0.0) from error

    def _ask(self, path: str, method: str, url: str, content: bytes | Outgoing, headers: dict[str, str]) -> Answer:
        try:
            answer = self._links[path].ask(method, url, content, headers)
        except CertificateTimeError as error:
            raise Later(str(error), CLOCK_WAIT_S) from error  # the path is as good as before
        except LinkError as error:
            self._reasons[path] = str(error)
            self._choice.failed(path, time.monotonic())
            raise
        self._reasons.pop(path, None)
        self._choice.worked(path)
        self.answered = path
        return answer

    def count(self, path: str) -> TcpCounts:
        """What went over that path since the start, up to now. By the thread that asks."""
        self._links[path].count()
        return self._links[path].moved

    def moved(self) -> dict[str, TcpCounts]:
        """By path, as of the last request. From any thread."""
        return {path: link.moved for path, link in self._links.items()}

    def payload_bytes(self) -> dict[str, int]:
        """TCP payload by path since the start, both ways, TLS included."""
        return {path: link.moved.payload_bytes for path, link in self._links.items()}

    def abort(self) -> None:
        """End a request that waits in another thread, and every later one."""
        for link in self._links.values():
            link.abort()

    def close(self) -> None:
        """Close the connections; the next request opens one again."""
        for link in self._links.values():
            link.close()
