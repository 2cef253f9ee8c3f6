"""Ask a stick that has no AT port, only a web server of its own: the same shape as the AT channel.

A command is ``GET /path?query`` or ``POST /path body``; the response's lines are the body's lines. Sessions are kept as the sticks
want them: Huawei's HiLink refuses with 125002 or 125003 whoever has not taken a cookie and a token from
``/api/webserver/SesTokInfo``; ZTE's goform answers 200 with empty fields unless a Referer names the stick itself. Each stick is asked
over its own interface: identical ones have the same address.
"""

from __future__ import annotations

import re
import select
import time
from collections.abc import Callable
from urllib.parse import urljoin, urlsplit

from tandem.at.dialogue import Response
from tandem.at.errors import NoAnswer
from tandem.at.grammar import Final
from tandem.modem.http_exchange import Answer, get

OK = Final("ok", "ok")
MAX_REDIRECTS = 3
_SESSION_WANTED = ("125001", "125002", "125003")
_SESSION_PATH = "/api/webserver/SesTokInfo"
_ERROR = re.compile(r"<error>\s*<code>\s*(-?[0-9]{1,9})\s*</code>", re.IGNORECASE)
_COOKIE = re.compile(r"[\x21-\x3a\x3c-\x7e]{1,4096}")
_TOKEN_HEADER = "__RequestVerificationToken"  # noqa: S105 - the header's name
_URL = re.compile(r"http://([0-9]{1,3}(?:\.[0-9]{1,3}){3})(?::([0-9]{1,5}))?/?\Z")


class WebAddressError(ValueError):
    """What is named as a stick's web server is none."""


def web_address(url: str) -> tuple[str, int]:
    """Address and port of ``http://192.168.8.1``; WebAddressError says what is wrong."""
    match = _URL.match(url)
    if match is None or max(map(int, match.group(1).split("."))) > 255 or not 0 < int(match.group(2) or 80) < 65536:
        raise WebAddressError(f"{url!r} is not of the form http://192.168.8.1 or http://192.168.8.1:80")
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
