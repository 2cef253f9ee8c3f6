"""Captures joined to runs, radio and events, once for everything that is made of them: where ``tandem-server analyse DIR/probe --out
DIR/traces`` was run. Which captured connection is a run's is told by what both sides wrote down, never by likeness:

- A Multipath TCP run's manifest has its connection's token at the probe: the capture with the first handshake shows the key that it is made
  of. The other end's token then names the connection in the captures of the other paths, whose joins carry it.
- A TCP run's is the only plain one in its captures that carried as many bytes as the run received; of several that which is from the
  port that the server saw to the server's.
- Other experiments' connections are those to the measurement server's port, in captures that no other run shares.
- What fits none or more than one, or what two runs could claim, is left out and said.

A subflow's path is its capture's; in a capture of several paths, the one whose address the manifest says the subflow's was.
"""

from __future__ import annotations

import importlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from tandem.schema.trace import SERVER_CAPTURES
from tandem_server.analysis.estimates import Histogram, histogram, pooled
from tandem_server.analysis.folder import TRACES, CampaignFolder, Capture, capture_name, known_as, parts_of, probe_of
from tandem_server.analysis.material import Bins
from tandem_server.analysis.radio_packets import Binned, Flow, Joined, RadioEvent, joined
from tandem_server.analysis.reading import flag, mapping, mappings, text, whole
from tandem_server.analysis.recorded import SubflowSeries
from tandem_server.analysis.series import summed
from tandem_server.analysis.traces import manifest

if TYPE_CHECKING:  # which takes its shares of bytes from here
    from tandem_server.analysis.evaluate import Evaluation

KINDS = ("signal_drop", "handover")
WAYS = ("from_opener", "to_opener")
ALONE = "each of its captures was read by itself; hint: tandem-server analyse DIR/probe --out DIR/traces"
CUT = {"cut_file", "bad_record", "bad_compression"}
"""Problems of a capture that leave a part of it out."""
_CONNECTION = ("connection", "multipath", "fallback", "opener_port", "responder_address", "responder_port")
_TOKENS = ("opener_token", "responder_token")
_SUBFLOW = ("subflow", "connection", "opener_address", "opener_port", "start_utc_ns", "end_utc_ns", "handshake_rtt_ns")
_RTTS, _WAITS = ("subflow", "rtt_ms", "samples"), ("connection", "wait_ms", "packets")
_TOTAL = ("connection", "subflow", "direction", "goodput_bytes", "payload_bytes", "unseen_bytes", "rtt_method")

Row = Mapping[str, Any]
Array = NDArray[np.float64]
Delays = Mapping[tuple[str, int, str], Histogram]
"""By file, connection or subflow, and direction."""


@dataclass(frozen=True, slots=True)
class Connection:
    """In one capture. ``multipath``: and it did not fall back. ``carried``: bytes in either of ``WAYS``, those that the capture missed
    too. ``subflows``: their rows, with ``rtt_method`` by way, and ``sent``: by way the payload, every copy, and what the capture missed."""

    file: str
    number: int
    multipath: bool
    opener_port: int
    responder: tuple[str, int]
    tokens: tuple[int | None, int | None]
    carried: tuple[int, int]
    subflows: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """One connection of a run, as its captures of several paths show it. ``way``: of its data, place in ``WAYS``."""

    run: str
    kind: str
    parts: Sequence[Connection]

    @property
    def carried(self) -> list[int]:
        """By way."""
        return [sum(one.carried[way] for one in self.parts) for way in range(len(WAYS))]

    @property
    def way(self) -> int:
        """That which carried more."""
        return int(np.argmax(self.carried))


@dataclass(slots=True)
class Matched:
    """``path_of``: each capture's path by its file, None of all. ``account``: what was found and what not, in numbers; ``whys``: why a run
    is not joined to its packets."""

    matches: list[Match]
    path_of: dict[str, str | None]
    account: dict[str, int]
    whys: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Packets:
    """What the figures take of one kit's captures. ``joined``: radio events with their effects. ``series``: by run each subflow's bins as
    series, in order of path. ``bins``: bytes in flight and the data-level queue."""

    joined: Joined
    series: Mapping[str, Sequence[SubflowSeries]]
    bins: Sequence[Bins] = ()


