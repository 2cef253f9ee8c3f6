"""Ask a stick that has no AT port, only a web server of its own: the same shape as the AT channel.

A command is ``GET /path?query`` or ``POST /path body``; the response's lines are the body's lines. Sessions are kept as the sticks
want them: Huawei's HiLink refuses with 125002 or 125003 whoever has not taken a cookie and a token from
``/api/webserver/SesTokInfo``; ZTE's goform answers 200 with empty fields unless a Referer names the stick itself. Each stick is asked
over its own interface: identical ones have the same address.

The standard library's client limits each wait, not their sum: a server that dribbles would hold a poll for ever. So the socket has
one deadline for all of them."""

from __future__ import annotations

import http.client
import re
import select
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from tandem.at.dialogue import NoAnswer, PortLost, Response
from tandem.at.grammar import Final
from tandem.modem.base import Driver, Reading

MAX_BODY_BYTES = 256 * 1024
"""Far more than any status page; what is longer is cut off and the answer refused."""


@dataclass(frozen=True)
class Answer:
    """What came back: names of ``headers`` in lower case, each with its values in order."""

    status: int
    headers: Mapping[str, tuple[str, ...]]
    body: str

    def header(self, name: str) -> str | None:
        return next(iter(self.headers.get(name.lower(), ())), None)


def get(
    host: str,
    port: int,
    target: str,
    headers: Mapping[str, str],
    until: float,
    interface: str | None = None,
    post: str | None = None,
) -> Answer:
    """GET ``target``, or POST ``post`` to it, at ``host`` (an address: no name is looked up), all before ``until`` (CLOCK_MONOTONIC, s).

    NoAnswer when that passes, when the server closes in the middle, or says what is no HTTP or too much. PortLost when nobody is
    there or ``interface`` is gone. Redirects are not followed.
    """
    with _DeadlineSocket(until) as sock:
        _connect(sock, host, port, interface)
        client = http.client.HTTPConnection(host, port)
        client.sock = sock
        try:
            body_sent = None if post is None else post.encode()
            client.putrequest("GET" if body_sent is None else "POST", target, skip_accept_encoding=True)
            for name, value in {**headers, "Connection": "close"}.items():
                client.putheader(name, value)
            if body_sent is not None:
                client.putheader("Content-Length", str(len(body_sent)))
            client.endheaders(body_sent)
            with client.getresponse() as response:
                body = response.read(MAX_BODY_BYTES + 1)
                # A body of announced length is read short without an error when the server closes in the middle; heads that are cut
                # short look like heads without a length and nothing behind them.
                short = response.length not in (None, 0) and len(body) <= MAX_BODY_BYTES
                short = short or (
                    response.status == 200 and not body and response.length is None and not response.chunked
                )
        except (http.client.HTTPException, ValueError) as error:
            raise NoAnswer(f"{target}: no whole HTTP answer ({type(error).__name__})") from error
        except TimeoutError as error:
            raise NoAnswer(f"{target}: {_TOO_LATE}") from error
        except OSError as error:
            raise NoAnswer(f"{target}: {error.strerror or error}") from error
    if short:
        raise NoAnswer(f"{target}: the server closed in the middle of its answer")
    if len(body) > MAX_BODY_BYTES:
        raise NoAnswer(f"{target}: an answer of more than {MAX_BODY_BYTES} bytes")
    found: dict[str, tuple[str, ...]] = {}
    for name, value in response.getheaders():
        found[name.lower()] = (*found.get(name.lower(), ()), value)
    return Answer(response.status, found, _text(body, response.headers.get_content_charset()))


def _text(body: bytes, charset: str | None) -> str:
    """The body's text in the charset that it names, else UTF-8; what does not fit is replaced, never an error."""
    try:
        text = body.decode(charset or "utf-8", "replace")
    except (LookupError, ValueError):  # a charset that nobody knows
        text = body.decode("utf-8", "replace")
    return text.removeprefix("\ufeff")


class _DeadlineSocket(socket.socket):
    """``until``: CLOCK_MONOTONIC seconds for everything that is done with it, then TimeoutError."""

    def __init__(self, until: float) -> None:
        super().__init__(socket.AF_INET, socket.SOCK_STREAM)
        self._until = until

    def _arm(self) -> None:
        # Before each call: a server that always has one more byte must not outlast the deadline.
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.settimeout(left)

    def connect(self, address: Any) -> None:  # noqa: ANN401 - as socket.socket
        self._arm()
        super().connect(address)

    def sendall(self, data: Any, flags: int = 0) -> None:  # noqa: ANN401 - as socket.socket
        self._arm()
        super().sendall(data, flags)

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:  # noqa: ANN401 - as socket.socket
        self._arm()
        return super().recv_into(buffer, nbytes, flags)


