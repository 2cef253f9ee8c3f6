"""DHCP, as much as it takes to keep a modem's address where its own client lost sight of the interface (``nat``). Pure: times and answers
in, messages out.

Messages of RFC 2131 with options of RFC 2132. Everything asks for a broadcast answer: the client perhaps has no address that could be
answered to. The address that there is (another client got it) is requested at once, since how long it holds is not known. Until a
server says something else it stays: where nobody answers, it may have been set by hand.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

_FIXED = struct.Struct("!BBBBIHH4s4s4s4s16s64s128s")
_COOKIE = b"\x63\x82\x53\x63"
_REQUEST, _REPLY, _ETHERNET, _BROADCAST = 1, 2, 1, 0x8000
_DISCOVER, _ASK = 1, 3
_MASK, _ROUTER, _WANTED, _LEASE, _KIND, _SERVER, _ASKED_FOR, _RENEWAL, _CLIENT, _PAD, _END = (
    1, 3, 50, 51, 53, 54, 55, 58, 61, 0, 255
)  # fmt: skip
_ANSWERS: dict[int, Literal["offer", "given", "refused"]] = {2: "offer", 5: "given", 6: "refused"}
_SMALLEST = 300
"""Bytes; some servers pass over what is smaller than a BOOTP message."""


class DhcpError(ValueError):
    """The bytes are no answer of a DHCP server."""


@dataclass(frozen=True, slots=True)
class Answer:
    """``refused``: the requested address does not fit (any more). ``lease_s`` and ``renew_s``: seconds from now."""

    kind: Literal["offer", "given", "refused"]
    transaction: int
    hardware: bytes
    address: str
    prefix: int
    router: str | None
    server: str | None
    lease_s: int | None
    renew_s: int | None


def discover(transaction: int, hardware: bytes) -> bytes:
    """Who gives addresses here?"""
    return _message(_DISCOVER, transaction, hardware, b"")


def request(transaction: int, hardware: bytes, address: str, server: str | None) -> bytes:
    """May I have, or keep, ``address``? ``server``: whose offer that is; None to keep one of before (RFC 2131, 4.3.2: INIT-REBOOT)."""
    wanted = _option(_WANTED, ipaddress.IPv4Address(address).packed)
    if server is not None:
        wanted += _option(_SERVER, ipaddress.IPv4Address(server).packed)
    return _message(_ASK, transaction, hardware, wanted)


def _message(kind: int, transaction: int, hardware: bytes, more: bytes) -> bytes:
    none = bytes(4)
    fixed = _FIXED.pack(
        _REQUEST, _ETHERNET, len(hardware), 0, transaction, 0, _BROADCAST, none, none, none, none, hardware, b"", b""
    )
    options = _option(_KIND, bytes([kind])) + _option(_CLIENT, bytes([_ETHERNET]) + hardware) + more
    options += _option(_ASKED_FOR, bytes([_MASK, _ROUTER, _LEASE, _RENEWAL]))
    return (fixed + _COOKIE + options + bytes([_END])).ljust(_SMALLEST, bytes([_PAD]))


def _option(kind: int, content: bytes) -> bytes:
    return bytes([kind, len(content)]) + content


def parse(data: bytes) -> Answer:
    """A server's answer; DhcpError when it is none. A missing mask is taken for 255.255.255.0."""
    if len(data) < _FIXED.size + len(_COOKIE):
        raise DhcpError(f"{len(data)} bytes")
    operation, _, length, _, transaction, _, _, _, given, _, _, hardware, _, _ = _FIXED.unpack_from(data)
    if operation != _REPLY or data[_FIXED.size : _FIXED.size + 4] != _COOKIE or length > 16:
        raise DhcpError("no answer of a server")
    options = _options(data[_FIXED.size + 4 :])
    kind = _ANSWERS.get(int.from_bytes(options.get(_KIND, b""), "big"))
    if kind is None:
        raise DhcpError("an answer of another kind")
    address = ipaddress.IPv4Address(given)
    if kind != "refused" and (address.is_unspecified or address.is_multicast or address.is_loopback):
        raise DhcpError(f"{address} is no address for an interface")
    return Answer(
        kind,
        transaction,
        hardware[:length],
        str(address),
        _prefix(options.get(_MASK)),
        _host(options.get(_ROUTER)),
        _host(options.get(_SERVER)),
        _seconds(options.get(_LEASE)),
        _seconds(options.get(_RENEWAL)),
    )


