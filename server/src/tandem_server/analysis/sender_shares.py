"""Shares of a download's bytes by path as its sender sent them: of the server's capture, where Adarsh et al. (§IV.B) took them.

What was lost on the way and sent again is in the sender's capture only: a path that loses carries more than its receiver sees. Which
subflow is of which path the server told with the session: by the address and port that it saw. No time is compared, so the server's
clock need not agree with the probe's.
"""

from __future__ import annotations

import importlib
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tandem_server.analysis.folder import TRACES, CampaignFolder, capture_name
from tandem_server.analysis.reading import flag, mapping, mappings, text, whole
from tandem_server.analysis.tables.facts import SENDER_SHARES
from tandem_server.analysis.traces import manifest

_MOST_DROPPED = 0.01
"""Of a capture's packets, that tcpdump may have missed."""

End = tuple[str, int]


class UnknownSharesError(Exception):
    """Why the shares are not known from the sender's side; a few words."""


def add_sender_shares(campaign: CampaignFolder) -> None:
    """Put ``SENDER_SHARES`` into the results of Multipath TCP downloads that have the server's capture; a line in ``remarks`` says of
    how many, and why not of the others that asked for one. Without ``traces/`` of the folder there are none."""
    mine = [m for m in campaign.manifests if text(m, "kind") == "mptcp" and mapping(m, "result")]
    for m in mine:
        m["result"].pop(SENDER_SHARES, None)  # whoever wrote it there
    asked = [m for m in mine if mappings(m, "server_captures")]
    if not asked:
        return
    whys: Counter[str] = Counter()
    try:
        sent = _sent(campaign.folder / TRACES, {capture_name(name) for m in asked if (name := _kept(m)) is not None})
    except (ImportError, manifest.ManifestError) as error:
        sent, whys[str(error)] = {}, len(asked)
        asked = []
    found = 0
    for m in asked:
        try:
            m["result"][SENDER_SHARES] = shares_of(m, sent)
            found += 1
        except UnknownSharesError as error:
            whys[str(error)] += 1
    without = [f"by the probe's counters of {n}: {why}" for why, n in whys.most_common()]
    campaign.remarks.append("; ".join([f"shares of downloads by the server's captures of {found} runs", *without]))


def shares_of(m: Mapping[str, Any], sent: Mapping[str, Mapping[End, int]]) -> dict[str, float]:
    """By path. ``sent``: by capture the payload that went to each of the probe's ends. UnknownSharesError."""
    (entry, *more) = mappings(dict(m), "server_captures")
    name = text(entry, "name")
    if name is None:
        raise UnknownSharesError(f"no capture at the server: {text(entry, 'why') or 'it is not said why'}")
    if more:
        raise UnknownSharesError("it had several sessions")
    packets, dropped = whole(entry, "packets") or 0, whole(entry, "packets_dropped") or 0
    if flag(entry, "truncated") is True or dropped > _MOST_DROPPED * packets:
        raise UnknownSharesError("the server's capture is not whole")
    if (ends := sent.get(capture_name(name))) is None:
        raise UnknownSharesError("the server's capture was not exported or not analysed")
    paths = {
        (text(remote, "address"), whole(remote, "port")): path
        for connection in mappings(mapping(mapping(dict(m), "result"), "sender"), "connections")
        for row in mappings(connection, "subflows")
        if (remote := mapping(row, "remote")) and (path := text(row, "path")) is not None
    }
    by_path: dict[str, int] = defaultdict(int)
    for end, size in ends.items():
        if size and end not in paths:
            raise UnknownSharesError("the server did not tell the path of each subflow")
        if size:
            by_path[paths[end]] += size
    total = sum(by_path.values())
    if not total:
        raise UnknownSharesError("the server's capture holds no payload")
    return {path: size / total for path, size in by_path.items()}


def _kept(m: Mapping[str, Any]) -> str | None:
    return next((name for entry in mappings(dict(m), "server_captures") if (name := text(entry, "name"))), None)


def _sent(place: Path, wanted: set[str]) -> dict[str, dict[End, int]]:
    """Of each wanted capture that has tables: TCP payload, every copy, by the end that it went to. ImportError, ManifestError."""
    every = sorted(manifest.read(place).items())
    parts = [name for name, part in every if any(capture_name(one.file) in wanted for one in part.files)]
    if not parts:
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