_TOO_LATE = "no answer before the deadline"


def _connect(sock: socket.socket, host: str, port: int, interface: str | None) -> None:
    try:
        if interface is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode() + b"\0")
        sock.connect((host, port))
    except TimeoutError as error:
        raise NoAnswer(f"{host}: {_TOO_LATE}") from error
    except OSError as error:
        through = f" on {interface}" if interface else ""
        raise PortLost(f"http://{host}:{port}{through}: {error.strerror}") from error


OK = Final("ok", "ok")
MAX_REDIRECTS = 3
_SESSION_WANTED = ("125001", "125002", "125003")
_SESSION_PATH = "/api/webserver/SesTokInfo"
_ERROR = re.compile(r"<error>\s*<code>\s*(-?[0-9]{1,9})\s*</code>", re.IGNORECASE)
_COOKIE = re.compile(r"[\x21-\x3a\x3c-\x7e]{1,4096}")
_TOKEN_HEADER = "__RequestVerificationToken"  # noqa: S105 - the header's name
_URL = re.compile(r"http://([0-9]{1,3}(?:\.[0-9]{1,3}){3})(?::([0-9]{1,5}))?/?\Z")


def web_address(url: str) -> tuple[str, int]:
    """Address and port of ``http://192.168.8.1``; ValueError says what is wrong."""
    match = _URL.match(url)
    if match is None or max(map(int, match.group(1).split("."))) > 255 or not 0 < int(match.group(2) or 80) < 65536:
        raise ValueError(f"{url!r} is not of the form http://192.168.8.1 or http://192.168.8.1:80")
    return match.group(1), int(match.group(2) or 80)


class WebChannel:
    """One stick's web server. Not safe for several threads at once. ``interface``: the network interface that leads to it.
    ``on_answer`` gets the last answer to each question, as it came."""

    def __init__(
        self,
        url: str,
        interface: str | None = None,
        wake_fd: int | None = None,
        on_answer: Callable[[Answer], None] | None = None,
    ) -> None:
        self._on_answer = on_answer
        self.url = url
        self._host, self._port = web_address(url)
        self.interface = interface
        self._wake_fd = wake_fd
        self._cookies: dict[str, str] = {}
        self._token: str | None = None

    def close(self) -> None:
        """Forget the session: each request has a connection of its own."""
        self._cookies.clear()
        self._token = None

    def ask(self, command: str, deadline_s: float) -> Response:
        """Send one request, renewing the session once when it is refused, all within ``deadline_s``.

        NoAnswer and PortLost as ``http_exchange.get``. An answer that is a refusal (a status other than 200, HiLink's
        ``<error>``) is a response without lines whose final result names it: ``http_404``, ``stick_error_100002``.
        """
        until = time.monotonic() + deadline_s
        target, post = _request(command)
        try:
            answer = self._get(target, until, post)
            if _refusal(answer) in _SESSION_WANTED:
                self.renew(until)
                answer = self._get(target, until, post)
        except NoAnswer as error:
            raise NoAnswer(f"{command}: {error}") from None
        if self._on_answer is not None:
            self._on_answer(answer)
        return response(command, answer)

    def listen(self, until: float) -> None:
        """Wait until ``time.monotonic()`` reaches ``until`` or ``wake_fd`` becomes readable: nothing comes unasked here."""
        poller = select.poll()
        if self._wake_fd is not None:
            poller.register(self._wake_fd, select.POLLIN)
        poller.poll(max(0.0, (until - time.monotonic()) * 1000))

    def _get(self, target: str, until: float, post: str | None = None) -> Answer:
        """Follow redirects within the stick's own host only: a stick that has no network sends every path elsewhere."""
        for _ in range(MAX_REDIRECTS):
            headers = self._headers()
            if post is not None:
                headers["Content-Type"] = "text/xml" if post.startswith("<") else "application/x-www-form-urlencoded"
            answer = get(self._host, self._port, target, headers, until, self.interface, post)
            self._remember(answer)
            location = answer.header("location")
            if answer.status not in (301, 302, 303, 307, 308) or location is None or post is not None:
                return answer
            try:
                there = urlsplit(urljoin(f"http://{self._host}:{self._port}{target}", location))
                inside = (there.scheme, there.hostname, there.port or 80) == ("http", self._host, self._port)
            except ValueError:
                return answer
            target = there.path + (f"?{there.query}" if there.query else "")
            if not inside or not target.startswith("/") or not target.isascii() or not target.isprintable():
                return answer
        return answer

    def _headers(self) -> dict[str, str]:
        own = self._host if self._port == 80 else f"{self._host}:{self._port}"
        headers = {"Referer": f"http://{own}/index.html", "X-Requested-With": "XMLHttpRequest"}
        if self._cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        if self._token is not None:
            headers[_TOKEN_HEADER] = self._token
        return headers

    def _remember(self, answer: Answer) -> None:
        for cookie in answer.headers.get("set-cookie", ()):
            name, equals, value = cookie.partition(";")[0].strip().partition("=")
            if equals and _COOKIE.fullmatch(name) and _COOKIE.fullmatch(value) and len(self._cookies) < 16:
                self._cookies[name] = value

    def renew(self, until: float) -> None:
        """Forget the session and take a new cookie and token; firmware without that path gives a cookie with its home page.
        NoAnswer and PortLost."""
        self.close()
        answer = self._get(_SESSION_PATH, until)
        session, token = _tag(answer.body, "SesInfo"), _tag(answer.body, "TokInfo")
        if session is not None:
            name, equals, value = session.partition("=")
            self._cookies[name if equals else "SessionID"] = value if equals else session
        if token is not None:
            self._token = token
        if session is None and not self._cookies:
            self._get("/", until)