def _options(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at = 0
    while at < len(data) and data[at] != _END:
        if data[at] == _PAD:
            at += 1
            continue
        if at + 1 >= len(data) or at + 2 + data[at + 1] > len(data):
            raise DhcpError("an option that is longer than its message")
        found.setdefault(data[at], data[at + 2 : at + 2 + data[at + 1]])
        at += 2 + data[at + 1]
    return found


def _prefix(mask: bytes | None) -> int:
    if mask is None or len(mask) != 4:
        return 24
    number = int.from_bytes(mask, "big")
    ones = number.bit_count()
    if number != (0xFFFFFFFF << (32 - ones)) & 0xFFFFFFFF:
        raise DhcpError(f"{ipaddress.IPv4Address(mask)} is no mask")
    return ones


def _host(content: bytes | None) -> str | None:
    """The first address of a list; None when there is none."""
    if content is None or len(content) < 4 or not any(content[:4]):
        return None
    return str(ipaddress.IPv4Address(content[:4]))


def _seconds(content: bytes | None) -> int | None:
    return None if content is None or len(content) != 4 else int.from_bytes(content, "big")


PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""From one question to the next without an answer; the last repeats."""
KEEPING = 2
"""After so many requests for the same address, any address is requested: a server that does not know it may keep silent."""
LONGEST_S = 300.0
"""An address is requested again after half of its time, at the latest after this: a modem that gives another one does not say so."""


class Lease:
    """For one interface. ``hardware``: its MAC, 6 bytes; ``address``: what it has; ``number``: makes transaction numbers."""

    def __init__(self, hardware: bytes, address: str | None, now_s: float, number: Callable[[], int]) -> None:
        self._hardware, self._number = hardware, number
        self._address = address
        self._offer: Answer | None = None
        self._transaction = number()
        self._tries = 0
        self.due_s = now_s
        """When ``question`` is to be sent next; CLOCK_MONOTONIC seconds."""

    def again(self, now_s: float) -> None:
        """The link was away: whoever is there now gets a request at once."""
        self._begin(now_s)

    def _begin(self, due_s: float) -> None:
        self._transaction, self._tries, self._offer, self.due_s = self._number(), 0, None, due_s

    def question(self, now_s: float) -> bytes:
        """What to send now; sets when to ask again."""
        self.due_s = now_s + PAUSES_S[min(self._tries, len(PAUSES_S) - 1)]
        self._tries += 1
        if self._offer is not None:
            offer, self._offer = self._offer, None  # one question for it; without an answer from the beginning
            return request(self._transaction, self._hardware, offer.address, offer.server)
        if self._address is not None and self._tries <= KEEPING:
            return request(self._transaction, self._hardware, self._address, None)
        return discover(self._transaction, self._hardware)

    def take(self, answer: Answer, now_s: float) -> Answer | None:
        """The answer, when it gives an address from now on; None while nothing is given, or for an answer to somebody else."""
        if (answer.transaction, answer.hardware) != (self._transaction, self._hardware):
            return None
        if answer.kind == "offer":
            if answer.server is not None:
                self._offer, self.due_s = answer, now_s
            return None
        if answer.kind == "refused":
            self._address = None
            self._begin(now_s)
            return None
        half_s = answer.renew_s or (answer.lease_s or 2 * LONGEST_S) / 2
        self._address = answer.address
        self._begin(now_s + min(LONGEST_S, max(PAUSES_S[0], half_s)))
        return answer
