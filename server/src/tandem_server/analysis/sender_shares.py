"""Shares of bytes by path as the sender sent them, by its own captures: of downloads and page loads the server's, where Adarsh et al.
(§IV.B) took them; of uploads (``bandwidth`` and ``delay`` one way) the probe's.

What was lost on the way and sent again is in the sender's capture only: a path that loses carries more than its receiver sees. Which
subflow of the server's is of which path it told with the session: by the address (of a download, and the port) that it saw. An upload is
known by the kernel's token. No time is compared, so the two clocks need not agree.
"""

from __future__ import annotations

import importlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem_server.analysis.folder import TRACES, CampaignFolder, Capture, capture_name
from tandem_server.analysis.reading import flag, mapping, mappings, number, text, whole
from tandem_server.analysis.tables.facts import SENDER_SHARES, Side, gather
from tandem_server.analysis.traces import manifest

_MOST_DROPPED = 0.01
"""Of a capture's packets, that tcpdump may have missed."""

End = tuple[str, int]
Shares = dict[str, float]
Found = tuple[dict[str, Any], str | None, Shares | str]
"""A manifest; which of its run's loads or transfers, None of a download; its shares, or why they are not known."""


class UnknownSharesError(Exception):
    """Why the shares are not known from the sender's side; a few words."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A connection in one of the probe's captures. ``payload``: TCP payload to the server, every copy; ``unseen``: what the server had and
    the capture missed. A token that the capture does not show is None."""

    opener_token: int | None
    responder_token: int | None
    payload: int
    unseen: int


def part(result: Mapping[str, Any], name: str | None) -> Shares:
    """Of one load or upload of a run; empty where they are not known."""
    found = mapping(mapping(dict(result), SENDER_SHARES), name or "")
    return {path: float(share) for path, share in found.items() if isinstance(share, int | float)}


def round_share(result: Mapping[str, Any], benefit: Mapping[str, Any]) -> tuple[float | None, Side]:
    """The most loaded path's share of the Multipath TCP step of a benefit, and who counted: of an upload the probe is the sender."""
    if sent := part(result, text(benefit, "token")):
        return max(sent.values()), "sender"
    side: Side = "acknowledged" if text(result, "mode") == "oneway" else "receiver"
    return number(benefit, "most_loaded_share"), side


def load_shares(result: Mapping[str, Any], load: Mapping[str, Any]) -> tuple[Shares, Side]:
    """By path, of one page load, and who counted; {}: it is not known."""
    if sent := part(result, text(load, "session")):
        return sent, "sender"
    told = mapping(load, "shares")
    return {path: share for path in told if (share := number(told, path)) is not None}, "receiver"


def add_sender_shares(campaign: CampaignFolder) -> None:
    """Put ``SENDER_SHARES`` into the results of what Multipath TCP carried and its sender captured; a line in ``remarks`` says of how many,
    and why not of the others whose run has such captures. Without ``traces/`` of the folder there are none."""
    mine = [m for m in campaign.manifests if mapping(m, "result")]
    for m in mine:
        m["result"].pop(SENDER_SHARES, None)  # whoever wrote it there
    place = campaign.folder / TRACES
    asked = [m for m in mine if mappings(m, "server_captures")]
    wanted = {capture_name(name) for m in asked for name in _kept(m)}
    sent, why = _read(_sent, place, wanted)
    downloads = [m for m in asked if text(m, "kind") == "mptcp"]
    found: list[Found] = [(m, None, _or_why(shares_of, m, sent, why=why)) for m in downloads]
    _tell(campaign, "shares of downloads by the server's captures of {} runs", found)
    loads = [(m, row) for m in asked for row in _loads(campaign, m)]
    found = [(m, text(row, "session"), _or_why(shares_of_load, m, row, sent, why=why)) for m, row in loads]
    _tell(campaign, "shares of page loads by the server's captures of {} loads", found)
    tokens = {str(m["id"]): known for m in mine if (known := _uploads(campaign, m))}
    captured = {run: [c for c in campaign.captures if c.run == run] for run in tokens}
    names = {capture_name(c.file) for captures in captured.values() for c in captures}
    own, why = _read(_uploaded, place, names)
    found = [
        (m, token, _or_why(shares_of_upload, m, token, captured[str(m["id"])], own, why=why))
        for m in mine
        if captured.get(str(m["id"]))
        for token in tokens[str(m["id"])]
    ]
    _tell(campaign, "shares of uploads by the probe's captures of {} transfers", found)


def _read(of: Callable[[Path, set[str]], Any], place: Path, wanted: set[str]) -> tuple[Any, str | None]:
    """What the tables have of these captures; else nothing, and why."""
    try:
        return of(place, wanted) if wanted else {}, None
    except (ImportError, manifest.ManifestError) as error:
        return {}, str(error)


def _or_why(of: Callable[..., Shares], *args: Any, why: str | None) -> Shares | str:  # noqa: ANN401  (of's own)
    try:
        return why or of(*args)
    except UnknownSharesError as error:
        return str(error)


def _tell(campaign: CampaignFolder, what: str, found: Iterable[Found]) -> None:
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


def shares_of_load(m: Mapping[str, Any], row: Mapping[str, Any], sent: Mapping[str, Mapping[End, int]]) -> Shares:
    """By path, of the whole session of one load. UnknownSharesError."""
    session = text(dict(row), "session")
    entries = [one for one in mappings(dict(m), "server_captures") if session and text(one, "session") == session]
    if len(entries) != 1:
        raise UnknownSharesError("no session with a capture is told of the load")
    paths = mapping(dict(row), "sender_addresses")
    return _by_path(_whole(entries[0], sent), lambda end: text(paths, end[0]))


