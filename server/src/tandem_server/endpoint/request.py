"""What a connection to the measurement listener wants, and what it shows for it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tandem_server.endpoint.http1 import BadRequest, Request

_BYTES = re.compile(r"[1-9][0-9]{0,14}\Z")
_SECONDS = re.compile(r"[0-9]{1,5}(?:\.[0-9]{1,3})?\Z")
_CLAIM = re.compile(r"([0-9a-f]{32}) ([1-9][0-9]{0,9}) ([0-9a-f]{32})\Z")


@dataclass(frozen=True, slots=True)
class Transfer:
    """A requested download or upload: one of ``payload_bytes`` (1 to 10^15 − 1) and ``seconds`` (0.001 to 99999.999). ``many``: it is one
    of a browser's connections, of which a session may have more."""

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
    match = _CLAIM.match(request.headers.get("x-tandem-session", ""))
    if match is None:
        raise BadRequest(403, "no session: X-Tandem-Session is ID NUMBER MAC; hint: a probe of before needs an update")
    session, number, mac = match.groups()
    return Claim(session, int(number), mac, request.line)


def read_transfer(query: dict[str, str]) -> Transfer:
    """``bytes=N`` or ``seconds=S`` of a download or an upload; BadRequest unless it is exactly one of them."""
    if query.keys() == {"bytes"}:
        if not _BYTES.match(query["bytes"]):
            raise BadRequest(400, f"bytes={query['bytes']} is no whole number from 1 to 999999999999999")
        return Transfer(int(query["bytes"]), None)
    if query.keys() == {"seconds"}:
        if not _SECONDS.match(query["seconds"]) or float(query["seconds"]) <= 0:
            raise BadRequest(400, f"seconds={query['seconds']} is no time from 0.001 to 99999.999")
        return Transfer(None, float(query["seconds"]))
    raise BadRequest(400, "ask for bytes=N or for seconds=S, and for nothing else")
