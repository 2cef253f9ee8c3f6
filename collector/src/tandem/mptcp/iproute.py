"""Calls of iproute2's ``ip``, with its JSON answers as plain values. What they ask for needs CAP_NET_ADMIN, listing does not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

PROTOCOL = "71"
"""The mark on our routes (a route's ``protocol``); 71 has no name in rt_protos of any distribution met."""


class IpError(RuntimeError):
    """``ip`` refused; the message is its own, on one line, with the command."""


@lru_cache(maxsize=1)
def program() -> str:
    """Where ``ip`` is; IpError when it is not installed."""
    # An ordinary user's PATH on Debian has no sbin, where ip lives.
    found = shutil.which("ip", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if found is None:
        raise IpError("the program ip is missing; hint: install the package iproute2")
    return found


def ip(*arguments: str) -> str:
    """Run ``ip`` with ``arguments``; its standard output. IpError when it fails or takes longer than 10 s."""
    try:
        done = subprocess.run([program(), *arguments], capture_output=True, text=True, timeout=10, check=False)
    except subprocess.TimeoutExpired as error:
        raise IpError(f"ip {' '.join(arguments)}: no answer in 10 s") from error
    if done.returncode != 0:
        raise IpError(f"ip {' '.join(arguments)}: {' '.join(done.stderr.split()) or f'exit {done.returncode}'}")
    return done.stdout


def ip_json(*arguments: str) -> list[dict[str, Any]]:
    """As ``ip -j``; always a list of objects (empty when there is nothing to list)."""
    text = ip("-j", *arguments).strip()
    if not text:
        return []
    try:
        answer = json.loads(text)
    except ValueError as error:
        raise IpError(f"ip -j {' '.join(arguments)}: an answer that is no JSON: {text[:60]!r}") from error
    rows = answer if isinstance(answer, list) else [answer]
    return [row for row in rows if isinstance(row, dict) and row]


def quietly(action: Callable[[], object]) -> None:
    """Run a deletion whose object may just have vanished with its interface; any other refusal is raised."""
    try:
        action()
    except IpError as error:
        if not any(word in str(error) for word in ("No such", "not found", "Cannot find", "FIB table does not exist")):
            raise


@dataclass(frozen=True, slots=True)
class Interface:
    """A network interface. ``usable``: up, with its carrier; ``addresses``: its global IPv4 ones; ``addresses6``: its global IPv6
    ones that may be used, lasting ones and those of the Internet first; ``networks``: all of them with prefix length, and peers;
    ``point_to_point``: it needs no next hop; ``alias``: what somebody wrote on it."""

    name: str
    usable: bool
    addresses: tuple[str, ...]
    addresses6: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    point_to_point: bool = False
    mtu: int | None = None
    alias: str | None = None


_UNUSABLE6 = frozenset({"tentative", "dadfailed", "deprecated"})


def interfaces(*where: str) -> dict[str, Interface]:
    """All interfaces by name; ``where``: options of ``ip``, as ``-n NAMESPACE``."""
    found = {}
    for row in ip_json(*where, "address", "show"):
        name = str(row.get("ifname", ""))
        flags = row.get("flags", [])
        known = [a for a in row.get("addr_info", []) if a.get("scope") == "global" and "local" in a]
        usable6 = [a for a in known if a.get("family") == "inet6" and not _UNUSABLE6 & a.keys()]
        found[name] = Interface(
            name=name,
            usable="UP" in flags and "NO-CARRIER" not in flags,
            addresses=tuple(str(a["local"]) for a in known if a.get("family") == "inet"),
            addresses6=tuple(str(a["local"]) for a in sorted(usable6, key=_preference6)),
            networks=tuple(
                f"{host}/{a.get('prefixlen')}" for a in known for host in (a["local"], a.get("address")) if host
            ),
            point_to_point="POINTOPOINT" in flags or "NOARP" in flags,
            mtu=row.get("mtu"),
            alias=row.get("ifalias"),
        )
    return found


def _preference6(address: dict[str, Any]) -> tuple[bool, bool]:
    return str(address["local"]).startswith(("fc", "fd")), "temporary" in address