def _request(command: str) -> tuple[str, str | None]:
    """Target and body of a command; ValueError when it is none."""
    method, _, target = command.partition(" ")
    post = None
    if method == "POST":
        target, space, post = target.partition(" ")
        method = "GET" if space else ""
    if method != "GET" or not target.startswith("/") or not target.isascii() or not target.isprintable():
        raise ValueError(f"{command!r} is not GET /path or POST /path body")
    return target.replace(" ", "%20"), post


def response(command: str, answer: Answer) -> Response:
    """An answer as the drivers read it: the body's lines without what is empty, at either end of them and in between."""
    refused = _refusal(answer)
    if answer.status != 200:
        return Response(command, (), Final("error", f"http_{answer.status}"))
    if refused is not None:
        return Response(command, (), Final("error", f"stick_error_{refused}"))
    lines = (line.strip() for line in re.split(r"[\r\n]+", answer.body))
    return Response(command, tuple(line for line in lines if line), OK)


def _refusal(answer: Answer) -> str | None:
    match = _ERROR.search(answer.body[:4096])
    return match.group(1) if match else None


def _tag(body: str, name: str) -> str | None:
    match = re.search(rf"<{name}>\s*([\x21-\x3a\x3d-\x7e=]{{1,4096}}?)\s*</{name}>", body)
    return match.group(1) if match else None


# ---------------------------------------------------------------------------------------------------------------------
# What a stick's web server answers instead of an answer: by name, and what mends it. Pure.


SESSION_FAULTS = ("token_missing", "token_wrong", "referer_missing", "not_json")
"""A session that ended looks so: tokens are refused, fields are empty, a login page comes instead. A new session may mend it."""

_MENDED_BY_RESTART = (*SESSION_FAULTS, "busy", "system_error")
"""Others (``login_needed``, ``wrong_parameter``, ``not_supported``, ``no_sim`` …) are as they are after a restart too."""


def page_fault(driver: Driver | None, response: Response) -> str | None:
    """The fault of one page, by the family's name for it, else as the transport reported it (``http_404``); None when it answered."""
    named = driver.fault(response) if driver is not None and driver.fault is not None else None
    return named or (None if response.final.ok else response.final.code)


def session_ended(driver: Driver | None, answers: Sequence[Response]) -> bool:
    """Whether one of the pages says what a new session may mend."""
    if driver is None or driver.fault is None:
        return False
    return any(driver.fault(answer) in SESSION_FAULTS for answer in answers)


def poll_failure(driver: Driver | None, answers: Sequence[Response], reading: Reading | None) -> str | None:
    """Why a poll reported nothing of the radio: the first page's fault, or of an AT port the first error when all were errors.

    A page that one model does not have fails no poll while the others tell.
    """
    if driver is not None and driver.fault is not None:
        if reading is not None and _tells(reading):
            return None
        return next((fault for answer in answers if (fault := page_fault(driver, answer))), None)
    if any(answer.lines or answer.final.ok for answer in answers):
        return None
    return answers[0].final.code if answers else None


def helped_by_restart(failure: str) -> bool:
    """Whether to start the device anew may help against this failure of its polls."""
    return failure in _MENDED_BY_RESTART or failure.startswith("http_5")


def _tells(reading: Reading) -> bool:
    levels = (reading.rsrp_dbm, reading.rssi_dbm, reading.rscp_dbm, reading.nr_rsrp_dbm, reading.eci, reading.ci)
    return reading.state != "unknown" or any(value is not None for value in levels)
