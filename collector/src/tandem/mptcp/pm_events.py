"""What the kernel's path manager tells of connections and subflows: generic netlink family ``mptcp_pm``, group ``mptcp_pm_events``.

``linux/mptcp_pm.h`` (in the kernel since 5.12; hearing it takes CAP_NET_ADMIN). Addresses and ports come in network byte order, all
else in the machine's. A subflow's ``closed`` is told only while its connection lives, so an ordinary end brings none.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Literal

from tandem.mptcp.netlink import Heard, NetlinkError, generic, hear_generic, messages, number

FAMILY, GROUP = "mptcp_pm", "mptcp_pm_events"

Kind = Literal["created", "established", "closed", "announced", "subflow_established", "subflow_closed"]
_KINDS: dict[int, Kind] = {
    1: "created", 2: "established", 3: "closed", 6: "announced", 10: "subflow_established", 11: "subflow_closed"
}  # fmt: skip
_TOKEN, _REMOTE_ID, _LOCAL4, _LOCAL6, _REMOTE4, _REMOTE6 = 1, 4, 5, 6, 7, 8
_LOCAL_PORT, _REMOTE_PORT, _ERROR, _FLAGS, _RESET_REASON, _SERVER_SIDE = 9, 10, 12, 13, 16, 18
_FLAG_SERVER_SIDE = 2


@dataclass(frozen=True, slots=True)
class PmEvent:
    """One event. ``announced``: the peer told its address ``remote``, by its number ``remote_id``. ``error``: errno of what closed a
    subflow (104: reset by the peer). ``server_side``: the peer connected; None when not told. IPv4 addresses mapped into IPv6 are
    given as IPv4."""

    kind: Kind
    token: int
    local: str | None = None
    remote: str | None = None
    local_port: int | None = None
    remote_port: int | None = None
    error: int | None = None
    server_side: bool | None = None
    remote_id: int | None = None


def parse(data: bytes, family: int) -> list[PmEvent]:
    """Events among the messages of ``data``; what is of another family or kind is passed over. NetlinkError when broken."""
    events = []
    for kind, content in messages(data):
        if kind != family:
            continue
        command, told = generic(content)
        token = number(told.get(_TOKEN))
        if command not in _KINDS or token is None:
            continue
        events.append(
            PmEvent(
                _KINDS[command],
                token,
                _host(told.get(_LOCAL4), told.get(_LOCAL6)),
                _host(told.get(_REMOTE4), told.get(_REMOTE6)),
                _port(told.get(_LOCAL_PORT)),
                _port(told.get(_REMOTE_PORT)),
                number(told.get(_ERROR)),
                _server_side(told),
                number(told.get(_REMOTE_ID)),
            )
        )
    return events


def _host(four: bytes | None, six: bytes | None) -> str | None:
    if four is not None and len(four) == 4:
        return socket.inet_ntop(socket.AF_INET, four)
    if six is not None and len(six) == 16:
        mapped = six[:12] == b"\0" * 10 + b"\xff\xff"
        return socket.inet_ntop(socket.AF_INET, six[12:]) if mapped else socket.inet_ntop(socket.AF_INET6, six)
    return None


def _port(content: bytes | None) -> int | None:
    return None if content is None or len(content) != 2 else int.from_bytes(content, "big")


def _server_side(told: dict[int, bytes]) -> bool | None:
    if _SERVER_SIDE in told:
        return bool(number(told[_SERVER_SIDE]))
    flags = number(told.get(_FLAGS))
    return None if flags is None else bool(flags & _FLAG_SERVER_SIDE)


class PmListener:
    """Hears events in this network namespace. LookupError: this kernel tells none; OSError: it refuses (no CAP_NET_ADMIN)."""

    def __init__(self) -> None:
        self._heard: Heard = hear_generic(FAMILY, GROUP)
        self.missed = 0
        """How often something was lost or could not be understood."""

    def fileno(self) -> int:
        """For a selector."""
        return self._heard.fileno()

    def read(self) -> list[PmEvent]:
        """What came since."""
        pieces, missed = self._heard.read()
        self.missed += missed
        events = []
        for piece in pieces:
            try:
                events += parse(piece, self._heard.family)
            except NetlinkError:
                self.missed += 1
        return events

    def close(self) -> None:
        """Hear no more."""
        self._heard.close()
