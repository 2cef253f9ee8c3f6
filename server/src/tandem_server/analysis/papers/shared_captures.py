"""Captures that runs shared, because they went on at once: which of a capture's connections was which run's. Pure; never by guess.

A Multipath TCP run's is known by the kernel's token, which the run told and the opener's key gives; on the other paths by the
server's token, which a join names. A TCP run's is known by the port that the server saw, the server's address and port, the time,
and that no fewer bytes were seen than the run received. What fits none or more than one, or what two runs could claim, is left out
and said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tandem_server.analysis.reading import mapping, mappings, text, whole


@dataclass(frozen=True, slots=True)
class Seen:
    """A connection in a capture. ``bytes``: towards its opener, of the data level, with those that the capture missed."""

    connection: int
    multipath: bool
    opener_port: int
    responder_address: str
    responder_port: int
    start_utc_ns: int
    end_utc_ns: int
    opener_token: int | None
    responder_token: int | None
    bytes: int


def joined(
    manifests: Sequence[Mapping[str, Any]], by_path: Mapping[str, Sequence[Seen]]
) -> tuple[dict[tuple[str, str], int], list[str]]:
    """By run and path the number of the connection in that path's capture; and lines on what could not be joined.

    ``manifests``: of one pair's runs; ``by_path``: what the pair's captures have in them.
    """
    made: dict[tuple[str, str], int] = {}
    lines = []
    for m in manifests:
        during = {path: [one for one in seen if _during(m, one)] for path, seen in by_path.items()}
        token = token_of(m)
        found, why = _plain(m, during) if token is None else _multipath(token, during)
        made |= {(str(m["id"]), path): number for path, number in found.items()}
        lines += [f"{m['id']}: not joined to its packets: {why}"] if why else []
    claims = Counter((path, number) for (_, path), number in made.items())
    for (run, path), number in list(made.items()):
        if claims[path, number] > 1:
            del made[run, path]
            lines.append(f"{run}: not joined to its packets on path {path}: another run could be meant as well")
    return made, lines


def _multipath(token: int, during: Mapping[str, Sequence[Seen]]) -> tuple[dict[str, int], str | None]:
    # Of paths whose captures were read as one, each has the same.
    first = list({id(one): one for seen in during.values() for one in seen if one.opener_token == token}.values())
    if len(first) != 1:
        return {}, f"{len(first)} connections in the captures have its token"
    server = first[0].responder_token
    found = {}
    for path, seen in during.items():
        own = [
            one
            for one in seen
            if one.opener_token == token
            or (server is not None and one.opener_token is None and one.responder_token == server)
        ]
        if len(own) == 1:
            found[path] = own[0].connection
    return found, None


def _plain(m: Mapping[str, Any], during: Mapping[str, Sequence[Seen]]) -> tuple[dict[str, int], str | None]:
    result = mapping(m, "result")
    if text(m, "kind") != "tcp":
        return {}, "its records hold neither a token nor a port"
    told = {
        (text(row, "path"), whole(mapping(row, "remote"), "port"))
        for connection in mappings(mapping(result, "sender"), "connections")
        for row in mappings(connection, "subflows")
    }
    if len(told) != 1:
        return {}, f"its records hold {len(told)} ports"
    path, port = told.pop()
    if path is None or port is None:
        return {}, "its records hold no port"
    addresses = {text(row, "server_address") for row in mappings(result, "subflows")} - {None}
    served = urlsplit(text(mapping(mapping(m, "parameters"), "server"), "measurement") or "").port
    own = [
        one
        for one in during.get(path, ())
        if not one.multipath
        and (one.opener_port, one.responder_port) == (port, served)
        and {one.responder_address} == addresses
        and one.bytes >= (whole(result, "bytes") or 0)
    ]
    if len(own) != 1:
        return {}, f"{len(own)} connections in the capture of path {path} are from the port that the server saw"
    return {path: own[0].connection}, None


def token_of(m: Mapping[str, Any]) -> int | None:
    """The kernel's token of the run's connection, as its manifest has it; None without."""
    told = text(mapping(mapping(m, "environment"), "further"), "connection")
    try:
        return None if told is None else int(told, 16)
    except ValueError:
        return None


def _during(m: Mapping[str, Any], one: Seen) -> bool:
    start, end = whole(m, "started_utc_ns"), whole(m, "ended_utc_ns")
    return start is not None and end is not None and one.start_utc_ns <= end and one.end_utc_ns >= start
