"""Further addresses of the server's measurement listener, as the session's answer tells them (docs/reference/endpoint-api.md). Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

MOST = 4
"""More are passed over: each may cost a handshake on every path."""
_LOOKED_AT = 64


def further_addresses(answer: Mapping[str, Any]) -> list[str]:
    """``further_addresses`` of a session's answer, each once, in their plainest form; what is none that a host can have is passed over.

    The answer comes from outside: loopback, multicast and the like would have us send handshakes to ourselves or to many."""
    told = answer.get("further_addresses")
    found: list[str] = []
    for text in told[:_LOOKED_AT] if isinstance(told, list) else []:
        if not isinstance(text, str):
            continue
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            continue
        if isinstance(address, ipaddress.IPv6Address):
            if address.scope_id is not None:
                continue
            address = address.ipv4_mapped or address
        if address.is_loopback or address.is_multicast or address.is_unspecified or address.is_link_local:
            continue
        if int(address) == 0xFFFFFFFF and address.version == 4:
            continue
        if str(address) not in found:
            found.append(str(address))
    return found[:MOST]
