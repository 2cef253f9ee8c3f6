"""[listen] further_addresses in server.toml: which can be told to probes. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

MOST = 4
"""Probes pass over more."""
_MEND = f"hint: at most {MOST} addresses of this server as probes reach them, each once"


def addresses_fault(told: Sequence[str]) -> str | None:
    """What is wrong, and the mend; None when nothing is."""
    if len(told) > MOST or len(set(told)) < len(told):
        return f"{list(told)}; {_MEND}"
    for text in told:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return f"{text!r} is no address; {_MEND}"
        if address.is_loopback or address.is_multicast or address.is_unspecified or address.is_link_local:
            return f"{text} is reached by no probe; {_MEND}"
    return None