def of_campaign(e: Evaluation) -> Packets | None:
    """None where no captures were analysed; what could not be joined is in the folder's ``remarks``. ImportError: the native pass is
    lacking; ManifestError."""
    campaign, place = e.campaign, e.campaign.folder / TRACES
    every = manifest.read(place)
    own = {None, campaign.probe}
    parts = {name: part for name, part in sorted(every.items()) if any(probe_of(one.file) in own for one in part.files)}
    if not parts:
        return None
    width = next(iter(every.values())).bin_ns
    found, flows, binned, queues = read(
        place, list(parts), width, campaign.manifests, campaign.captures, e.clock.start_utc_ns
    )
    bounded = {
        row["file"]: ", ".join(row["bounded"])
        for row in _tables().read(place, "files", list(parts), ("bounded",)).to_pylist()
        if row["bounded"]
    }
    lacks = {m.run: ALONE for m in found.matches if m.kind == "mptcp" and len(m.parts) > 1} | {
        m.run: f"its captures are too much for one reading ({limits})"
        for m in found.matches
        for one in m.parts
        if one.multipath and (limits := bounded.get(one.file))
    }
    queues = [one for one in queues if one.run not in lacks]
    campaign.remarks += _reasons("not joined to its packets", found.whys) + _reasons("no data-level queue", lacks)
    made = joined(_radio(e), flows, binned, campaign.probe)
    made.account |= found.account
    rtts = _delays(place, list(parts), "rtts", *_RTTS)
    return Packets(made, _series(e, flows, binned), [*_in_flight(found, flows, binned, rtts), *queues])


def _tables() -> Any:  # noqa: ANN401  (a module)
    """Loaded by what reads captures: the native pass and pyarrow need not be there."""
    return importlib.import_module("tandem_server.analysis.traces.tables")


def cut_captures(campaign: CampaignFolder) -> list[str]:
    """Those of the probe's analysed captures of which a part could not be read, by name: cut in the middle of a packet, or damaged; of
    captures that were read as one all, for it is one of them. Tables have what was read. ImportError, ManifestError."""
    place = campaign.folder / TRACES
    if not (parts := sorted(manifest.read(place))):
        return []
    tables = _tables()
    known = {capture_name(one.file) for one in campaign.captures}
    files = {row["file"] for row in tables.read(place, "problems", parts, ("kind",)).to_pylist() if row["kind"] in CUT}
    own = [file for file in files if probe_of(file) in (None, campaign.probe)]
    return sorted({name for file in own for name in parts_of(capture_name(file)) if name in known})


def _reasons(what: str, whys: Mapping[str, str]) -> list[str]:
    """A line for each reason."""
    runs: dict[str, list[str]] = defaultdict(list)
    for run, why in whys.items():
        runs[why].append(run)
    return [
        f"{of[0]}{f' and {len(of) - 1} more runs' if len(of) > 1 else ''}: {what}: {why}" for why, of in runs.items()
    ]


def _radio(e: Evaluation) -> list[RadioEvent]:
    """The modems' events, in order of time."""
    return [
        RadioEvent(round(one.t_s * 1e9), one.path, one.kind, np.nan if one.change_db is None else one.change_db)
        for one in e.recorded.events
        if one.kind in KINDS and one.path is not None and not one.recovering
    ]


def read(
    place: Path,
    parts: Sequence[str],
    width: int,
    manifests: Sequence[Mapping[str, Any]],
    captures: Iterable[Capture],
    start_utc_ns: int,
) -> tuple[Matched, list[Flow], Binned, list[Bins]]:
    """The connections of these runs in the captures of ``parts``, their subflows and these' bins, ``width`` ns each, times since
    ``start_utc_ns``; and the data-level queues of captures of all paths."""
    tables = _tables()
    found = matched(manifests, captures, connections_in(place, parts))
    flows = _flows(found, manifests, start_utc_ns)
    keys = [(flow.file, flow.subflow, WAYS[flow.way]) for flow in flows]
    flows_in: dict[str, list[int]] = defaultdict(list)
    queues_in: dict[str, list[tuple[int, str, Connection, str]]] = defaultdict(list)
    for n, (file, *_) in enumerate(keys):
        flows_in[file].append(n)
    for turn, (run, one, way) in enumerate(_of_all_paths(found)):
        queues_in[one.file].append((turn, run, one, way))
    pieces: list[Any] = []
    queues: list[Bins] = []
    for name in parts:  # of a fleet's months there are thousands
        rows = tables.read(place, "bins", [name], tables.BIN)
        files = tables.files_in(rows)
        own = [n for file in files for n in flows_in[file]]
        if own or not pieces:
            pieces.append(tables.bins_of(rows, [(*keys[n], n) for n in own], start_utc_ns, width))
        whole_ones = sorted((queue for file in files for queue in queues_in[file]), key=lambda queue: queue[0])
        waits = _delays(place, [name], "waits", *_WAITS) if whole_ones else {}
        for _, run, one, way in whole_ones:
            at, held = tables.queue_of(rows, one.file, one.number, way)
            if len(at):
                waited = waits.get((one.file, one.number, way))
                queues.append(Bins(run, None, (at - start_utc_ns) / 1e9, np.full(len(at), np.nan), held, waits=waited))
    return found, flows, Binned(width, -start_utc_ns % width, **tables.in_order(pieces)), queues


