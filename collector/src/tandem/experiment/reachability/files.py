"""The files of a survey: the list of names, in Tranco's format (``rank,domain`` a line); the deny list (who is never resolved nor pinged);
and the journal: a head line, then a line a name that is done. A survey that was cut off goes on behind its last line.
"""

from __future__ import annotations

import csv
import hashlib
import io
import ipaddress
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem.experiment.parameters import ParameterError
from tandem.mptcp.dns import DnsError, normal_name

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: an IPv4 address as NAT64 and DNS64 show it


class ListError(ValueError):
    """A line of a list cannot be read; names the line and the fix."""


@dataclass(frozen=True, slots=True)
class Name:
    """One name of the list. ``rank``: from 1."""

    rank: int
    name: str


@dataclass(frozen=True, slots=True)
class NameList:
    """The names taken of a list, and the hash of the whole file, by which it is known again."""

    names: tuple[Name, ...]
    sha256: str


def read_names(raw: bytes, first: int) -> NameList:
    """The ``first`` names of the file ``raw``; ListError. Empty lines are left out, a name that comes twice counts once."""
    names: dict[str, Name] = {}
    for number, line in enumerate(raw.split(b"\n"), start=1):
        if len(names) >= first:
            break
        text = line.strip()
        if not text:
            continue
        try:
            name = _ranked(text.decode("ascii"))
        except (ValueError, DnsError) as error:
            raise ListError(f"line {number}: {error}; hint: rank,domain as Tranco writes it") from error
        names.setdefault(name.name, name)
    if not names:
        raise ListError("line 1: no name; hint: rank,domain as Tranco writes it")
    return NameList(tuple(names.values()), hashlib.sha256(raw).hexdigest())


def _ranked(text: str) -> Name:
    rank, comma, domain = text.partition(",")
    if not comma or not rank.isdecimal() or not 1 <= int(rank) <= 10**9:
        raise ValueError(f"{text[:60]!r} is not rank,domain")
    return Name(int(rank), normal_name(domain))


@dataclass(frozen=True, slots=True)
class DenyList:
    """``domains`` and all names below them; ``networks`` and all addresses in them."""

    domains: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    def denies_name(self, name: str) -> bool:
        """Whether ``name`` or a domain above it is on the list."""
        labels = name.split(".")
        return any(".".join(labels[i:]) in self.domains for i in range(len(labels)))

    def why_not(self, address: str) -> str | None:
        """Why ``address`` must not be pinged: ``denied``, or ``private`` for all that is not a public host's; None when it may be."""
        ip = ipaddress.ip_address(address)
        hidden = _within(ip)
        if any(not_public(a) for a in (hidden if ip in _TRANSLATED else (ip, *hidden))):
            return "private"
        for a in (ip, *hidden):
            if any(a.version == n.version and a in n for n in self.networks):
                return "denied"
        return None


def read_deny(text: str) -> DenyList:
    """One domain, address or network (CIDR) a line; ``#`` begins a comment; ListError."""
    domains, networks = set[str](), list[Network]()
    for number, line in enumerate(text.splitlines(), start=1):
        entry = line.partition("#")[0].strip()
        if not entry:
            continue
        try:
            networks.append(ipaddress.ip_network(entry, strict=False))
            continue
        except ValueError:
            pass  # then it must be a name
        try:
            if "/" in entry or ":" in entry:
                raise DnsError(f"{entry[:60]!r} is no network")
            domains.add(normal_name(entry))
        except DnsError as error:
            raise ListError(
                f"line {number}: {error}; hint: a domain, an address or a network such as 192.0.2.0/24"
            ) from error
    return DenyList(frozenset(domains), tuple(networks))


def not_public(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Private, loopback, link-local, multicast, reserved, shared (RFC 6598) or unspecified: nobody's public server."""
    return ip.is_private or ip.is_multicast or ip.is_reserved or ip.is_unspecified or ip.is_loopback or not ip.is_global


def _within(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> Sequence[ipaddress.IPv4Address]:
    """The IPv4 addresses that an IPv6 address carries: mapped, 6to4, NAT64."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ()
    found = [a for a in (ip.ipv4_mapped, ip.sixtofour) if a is not None]
    if ip in _TRANSLATED:
        found.append(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF))
    return found


JOURNAL, ROWS = "reachability.jsonl", "reachability-rows.csv"
Row = dict[str, Any]

COLUMNS = (
    "rank", "name", "family", "resolved_over", "pinged_over", "address",
    "sent", "answered", "resets", "unreachable", "not_sent", "rtt_ms_mean", "rtt_ms_min", "rtt_ms_max",
)  # fmt: skip


class Journal:
    """In ``folder``, which is made. ``head``: what must be the same for two parts to be one survey. ParameterError when it is not."""

    def __init__(self, folder: Path, head: Row) -> None:
        self.file = folder / JOURNAL
        try:
            folder.mkdir(parents=True, exist_ok=True)
            raw = self.file.read_bytes() if self.file.exists() else b""
            whole = raw[: raw.rfind(b"\n") + 1]  # a power cut may have left half a line
            self.rows = _rows(self.file, whole, head)
            self._stream = self.file.open("r+b" if self.file.exists() else "w+b")
            self._stream.truncate(len(whole))
            self._stream.seek(len(whole))
        except OSError as error:
            raise ParameterError(f"parameter 'folder': {error.filename}: {error.strerror}") from error
        if not whole:
            self.add([{"head": head}])

    def add(self, rows: Iterable[Row]) -> None:
        """Write down and wait until it is on the disk. The head is no row."""
        lines = [(json.dumps(row, separators=(",", ":"), sort_keys=True) + "\n").encode() for row in rows]
        self._stream.write(b"".join(lines))
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        self._stream.close()


def _rows(file: Path, whole: bytes, head: Row) -> list[Row]:
    rows = list[Row]()
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ParameterError(f"{file}: line {number}: no JSON; hint: another folder") from error
        if number == 1:
            if not isinstance(row, dict) or not isinstance(row.get("head"), dict):
                raise ParameterError(f"{file}: line 1: no journal of a survey; hint: another folder")
            differs = sorted(k for k in head.keys() | row["head"].keys() if head.get(k) != row["head"].get(k))
            if differs:
                raise ParameterError(f"{file}: a survey with other {', '.join(differs)}; hint: another folder")
        elif not isinstance(row, dict) or not isinstance(row.get("name"), str):
            raise ParameterError(f"{file}: line {number}: no name; hint: another folder")
        else:
            rows.append(row)
    return rows


def write_table(folder: Path, rows: Sequence[Row]) -> Path:
    """All rows as CSV: one line for each name, address, path that resolved it and path that pinged it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in sorted(rows, key=lambda r: int(r["rank"])):
        for resolved, answers in row.get("resolved", {}).items():
            for kind, answer in answers.items():
                for address in answer["addresses"]:
                    for path, pinged in row["pings"].get(address, {}).items():
                        rtts = pinged["rtt_ms"]
                        times = (round(sum(rtts) / len(rtts), 3), min(rtts), max(rtts)) if rtts else ("", "", "")
                        counts = (pinged[k] for k in ("sent", "answered", "resets", "unreachable", "not_sent"))
                        family = 4 if kind == "A" else 6
                        writer.writerow([row["rank"], row["name"], family, resolved, path, address, *counts, *times])
    target = folder / ROWS
    partial = target.with_suffix(".tmp")
    with partial.open("w") as stream:
        stream.write(text.getvalue())
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(target)
    return target