def shares_of_upload(
    m: Mapping[str, Any], token: str, captures: Sequence[Capture], own: Mapping[str, Sequence[Sent]]
) -> Shares:
    """By path, of one connection of the run. ``own``: by capture what it holds. UnknownSharesError."""
    files = {c.path: capture_name(c.file) for c in captures}
    asked = m.get("paths")
    if not isinstance(asked, list) or not set(asked) <= set(files):
        raise UnknownSharesError("not each path has a capture of its own")
    if any(c.cut for c in captures):
        raise UnknownSharesError("the probe's capture is not whole")
    if any(name not in own for name in files.values()):
        raise UnknownSharesError("the probe's captures were not analysed")
    number = _number(token)
    first = [one for name in files.values() for one in own[name] if number is not None and one.opener_token == number]
    if len(first) != 1:
        raise UnknownSharesError(f"{len(first)} connections in the probe's captures have the token")
    mine = {
        str(path): [c for c in own[name] if c in first or _joins(c, first[0])] for path, name in files.items() if path
    }
    every = [c for connections in mine.values() for c in connections]
    total = sum(c.payload for c in every)
    if not total or sum(c.unseen for c in every) > _MOST_DROPPED * total:
        raise UnknownSharesError("the probe's capture is not whole")
    return {
        path: sum(c.payload for c in own_c) / total for path, own_c in mine.items() if any(c.payload for c in own_c)
    }


def _joins(one: Sent, first: Sent) -> bool:
    """Its handshakes are joins that name the same connection of the server."""
    return one.opener_token is None and one.responder_token is not None and one.responder_token == first.responder_token


def _number(token: str) -> int | None:
    try:
        return int(token, 16)
    except ValueError:
        return None


def shares_of(m: Mapping[str, Any], sent: Mapping[str, Mapping[End, int]]) -> Shares:
    """Of a download, by path. ``sent``: by capture the payload that went to each of the probe's ends. UnknownSharesError."""
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


def _whole(entry: Mapping[str, Any], sent: Mapping[str, Mapping[End, int]]) -> Mapping[End, int]:
    """What a capture of the server holds, where it holds all. UnknownSharesError."""
    name = text(dict(entry), "name")
    if name is None:
        raise UnknownSharesError(f"no capture at the server: {text(dict(entry), 'why') or 'it is not said why'}")
    packets, dropped = whole(dict(entry), "packets") or 0, whole(dict(entry), "packets_dropped") or 0
    if flag(dict(entry), "truncated") is True or dropped > _MOST_DROPPED * packets:
        raise UnknownSharesError("the server's capture is not whole")
    if (ends := sent.get(capture_name(name))) is None:
        raise UnknownSharesError("the server's capture was not exported or not analysed")
    return ends


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


def _parts(place: Path, wanted: set[str]) -> list[str]:
    """Of the tables, those with any of these captures. ManifestError."""
    return [
        name
        for name, one in sorted(manifest.read(place).items())
        if any(capture_name(file.file) in wanted for file in one.files)
    ]


def _sent(place: Path, wanted: set[str]) -> dict[str, dict[End, int]]:
    """Of each wanted capture that has tables: TCP payload, every copy, by the end that it went to. ImportError, ManifestError."""
    if not (parts := _parts(place, wanted)):
        return {}
    tables = importlib.import_module("tandem_server.analysis.traces.tables")
    sent: dict[str, dict[End, int]] = {}
    end_of: dict[tuple[str, int], End] = {}
    for row in tables.read(place, "subflows", parts, ("subflow", "opener_address", "opener_port")).to_pylist():
        end_of[row["file"], row["subflow"]] = row["opener_address"], row["opener_port"]
        if (name := capture_name(row["file"])) in wanted:
            sent[name] = {}
    for row in tables.read(place, "totals", parts, ("subflow", "direction", "payload_bytes")).to_pylist():
        name = capture_name(row["file"])
        if name in sent and row["subflow"] is not None and row["direction"] == "to_opener":
            sent[name][end_of[row["file"], row["subflow"]]] = row["payload_bytes"]
    return sent


def _uploaded(place: Path, wanted: set[str]) -> dict[str, list[Sent]]:
    """Of each wanted capture that has tables its connections. ImportError, ManifestError."""
    if not (parts := _parts(place, wanted)):
        return {}
    tables = importlib.import_module("tandem_server.analysis.traces.tables")
    counts: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    names = ("connection", "subflow", "direction", "payload_bytes", "unseen_bytes")
    for row in tables.read(place, "totals", parts, names).to_pylist():
        if row["direction"] == "from_opener" and row["subflow"] is not None:
            both = counts[row["file"], row["connection"]]
            both[0], both[1] = both[0] + row["payload_bytes"], both[1] + row["unseen_bytes"]
    sent: dict[str, list[Sent]] = {}
    for row in tables.read(place, "connections", parts, ("connection", "opener_token", "responder_token")).to_pylist():
        if (name := capture_name(row["file"])) in wanted:
            one = Sent(row["opener_token"], row["responder_token"], *counts[row["file"], row["connection"]])
            sent.setdefault(name, []).append(one)
    return sent