def connections_in(place: Path, parts: Sequence[str]) -> list[Connection]:
    """Of these parts' captures, in order of their names."""
    tables = _tables()
    carried: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    method: dict[tuple[str, int], dict[int, str]] = defaultdict(dict)
    sent: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(lambda: [(0, 0), (0, 0)])
    for row in tables.read(place, "totals", parts, _TOTAL).to_pylist():
        way = WAYS.index(row["direction"])
        if row["subflow"] is None:
            carried[row["file"], row["connection"]][way] = row["goodput_bytes"] + row["unseen_bytes"]
            continue
        sent[row["file"], row["subflow"]][way] = row["payload_bytes"], row["unseen_bytes"]
        if row["rtt_method"] is not None:
            method[row["file"], row["subflow"]][way] = row["rtt_method"]
    subflows: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in tables.read(place, "subflows", parts, _SUBFLOW).to_pylist():
        row |= {"rtt_method": method[row["file"], row["subflow"]], "sent": sent[row["file"], row["subflow"]]}
        subflows[row["file"], row["connection"]].append(row)
    made = [
        Connection(
            row["file"],
            row["connection"],
            row["multipath"] and not row["fallback"],
            row["opener_port"],
            (row["responder_address"], row["responder_port"]),
            (row["opener_token"], row["responder_token"]),
            (carried[key][0], carried[key][1]),
            subflows[key],
        )
        for row in tables.read(place, "connections", parts, (*_CONNECTION, *_TOKENS)).to_pylist()
        if (key := (row["file"], row["connection"]))
    ]
    return sorted(made, key=lambda one: one.file)


# --- which connection is whose ---------------------------------------------------------------------------------------


def matched(
    manifests: Sequence[Mapping[str, Any]], captures: Iterable[Capture], connections: Iterable[Connection]
) -> Matched:
    """Each run's connections. ``account`` counts ``captures``, ``runs``, and what was left out."""
    by_file: dict[str, list[Connection]] = defaultdict(list)
    for one in connections:
        by_file[one.file].append(one)
    account: Counter[str] = Counter()
    path_of, runs_of = _captures(manifests, captures, sorted(by_file), account)
    of_run: dict[str, list[str]] = defaultdict(list)
    for file, runs in runs_of.items():
        for run in runs:
            of_run[run].append(file)
    found: list[Match] = []
    whys: dict[str, str] = {}
    for told in manifests:
        run = str(told["id"])
        if not (files := of_run.get(run)):
            continue
        mine = [one for file in files for one in by_file[file]]
        groups, why = _of_run(told, mine, {file for file in files if len(runs_of[file]) > 1})
        account["runs_without_connection"] += not groups
        whys |= {} if groups else {run: why}
        found += [Match(run, str(told["kind"]), group) for group in groups]
    claims = Counter((one.file, one.number) for match in found for one in match.parts)
    for match in [m for m in found if any(claims[one.file, one.number] > 1 for one in m.parts)]:
        whys[match.run] = "another run could be meant as well"
        account["runs_without_connection"] += 1
        found.remove(match)
    addresses = {str(m["id"]): path_addresses(m) for m in manifests}
    paths = [
        path_of[one.file] or addresses[match.run].get(flow["opener_address"])
        for match in found
        for one in match.parts
        for flow in one.subflows
    ]
    if unknown := paths.count(None):
        account["subflows_without_path"] = unknown
    account["captures"] = len(path_of)
    account["runs"] = len({match.run for match in found})
    return Matched(found, path_of, dict(account), whys)


