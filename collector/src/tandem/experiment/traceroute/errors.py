"""What the kernel's error queue says of an ICMP error (``struct sock_extended_err``, recvmsg(2) with MSG_ERRQUEUE). Pure."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from tandem.mptcp_abi import decode_address

IP_RECVERR, IPV6_RECVERR = 11, 25
_ERROR = struct.Struct("=IBBBBII")
_ICMP, _ICMP6 = 2, 3
_EXPIRED = {(_ICMP, 11), (_ICMP6, 3)}
_PORT = {(_ICMP, 3, 3), (_ICMP6, 1, 4)}


@dataclass(frozen=True, slots=True)
class IcmpError:
    """``kind``: ``expired`` (a router on the way), ``port`` (the host itself: nobody listens), ``unreachable N`` (a router refuses;
    the ICMP code). ``offender``: who sent it."""

    offender: str
    kind: str


def read(ancillary: Sequence[tuple[int, int, bytes]]) -> IcmpError | None:
    """The ICMP error among the ancillary data; None when there is none (an error of this machine's own)."""
    for level, kind, content in ancillary:
        if (level, kind) not in ((socket.IPPROTO_IP, IP_RECVERR), (socket.IPPROTO_IPV6, IPV6_RECVERR)):
            continue
        if len(content) < _ERROR.size:
            continue
        _, origin, icmp, code, _, _, _ = _ERROR.unpack_from(content)
        if origin not in (_ICMP, _ICMP6):
            continue
        offender = decode_address(content[_ERROR.size :])
        if offender is None:
            continue
        if (origin, icmp) in _EXPIRED:
            return IcmpError(offender.host, "expired")
        if (origin, icmp, code) in _PORT:
            return IcmpError(offender.host, "port")
        return IcmpError(offender.host, f"unreachable {code}")
    return None
