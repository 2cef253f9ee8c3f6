"""Which captured subflow is which run's, and on which path: by what both sides wrote down, never by likeness.

- A Multipath TCP run's manifest has its connection's token at the probe: the capture with the first handshake shows the key that it is made
  of. The other end's token then names the connection in the captures of the other paths, whose joins carry it.
- A TCP run is one connection: the only plain one in its captures that carried as many bytes as the run received.
- Other experiments' connections are those to the measurement server's port, in captures that no other run shares.
- The path is the capture's; of a capture of several, the one whose address the manifest says the subflow's was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from tandem.schema.trace import SERVER_CAPTURES
from tandem_server.analysis.folder import Capture, capture_name, probe_of
from tandem_server.analysis.papers.shared_captures import token_of
from tandem_server.analysis.radio.shapes import Flows, Whole
from tandem_server.analysis.reading import flag, mapping, mappings, text, whole

Columns = Mapping[str, Any]
CONNECTIONS = ("connection", "multipath", "fallback", "responder_port", "opener_token", "responder_token")
SUBFLOWS = ("subflow", "connection", "opener_address", "start_utc_ns", "end_utc_ns", "handshake_rtt_ns")
TOTALS = ("connection", "subflow", "direction", "goodput_bytes", "rtt_method")


@dataclass(slots=True)
class Matched:
    """``direction``: of each subflow's data. ``file``: number of its capture in the tables. ``account``: what could not be matched."""

    flows: Flows
    file: Whole
    direction: Whole
    account: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Connection:
    """One row of ``connections`` with its subflows' rows and what it carried either way."""

    file: int
    multipath: bool
    port: int
    opener_token: float
    responder_token: float
    carried: list[float]
    flows: list[int]


def matched(
    manifests: Iterable[Mapping[str, Any]],
    captures: Iterable[Capture],
    connections: Columns,
    subflows: Columns,
    totals: Columns,
    start_utc_ns: int,
    methods: Sequence[str],
) -> Matched:
    """``methods``: names of the codes of ``rtt_method``. Columns as ``traces.parquet.columns`` reads them, with the same ``files``."""
    account: Counter[str] = Counter()
    known, runs_of = _captures(manifests := list(manifests), captures, connections["files"], account)
    found = _connections(connections, subflows, totals)
    by_file: dict[int, list[_Connection]] = {}
    for one in found.values():
        by_file.setdefault(one.file, []).append(one)
    rows: list[tuple[str, str, str, int, int, int]] = []
    number = 0
    for manifest in manifests:
        run = str(manifest["id"])
        files = [file for file, runs in runs_of.items() if run in runs]
        if not files:
            continue
        mine = [one for file in files for one in by_file.get(file, [])]
        groups = _of_run(manifest, mine, shared={file for file in files if len(runs_of[file]) > 1})
        account["runs_without_connection"] += not groups
        for group in groups:
            carried = np.sum([one.carried for one in group], axis=0)
            way = int(np.argmax(carried))
            for one in group:
                for flow in one.flows:
                    path = known[one.file] or _path_of(manifest, str(subflows["opener_address"][flow]))
                    if path is None:
                        account["subflows_without_path"] += 1
                        continue
                    rows.append((run, str(manifest["kind"]), path, flow, number, way))
            number += 1
    account["captures"] = len(known)
    account["runs"] = len({row[0] for row in rows})
    return _made(rows, connections["files"], subflows, totals, start_utc_ns, methods, dict(account))


def _captures(
    manifests: Sequence[Mapping[str, Any]], captures: Iterable[Capture], files: Sequence[str], account: Counter[str]
) -> tuple[dict[int, str | None], dict[int, set[str]]]:
    """Path and runs of each capture by its number; of captures that lie at two places the first counts."""
    listed = {capture_name(capture.file): capture for capture in captures}
    runs: dict[str, set[str]] = {capture_name(c.file): {c.run} for c in listed.values() if c.run is not None}
    for manifest in manifests:
        for entry in mappings(dict(manifest), "files"):
            if (name := text(entry, "name")) is not None:
                runs.setdefault(capture_name(name), set()).add(str(manifest["id"]))
    probes = {text(manifest, "probe") for manifest in manifests}
    known: dict[int, str | None] = {}
    runs_of: dict[int, set[str]] = {}
    seen: set[str] = set()
    for number in sorted(range(len(files)), key=lambda n: files[n]):
        name = capture_name(files[number])
        if None not in probes and probe_of(files[number]) not in (None, *probes):
            continue  # another probe's
        if f"/{SERVER_CAPTURES}" in files[number]:
            continue  # the same packets at the other end, by another clock
        if name not in listed or name not in runs:
            account["captures_of_no_run"] += 1
        elif name in seen:
            account["captures_twice"] += 1
        else:
            seen.add(name)
            known[number], runs_of[number] = listed[name].path, runs[name]
    return known, runs_of