def _captures(
    manifests: Sequence[Mapping[str, Any]], captures: Iterable[Capture], files: Sequence[str], account: Counter[str]
) -> tuple[dict[str, str | None], dict[str, set[str]]]:
    """Path and runs of each capture by its file, each capture once: where it was read with most others, of two such places the first."""
    listed = {capture_name(one.file): one for one in captures}
    runs: dict[str, set[str]] = {capture_name(c.file): {c.run} for c in listed.values() if c.run is not None}
    pairs: dict[str, set[str]] = defaultdict(set)
    for told in manifests:
        pairs[str(told.get("pair"))].add(str(told["id"]))
        for entry in mappings(dict(told), "files"):
            if (name := text(entry, "name")) is not None:
                runs.setdefault(capture_name(name), set()).add(str(told["id"]))
    for name, one in listed.items():
        if name not in runs and one.pair is not None:
            runs[name] = pairs[one.pair]
    probes = {text(told, "probe") for told in manifests}
    path_of: dict[str, str | None] = {}
    runs_of: dict[str, set[str]] = {}
    seen: set[str] = set()
    for file in sorted(files, key=lambda one: -len(parts_of(capture_name(one)))):
        name = capture_name(file)
        capture = known_as(listed, name)
        own = {run for one in {name, *parts_of(name)} for run in runs.get(one, ())}
        if None not in probes and probe_of(file) not in (None, *probes):
            continue  # another probe's
        if f"/{SERVER_CAPTURES}" in file:
            continue  # the same packets at the other end, by another clock
        if capture is None or not own:
            account["captures_of_no_run"] += 1
        elif not seen.isdisjoint(parts_of(name)):
            account["captures_twice"] += 1
        else:
            seen |= {*parts_of(name)}
            path_of[file], runs_of[file] = capture.path, own
    return path_of, runs_of


def _of_run(
    told: Mapping[str, Any], mine: Sequence[Connection], shared: set[str]
) -> tuple[list[list[Connection]], str]:
    """The run's connections, each with its parts in several captures; without any, why."""
    if told["kind"] == "any":
        port = _measurement_port(told)
        own = [one for one in mine if one.responder[1] == port and one.file not in shared]
        groups: dict[float, list[Connection]] = defaultdict(list)
        for n, one in enumerate(own):
            token = one.tokens[1] if one.multipath else None
            groups[-1.0 - n if token is None else token].append(one)
        return list(groups.values()), "no connection in captures of its own is to the measurement server"
    if told["kind"] == "mptcp" and not flag(mapping(dict(told), "result"), "fallback"):
        found, why = by_token(token_of(told), mine)
        return [found] if found else [], why
    return _plain(told, mine)


def by_token(token: int | None, mine: Sequence[Connection]) -> tuple[list[Connection], str]:
    """The connection that was opened with this token, in each capture that has a part of it; without any, why."""
    if token is None:
        return [], "its manifest holds no token"
    first = [one for one in mine if one.tokens[0] == token]
    if len(first) != 1:
        return [], f"{len(first)} connections in the captures have its token"
    (server,) = {one.tokens[1] for one in first}
    parts = list(first)
    for file in dict.fromkeys(one.file for one in mine if one.file != first[0].file):
        joins = [one for one in mine if one.file == file and one.tokens == (None, server) and server is not None]
        parts += joins if len(joins) == 1 else []
    return sorted(parts, key=lambda one: mine.index(one)), ""


def _plain(told: Mapping[str, Any], mine: Sequence[Connection]) -> tuple[list[list[Connection]], str]:
    result = mapping(dict(told), "result")
    received = whole(result, "bytes") or 0
    able = [one for one in mine if not one.multipath and max(one.carried) >= received > 0]
    if len(able) > 1:
        served = _measurement_port(told)
        addresses = {text(row, "server_address") for row in mappings(result, "subflows")} - {None}
        ports = {
            whole(mapping(row, "remote"), "port")
            for connection in mappings(mapping(result, "sender"), "connections")
            for row in mappings(connection, "subflows")
        }
        able = [
            one
            for one in able
            if one.opener_port in ports and one.responder[1] == served and one.responder[0] in addresses
        ]
        if len(able) != 1:
            return [], f"{len(able)} connections that carried as much are from the port that the server saw"
    return ([able], "") if able else ([], "no TCP connection in its captures carried as much")


def token_of(told: Mapping[str, Any]) -> int | None:
    """The kernel's token of the run's connection, as its manifest has it; None without."""
    return number_of(text(mapping(mapping(dict(told), "environment"), "further"), "connection"))


def number_of(token: str | None) -> int | None:
    """Of a token in hexadecimal digits; None of anything else."""
    try:
        return None if token is None else int(token, 16)
    except ValueError:
        return None


def _measurement_port(told: Mapping[str, Any]) -> int | None:
    server = mapping(mapping(dict(told), "parameters"), "server")
    try:
        return urlsplit(text(server, "measurement") or "").port
    except ValueError:
        return None


def path_addresses(told: Mapping[str, Any]) -> dict[str, str]:
    """By a subflow's own address the path that has it, where it is one path's."""
    known = mapping(mapping(dict(told), "environment"), "path_addresses")
    paths: dict[str, set[str]] = defaultdict(set)
    for path, address in known.items():
        if isinstance(address, str):
            paths[address].add(path)
    for one in mappings(mapping(dict(told), "parameters"), "paths"):
        if (address := text(one, "address")) is not None and (name := text(one, "name")) is not None:
            paths[address].add(name)
    return {address: next(iter(named)) for address, named in paths.items() if len(named) == 1}


