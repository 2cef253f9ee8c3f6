"""Shares of bytes by path as the sender sent them, by its own captures: of downloads and page loads the server's, where Adarsh et al.
(§IV.B) took them; of uploads (``bandwidth`` and ``delay`` one way) the probe's.

What was lost on the way and sent again is in the sender's capture only: a path that loses carries more than its receiver sees. Which
subflow of the server's is of which path it told with the session: by the address (of a download, and the port) that it saw. An upload is
known by the kernel's token. No time is compared, so the two clocks need not agree.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tandem_server.analysis.captures import Connection, by_token, connections_in, number_of, path_addresses
from tandem_server.analysis.folder import TRACES, CampaignFolder, Capture, capture_name, parts_of
from tandem_server.analysis.reading import flag, mapping, mappings, text, whole
from tandem_server.analysis.tables.facts import SENDER_SHARES, gather
from tandem_server.analysis.traces import manifest

_MOST_DROPPED = 0.01
"""Of a capture's packets, that tcpdump may have missed."""

End = tuple[str, int]
Shares = dict[str, float]
Found = Mapping[str, Sequence[Connection]]
"""By capture what it holds."""
Told = tuple[dict[str, Any], str | None, Shares | str]
"""A manifest; which of its run's loads or transfers, None of a download; its shares, or why they are not known."""
FROM_OPENER, TO_OPENER = range(2)
"""Places in ``WAYS``."""


class UnknownSharesError(Exception):
    """Why the shares are not known from the sender's side; a few words."""


def add_sender_shares(campaign: CampaignFolder) -> None:
    """Put ``SENDER_SHARES`` into the results of what Multipath TCP carried and its sender captured; a line in ``remarks`` says of how many,
    and why not of the others whose run has such captures. Without ``traces/`` of the folder there are none."""
    mine = [m for m in campaign.manifests if mapping(m, "result")]
    for m in mine:
        m["result"].pop(SENDER_SHARES, None)  # whoever wrote it there
    asked = [m for m in mine if mappings(m, "server_captures")]
    tokens = {str(m["id"]): known for m in mine if (known := _uploads(campaign, m))}
    captured = {run: [c for c in campaign.captures if c.run == run] for run in tokens}
    wanted = {capture_name(name) for m in asked for name in _kept(m)}
    wanted |= {capture_name(c.file) for captures in captured.values() for c in captures}
    there, why = _read(campaign.folder / TRACES, wanted)
    downloads = [m for m in asked if text(m, "kind") == "mptcp"]
    found: list[Told] = [(m, None, _or_why(shares_of, m, there, why=why)) for m in downloads]
    _tell(campaign, "shares of downloads by the server's captures of {} runs", found)
    loads = [(m, row) for m in asked for row in _loads(campaign, m)]
    found = [(m, text(row, "session"), _or_why(shares_of_load, m, row, there, why=why)) for m, row in loads]
    _tell(campaign, "shares of page loads by the server's captures of {} loads", found)
    found = [
        (m, token, _or_why(shares_of_upload, m, token, captured[str(m["id"])], there, why=why))
        for m in mine
        if captured.get(str(m["id"]))
        for token in tokens[str(m["id"])]
    ]
    _tell(campaign, "shares of uploads by the probe's captures of {} transfers", found)


def _read(place: Path, wanted: set[str]) -> tuple[Found, str | None]:
    """What the tables have of these captures; else nothing, and why."""
    found: dict[str, list[Connection]] = {}
    try:
        every = sorted(manifest.read(place).items()) if wanted else []
        parts = [name for name, part in every if any(wanted.issuperset(_names(file.file)) for file in part.files)]
        for one in connections_in(place, parts) if parts else ():
            if wanted.issuperset(_names(one.file)):
                found.setdefault(capture_name(one.file), []).append(one)
    except (ImportError, manifest.ManifestError) as error:
        return {}, str(error)
    return found, None


def _names(file: str) -> list[str]:
    return parts_of(capture_name(file))


def _or_why(of: Callable[..., Shares], *args: Any, why: str | None) -> Shares | str:  # noqa: ANN401  (of's own)
    try:
        return why or of(*args)
    except UnknownSharesError as error:
        return str(error)


def _tell(campaign: CampaignFolder, what: str, found: Iterable[Told]) -> None:
    known, whys = 0, Counter[str]()
    for m, name, shares in found:
        if isinstance(shares, str):
            whys[shares] += 1
            continue
        known += 1
        m["result"][SENDER_SHARES] = shares if name is None else {**m["result"].get(SENDER_SHARES, {}), name: shares}
    if known or whys:
        without = [f"by the probe's counters of {n}: {why}" for why, n in whys.most_common()]
        campaign.remarks.append("; ".join([what.format(known), *without]))


