"""One HTTP/1.1 request head, read strictly (RFC 9112): what is not exactly as expected is refused, never guessed at."""

from __future__ import annotations

import re
from dataclasses import dataclass

HEAD_LIMIT_BYTES = 8192
_HEADERS_LIMIT = 64

_LINE = re.compile(rb"([A-Z]{1,16}) (/[!-~]{0,2000}) HTTP/([0-9])\.([0-9])\Z")
_HEADER = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}):[ \t]*([!-~](?:[ \t!-~]{0,4000}[!-~])?|)[ \t]*\Z")
_TARGET = re.compile(r"(/[A-Za-z0-9/._-]*)(?:\?([A-Za-z0-9=&._-]*))?\Z")
_PARAMETER = re.compile(r"([a-z_]{1,32})=([A-Za-z0-9._-]{1,64})\Z")
_BYTES = re.compile(r"[1-9][0-9]{0,14}\Z")
_LENGTH = re.compile(r"(?:0|[1-9][0-9]{0,14})\Z")
_SECONDS = re.compile(r"[0-9]{1,5}(?:\.[0-9]{1,3})?\Z")
_CLAIM = re.compile(r"([0-9a-f]{32}) ([1-9][0-9]{0,9}) ([0-9a-f]{32})\Z")
_ONCE = ("host", "content-length", "transfer-encoding", "x-tandem-session", "x-tandem-path")


class BadRequest(ValueError):  # noqa: N818  (HTTP's own word)
    """The request is refused: ``status`` of HTTP and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, slots=True)
class Request:
    """Method, path without query, query parameters, headers by lower-case name. ``body_bytes``: what Content-Length says, None
    without one; only a POST has a body."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body_bytes: int | None = None

    @property
    def line(self) -> str:
        """Method and path with query, as asked."""
        return (
            f"{self.method} {self.path}" + "?" * bool(self.query) + "&".join(f"{k}={v}" for k, v in self.query.items())
        )


@dataclass(frozen=True, slots=True)
class Ask:
    """What a download or an upload asks for: one of ``payload_bytes`` (1 to 10^15 − 1) and ``seconds`` (0.001 to 99999.999). ``many``:
    it is one of a browser's connections, of which a session may have more."""

    payload_bytes: int | None
    seconds: float | None
    many: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """What a connection shows for its session: its id, the connection's number in it (1 to 9,999,999,999), and ``mac`` (32 hexadecimal
    digits) over ``signed``: the first request's ``line`` and both."""

    session: str
    number: int
    mac: str
    line: str

    @property
    def signed(self) -> bytes:
        """See above."""
        return f"{self.line}\n{self.session}\n{self.number}".encode()


def read_claim(request: Request) -> Claim:
    """From ``X-Tandem-Session``; BadRequest 403 when it is none."""
    shown = request.headers.get("x-tandem-session", "")
    match = _CLAIM.match(shown)
    if match is None:
        raise BadRequest(403, "no session: X-Tandem-Session is ID NUMBER MAC; hint: a probe of before needs an update")
    session, number, mac = match.groups()
    return Claim(session, int(number), mac, request.line)


def read_head(head: bytes) -> Request:
    """Parse a request head, including the empty line that ends it; BadRequest says what is wrong."""
    if len(head) > HEAD_LIMIT_BYTES:
        raise BadRequest(431, f"the head is longer than {HEAD_LIMIT_BYTES} bytes")
    if not head.endswith(b"\r\n\r\n"):
        raise BadRequest(400, "the head does not end in an empty line")
    first, *rest = head[:-4].split(b"\r\n")
    line = _LINE.match(first)
    if line is None:
        raise BadRequest(400, "the request line is not METHOD /PATH HTTP/1.1")
    if (line[3], line[4]) != (b"1", b"1"):
        raise BadRequest(505, "only HTTP/1.1 is spoken here")
    headers = _headers(rest)
    if "host" not in headers:
        raise BadRequest(400, "no Host header")
    if "transfer-encoding" in headers:
        raise BadRequest(400, "Transfer-Encoding is not spoken here")
    body_bytes = _content_length(headers.get("content-length"))
    if body_bytes and line[1] != b"POST":
        raise BadRequest(400, "a request with a body")
    path, query = _target(line[2].decode("ascii"))
    return Request(line[1].decode("ascii"), path, query, headers, body_bytes)


def read_ask(query: dict[str, str]) -> Ask:
    """``bytes=N`` or ``seconds=S`` of a download or an upload; BadRequest unless it is exactly one of them."""
    if query.keys() == {"bytes"}:
        if not _BYTES.match(query["bytes"]):
            raise BadRequest(400, f"bytes={query['bytes']} is no whole number from 1 to 999999999999999")
        return Ask(int(query["bytes"]), None)
    if query.keys() == {"seconds"}:
        if not _SECONDS.match(query["seconds"]) or float(query["seconds"]) <= 0:
            raise BadRequest(400, f"seconds={query['seconds']} is no time from 0.001 to 99999.999")
        return Ask(None, float(query["seconds"]))
    raise BadRequest(400, "ask for bytes=N or for seconds=S, and for nothing else")


def _content_length(value: str | None) -> int | None:
    if value is None:
        return None
    if not _LENGTH.match(value):
        raise BadRequest(400, "Content-Length is no whole number below 10^15")
    return int(value)


def _headers(lines: list[bytes]) -> dict[str, str]:
    if len(lines) > _HEADERS_LIMIT:
        raise BadRequest(431, f"more than {_HEADERS_LIMIT} headers")
    headers: dict[str, str] = {}
    for line in lines:
        match = _HEADER.match(line)
        if match is None:
            raise BadRequest(400, "a header is not NAME: VALUE in printable ASCII")
        name = match[1].decode("ascii").lower()
        if name in headers:
            if name in _ONCE:
                raise BadRequest(400, f"header {name} twice")
            headers[name] += ", " + match[2].decode("ascii")
        else:
            headers[name] = match[2].decode("ascii")
    return headers


def _target(target: str) -> tuple[str, dict[str, str]]:
    match = _TARGET.match(target)
    if match is None:
        raise BadRequest(400, "the target has characters that no resource here has")
    query: dict[str, str] = {}
    for part in match[2].split("&") if match[2] else ():
        parameter = _PARAMETER.match(part)
        if parameter is None or parameter[1] in query:
            raise BadRequest(400, "the query is not NAME=VALUE&…, each name once")
        query[parameter[1]] = parameter[2]
    return match[1], query