# --- what they carried -----------------------------------------------------------------------------------------------


def _flows(found: Matched, manifests: Sequence[Mapping[str, Any]], start_utc_ns: int) -> list[Flow]:
    """Every subflow of the runs' connections; ``path`` "" where it is not known."""
    addresses = {str(m["id"]): path_addresses(m) for m in manifests}
    return [
        Flow(
            match.run,
            match.kind,
            found.path_of[one.file] or addresses[match.run].get(flow["opener_address"]) or "",
            one.file,
            flow["subflow"],
            number,
            flow["start_utc_ns"] - start_utc_ns,
            flow["end_utc_ns"] - start_utc_ns,
            np.nan if flow["handshake_rtt_ns"] is None else flow["handshake_rtt_ns"] / 1e6,
            flow["rtt_method"].get(match.way),
            match.way,
        )
        for number, match in enumerate(found.matches)
        for one in match.parts
        for flow in one.subflows
    ]


def _series(e: Evaluation, flows: Sequence[Flow], binned: Binned) -> dict[str, list[SubflowSeries]]:
    made: dict[str, list[SubflowSeries]] = {}
    middle = (binned.place * binned.width_ns + binned.offset_ns + binned.width_ns // 2) / 1e9
    rate = binned.goodput_bytes * (8e9 / binned.width_ns)
    for n, flow in sorted(enumerate(flows), key=lambda one: one[1].path):
        if not flow.path:
            continue
        rows, name = binned.of(n), f"{capture_name(flow.file)} {flow.subflow}"
        values = middle[rows], rate[rows], binned.rtt_mean_ms[rows]
        operator = e.campaign.operators.get(flow.path)
        made.setdefault(flow.run, []).append(SubflowSeries(flow.run, name, "capture", flow.path, operator, *values))
    return made


def main_match(matches: Sequence[Match]) -> dict[str, int]:
    """By run the place of its connection; of several that which carried most."""
    best: dict[str, int] = {}
    for n, match in enumerate(matches):
        if match.run not in best or max(match.carried) > max(matches[best[match.run]].carried):
            best[match.run] = n
    return best


def _in_flight(found: Matched, flows: Sequence[Flow], binned: Binned, rtts: Delays) -> list[Bins]:
    """Of each run, capture and path, its subflows together: between its first and its last bin as much is in flight of a subflow as was
    before, where a bin had no packet."""
    made = []
    start_s = (binned.place * binned.width_ns + binned.offset_ns) / 1e9
    for run, number in sorted(main_match(found.matches).items()):
        own: dict[tuple[str, str], list[int]] = defaultdict(list)
        for n, flow in enumerate(flows):
            if flow.connection == number:
                own[flow.file, flow.path].append(n)
        for (file, path), mine in own.items():
            parts = [(start_s[binned.of(n)], binned.in_flight_bytes[binned.of(n)]) for n in mine]
            times, total = summed(parts)
            if not len(times):  # where it was captured, nobody knows what is in flight
                times = np.unique(np.concatenate([at for at, _ in parts]))
                total = np.full(len(times), np.nan)
            if len(times):
                way = WAYS[found.matches[number].way]
                told = [one for n in mine if (one := rtts.get((file, flows[n].subflow, way))) is not None]
                absent = np.full(len(times), np.nan)
                made.append(Bins(run, path, times, total, absent, rtts=pooled(told) if told else None))
    return made


def _of_all_paths(found: Matched) -> Iterator[tuple[str, Connection, str]]:
    """Runs whose data-level queue is known, in captures of all paths: in one of some, what came over the others would count as missing.
    None of TCP where such a capture is several that were read as one: a run by TCP has no data level, whatever was captured beside it."""
    for run, n in sorted(main_match(found.matches).items()):
        for one in found.matches[n].parts:
            if found.path_of[one.file] is None and (one.multipath or len(parts_of(capture_name(one.file))) < 2):
                yield run, one, WAYS[found.matches[n].way]


def _delays(place: Path, parts: Sequence[str], table: str, of: str, ms: str, counts: str) -> Delays:
    """Nothing where an older analysis made no such table."""
    tables = _tables()
    found = tables.counted(tables.read(place, table, parts, (of, "direction", ms, counts)), of, ms, counts)
    return {key: histogram(*columns) for key, columns in found.items()}