def _connections(connections: Columns, subflows: Columns, totals: Columns) -> dict[tuple[int, int], _Connection]:
    # Every table is read with its own numbers of files; the names are the same.
    number = {name: n for n, name in enumerate(connections["files"])}
    found = {}
    for n in range(len(connections["file"])):
        key = int(connections["file"][n]), int(connections["connection"][n])
        plain = not connections["multipath"][n] or bool(connections["fallback"][n])
        found[key] = _Connection(
            key[0],
            not plain,
            int(connections["responder_port"][n]),
            float(connections["opener_token"][n]),
            float(connections["responder_token"][n]),
            [0.0, 0.0],
            [],
        )
    for n, file in enumerate(subflows["file"]):
        found[number[subflows["files"][file]], int(subflows["connection"][n])].flows.append(n)
    for n in np.flatnonzero(np.isnan(totals["subflow"])).tolist():
        key = number[totals["files"][totals["file"][n]]], int(totals["connection"][n])
        found[key].carried[int(totals["direction"][n])] = float(totals["goodput_bytes"][n])
    return found


def _of_run(manifest: Mapping[str, Any], mine: Sequence[_Connection], shared: set[int]) -> list[list[_Connection]]:
    """The run's connections, each with its parts in several captures."""
    result = mapping(dict(manifest), "result")
    if manifest["kind"] == "any":
        port = _measurement_port(manifest)
        own = [one for one in mine if one.port == port and one.file not in shared]
        groups: dict[float, list[_Connection]] = {}
        for n, one in enumerate(own):
            token = one.responder_token if one.multipath and one.responder_token >= 0 else -1.0 - n
            groups.setdefault(token, []).append(one)
        return list(groups.values())
    if manifest["kind"] == "mptcp" and not flag(result, "fallback"):
        return _by_token(manifest, mine)
    least = whole(result, "bytes") or 0
    able = [one for one in mine if not one.multipath and max(one.carried) >= least > 0]
    return [able] if len(able) == 1 else []


def _by_token(manifest: Mapping[str, Any], mine: Sequence[_Connection]) -> list[list[_Connection]]:
    if (token := token_of(manifest)) is None:
        return []
    remote = {one.responder_token for one in mine if one.opener_token == token and one.responder_token >= 0}
    group = [one for one in mine if one.opener_token == token or one.responder_token in remote]
    return [group] if group else []


def _measurement_port(manifest: Mapping[str, Any]) -> int | None:
    server = mapping(mapping(dict(manifest), "parameters"), "server")
    try:
        return urlsplit(text(server, "measurement") or "").port
    except ValueError:
        return None


def _path_of(manifest: Mapping[str, Any], address: str) -> str | None:
    told = mapping(mapping(dict(manifest), "environment"), "path_addresses")
    paths = {path for path, one in told.items() if one == address}
    paths |= {
        name
        for one in mappings(mapping(dict(manifest), "parameters"), "paths")
        if text(one, "address") == address and (name := text(one, "name")) is not None
    }
    return paths.pop() if len(paths) == 1 else None


def _made(
    rows: Sequence[tuple[str, str, str, int, int, int]],
    files: Sequence[str],
    subflows: Columns,
    totals: Columns,
    start_utc_ns: int,
    methods: Sequence[str],
    account: dict[str, int],
) -> Matched:
    number = {name: n for n, name in enumerate(files)}
    of_flow = np.array([row[3] for row in rows], dtype=np.int64)
    way = np.array([row[5] for row in rows], dtype=np.int64)
    file = np.array([number[subflows["files"][n]] for n in subflows["file"][of_flow]], dtype=np.int64)
    method = {
        (totals["files"][f], int(s), int(d)): int(m)
        for f, s, d, m in zip(totals["file"], totals["subflow"], totals["direction"], totals["rtt_method"], strict=True)
        if s >= 0 and m >= 0
    }
    told = [
        method.get((subflows["files"][subflows["file"][n]], int(subflows["subflow"][n]), int(d)))
        for n, d in zip(of_flow, way, strict=True)
    ]
    flows = Flows(
        [row[0] for row in rows],
        [row[1] for row in rows],
        [row[2] for row in rows],
        [capture_name(files[n]) for n in file],
        np.asarray(subflows["subflow"])[of_flow].astype(np.int64),
        np.array([row[4] for row in rows], dtype=np.int64),
        np.asarray(subflows["start_utc_ns"])[of_flow].astype(np.int64) - start_utc_ns,
        np.asarray(subflows["end_utc_ns"])[of_flow].astype(np.int64) - start_utc_ns,
        np.asarray(subflows["handshake_rtt_ns"], dtype=np.float64)[of_flow] / 1e6,
        [None if code is None else methods[code] for code in told],
    )
    return Matched(flows, file, way, account)