def _loads(campaign: CampaignFolder, m: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of page loads by Multipath TCP."""
    (run,) = gather([m], campaign.folder / "probe" / campaign.probe)
    return run.listed("loads") if run.experiment == "pageload" and run.kind == "mptcp" else []


def _uploads(campaign: CampaignFolder, m: dict[str, Any]) -> list[str]:
    """Tokens of the connections by which Multipath TCP sent from the probe."""
    (run,) = gather([m], campaign.folder / "probe" / campaign.probe)
    if run.experiment not in ("bandwidth", "delay") or text(mapping(m, "result"), "mode") != "oneway":
        return []
    benefits = [one for row in run.listed("rounds") for one in mappings(row, "benefits")]
    return [token for one in benefits if (token := text(one, "token")) is not None]


def shares_of_load(m: Mapping[str, Any], row: Mapping[str, Any], sent: Found) -> Shares:
    """By path, of the whole session of one load. UnknownSharesError."""
    session = text(dict(row), "session")
    entries = [one for one in mappings(dict(m), "server_captures") if session and text(one, "session") == session]
    if len(entries) != 1:
        raise UnknownSharesError("no session with a capture is told of the load")
    paths = mapping(dict(row), "sender_addresses")
    return _by_path(_whole(entries[0], sent), lambda end: text(paths, end[0]))


def shares_of_upload(m: Mapping[str, Any], token: str, captures: Sequence[Capture], there: Found) -> Shares:
    """By path, of one connection of the run; of captures that were read as one by the subflows' addresses. UnknownSharesError."""
    path_of = {capture_name(c.file): c.path for c in captures}
    asked = m.get("paths")
    if not isinstance(asked, list) or not set(asked) <= set(path_of.values()):
        raise UnknownSharesError("not each path has a capture of its own")
    if any(c.cut for c in captures):
        raise UnknownSharesError("the probe's capture is not whole")
    own: dict[str, Sequence[Connection]] = {}
    left = set(path_of)
    for name in sorted(there, key=lambda one: -len(parts_of(one))):
        if left.issuperset(parts_of(name)):
            own[name] = there[name]
            left -= {*parts_of(name)}
    if left:
        raise UnknownSharesError("the probe's captures were not analysed")
    mine, why = by_token(number_of(token), [one for connections in own.values() for one in connections])
    if not mine:
        raise UnknownSharesError(why)
    addresses = path_addresses(m)
    sent: Counter[str] = Counter()
    missed = 0
    for one in mine:
        for flow in one.subflows:
            payload, unseen = flow["sent"][FROM_OPENER]
            path, missed = path_of.get(capture_name(one.file)) or addresses.get(flow["opener_address"]), missed + unseen
            if path is None and payload:
                raise UnknownSharesError("a subflow's address is no path's")
            sent[path or ""] += payload
    if not (total := sent.total()) or missed > _MOST_DROPPED * total:
        raise UnknownSharesError("the probe's capture is not whole")
    return {path: payload / total for path, payload in sent.items() if payload}


def shares_of(m: Mapping[str, Any], sent: Found) -> Shares:
    """Of a download, by path. UnknownSharesError."""
    (entry, *more) = mappings(dict(m), "server_captures")
    if more and text(entry, "name") is not None:
        raise UnknownSharesError("it had several sessions")
    paths = {
        (text(remote, "address"), whole(remote, "port")): path
        for connection in mappings(mapping(mapping(dict(m), "result"), "sender"), "connections")
        for row in mappings(connection, "subflows")
        if (remote := mapping(row, "remote")) and (path := text(row, "path")) is not None
    }
    return _by_path(_whole(entry, sent), paths.get)


def _whole(entry: Mapping[str, Any], sent: Found) -> Mapping[End, int]:
    """Payload to each of the probe's ends, every copy, where a capture of the server holds all. UnknownSharesError."""
    name = text(dict(entry), "name")
    if name is None:
        raise UnknownSharesError(f"no capture at the server: {text(dict(entry), 'why') or 'it is not said why'}")
    packets, dropped = whole(dict(entry), "packets") or 0, whole(dict(entry), "packets_dropped") or 0
    if flag(dict(entry), "truncated") is True or dropped > _MOST_DROPPED * packets:
        raise UnknownSharesError("the server's capture is not whole")
    if (connections := sent.get(capture_name(name))) is None:
        raise UnknownSharesError("the server's capture was not exported or not analysed")
    return {
        (flow["opener_address"], flow["opener_port"]): flow["sent"][TO_OPENER][0]
        for one in connections
        for flow in one.subflows
    }


def _by_path(ends: Mapping[End, int], path_of: Callable[[End], str | None]) -> Shares:
    by_path: dict[str, int] = defaultdict(int)
    for end, size in ends.items():
        if not size:
            continue
        if (path := path_of(end)) is None:
            raise UnknownSharesError("the server did not tell the path of each subflow")
        by_path[path] += size
    total = sum(by_path.values())
    if not total:
        raise UnknownSharesError("the server's capture holds no payload")
    return {path: size / total for path, size in by_path.items()}


def _kept(m: Mapping[str, Any]) -> list[str]:
    return [name for entry in mappings(dict(m), "server_captures") if (name := text(entry, "name"))]
