"""One measurement of each kind, as the papers' figures take them: from a run's manifest. Wrong types read as absent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tandem_server.analysis.reading import mapping, mappings, number, text, whole
from tandem_server.analysis.tables.facts import Facts, Side, load_shares, round_share, shares, summed
from tandem_server.analysis.tables.views import segment_s


@dataclass(frozen=True, slots=True)
class Setting:
    """Under what a run was made. ``shape``: by path what its link was shaped to; ``roles``: by role the path; ``mobility``: one of
    ``mobility_class.CLASSES``; times in s since the campaign's start. ``operators``: by path, of the kit that made it. ``scheduler``: the
    server's, in its kernel's words; "": not told."""

    run: str
    campaign: str
    step: str
    label: str
    roles: Mapping[str, str]
    shape: Mapping[str, Mapping[str, Any]]
    paths: tuple[str, ...]
    mobility: str | None
    start_s: float | None
    end_s: float | None
    operators: Mapping[str, str] = field(default_factory=dict)
    scheduler: str = ""

    def operator(self, path: str) -> str:
        """The name under which a path goes in every figure."""
        return self.operators.get(path, path)

    def in_order(self) -> tuple[str, str] | None:
        """Path 1 and path 2: by the roles of these names, else the first two by name; None of one path."""
        named = self.roles.get("path1"), self.roles.get("path2")
        if named[0] is not None and named[1] is not None:
            return named[0], named[1]
        known = sorted({*self.paths, *self.roles.values(), *self.shape})
        return (known[0], known[1]) if len(known) > 1 else None

    def rtt_gap_ms(self) -> float | None:
        """By how much path 2 was made slower than path 1; 0 of unshaped ones."""
        return self._gap("rtt_ms")

    def loss_gap_percent(self) -> float | None:
        """How much more of what comes is lost on path 2 than on path 1."""
        return self._gap("down_loss_percent")

    def _gap(self, key: str) -> float | None:
        places = self.in_order()
        if places is None:
            return None
        first, second = (number(mapping(dict(self.shape), path), key) or 0.0 for path in places)
        return second - first

    @property
    def compared(self) -> int:
        """How many paths a round compares."""
        return max(2, len(self.paths))

    def shaped_ratio(self) -> float | None:
        """Of the fastest to the slowest rate that the paths were shaped to."""
        rates = [
            rate
            for told in self.shape.values()
            if (
                rate := number(told, "up_bit_per_s") or number(told, "down_bit_per_s") or number(told, "rate_bit_per_s")
            )
        ]
        return max(rates) / min(rates) if len(rates) > 1 else None


@dataclass(frozen=True, slots=True)
class Download:
    """A ``download``. By path: ``shares`` of the bytes (``shares_side``), ``rtt_ms`` medians, ``rtt_min_ms`` (the sender's),
    ``handshake_ms``, ``loss`` (bytes sent again over all sent, 0 to 1). ``join_ms``: from the first subflow's handshake to when that path's
    was there. ``held``: the request waited for them. None and absent paths: not known."""

    of: Setting
    pair: str
    pairing: str
    kind: str
    primary: str
    controller: str
    asked_bytes: int | None
    subflows: int | None
    goodput_bit_per_s: float | None
    duration_s: float | None
    connect_ms: float | None
    shares: Mapping[str, float]
    rtt_ms: Mapping[str, float]
    rtt_min_ms: Mapping[str, float]
    handshake_ms: Mapping[str, float]
    loss: Mapping[str, float]
    shares_side: Side = "receiver"
    join_ms: Mapping[str, float] = field(default_factory=dict)
    held: bool = False

    def rtt(self) -> float | None:
        """One for the run: its paths' medians, weighted by what each carried."""
        return self._weighted(self.rtt_ms)

    def queueing_ms(self) -> float | None:
        """By how much the median is above the least round-trip time (Mohan §4.2), weighted alike."""
        return self._weighted({p: v - self.rtt_min_ms[p] for p, v in self.rtt_ms.items() if p in self.rtt_min_ms})

    def _weighted(self, by_path: Mapping[str, float]) -> float | None:
        weights = {path: max(self.shares.get(path, 0.0), 1e-9) for path in by_path}
        return sum(by_path[p] * w for p, w in weights.items()) / sum(weights.values()) if weights else None


@dataclass(frozen=True, slots=True)
class Play:
    """A run of ``dash``. ``ladder``: bitrate by height, as far as played. ``came``: after each segment the time in s since the manifest was
    asked for, and the bytes that had come."""

    of: Setting
    kind: str
    segment_s: int | None
    goodput_bit_per_s: float | None
    switches_per_minute: float | None
    ladder: Mapping[int, float]
    came: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Load:
    """One load of a page. ``time_ms``: of a browser the page load time, of the object graph the object load time (``by``)."""

    of: Setting
    kind: str
    primary: str
    page: str
    by: str
    time_ms: float
    shares: Mapping[str, float]
    shares_side: Side = "receiver"


@dataclass(frozen=True, slots=True)
class BandwidthRound:
    """One MPTCP step of a round of ``bandwidth`` with the round's C_i (by path). ``ratio``: as measured."""

    of: Setting
    mode: str
    controller: str
    ratio: float | None
    tdi: float | None
    alone_bit_per_s: Mapping[str, float]
    goodput_bit_per_s: float | None
    benefit: float | None


@dataclass(frozen=True, slots=True)
class DelayRound:
    """One MPTCP step of a round of ``delay``. Connecting times in ms."""

    of: Setting
    bytes: int
    delay_s: float | None
    benefit: float | None
    most_loaded_share: float | None
    connect_ms: float | None
    fastest_connect_ms: float | None
    shares_side: Side = "receiver"


def download(of: Setting, run: Facts) -> Download | None:
    """None of a run without a result."""
    if not run.result:
        return None
    flows = mappings(run.result, "subflows")
    by_path, side = shares(run.result)
    sender = [s for c in mappings(mapping(run.result, "sender"), "connections") for s in mappings(c, "subflows")]
    return Download(
        of,
        run.pair,
        run.pairing,
        run.kind,
        run.path or (of.paths[0] if of.paths else ""),
        text(run.parameters, "congestion_control") or "",
        whole(run.parameters, "bytes"),
        whole(run.parameters, "subflows"),
        number(run.result, "goodput_bit_per_s"),
        number(run.result, "duration_s"),
        number(run.result, "connect_ms"),
        by_path,
        _first(flows, "rtt_ms_median"),
        _first(sender, "rtt_ms_min"),
        _first(flows, "handshake_rtt_ms"),
        _loss(flows),
        side,
        _first(flows, "join_delay_ms"),
        number(run.result, "held_ms") is not None,
    )


def shares_from(measured: Iterable[Download | Load | DelayRound]) -> str:
    """Whose the shares are, for a figure's note; of rounds, where the probe may be the sender."""
    of: Counter[tuple[str, str]] = Counter()
    for one in measured:
        if isinstance(one, DelayRound):
            if one.most_loaded_share is not None:
                of["transfers", one.shares_side] += 1
        elif one.shares:
            of["downloads" if isinstance(one, Download) else "loads", one.shares_side] += 1
    whose = {"sender": "the sender’s captures (sent)", "receiver": "the probe’s counters (received)"}
    whose |= {"acknowledged": "the probe’s counters (acknowledged)"}
    told = [f"{words}, {what}: {n}" for side, words in whose.items() for (what, mine), n in of.items() if mine == side]
    return "Shares: " + ", ".join(told) + "."


def play(of: Setting, run: Facts) -> Play | None:
    """None of a run without a result."""
    if not run.result:
        return None
    ladder = {
        height: rate
        for row in run.listed("segments")
        if (height := whole(row, "height")) is not None and (rate := number(row, "bitrate_bit_per_s")) is not None
    }
    came, total = [], 0
    for row in run.listed("segments"):
        asked, lasted, size = number(row, "requested_s"), number(row, "duration_ms"), whole(row, "bytes")
        if asked is not None and lasted is not None and size is not None:
            total += size
            came.append((asked + lasted / 1e3, float(total)))
    return Play(
        of,
        run.kind,
        segment_s(run),
        number(run.result, "goodput_bit_per_s"),
        number(run.result, "switches_per_minute"),
        ladder,
        came,
    )


def loads(of: Setting, run: Facts) -> Iterator[Load]:
    """Those that came to their end."""
    for row in run.listed("loads"):
        by = text(row, "by") or "browser"
        took = number(row, "page_load_time_ms" if by == "browser" else "object_load_time_ms")
        if took is not None and text(row, "failure") is None:
            yield Load(of, run.kind, run.path, text(row, "page") or "", by, took, *load_shares(run.result, row))


def bandwidth_rounds(of: Setting, run: Facts) -> Iterator[BandwidthRound]:
    """One for each primary path and round."""
    for row in run.listed("rounds"):
        alone = mapping(row, "c_i_bit_per_s")
        for benefit in mappings(row, "benefits"):
            yield BandwidthRound(
                of,
                text(run.result, "mode") or "",
                text(run.parameters, "congestion_control") or "",
                number(row, "bandwidth_ratio"),
                number(row, "tdi"),
                {path: value for path in alone if (value := number(alone, path)) is not None},
                number(benefit, "goodput_bit_per_s"),
                number(benefit, "benefit"),
            )


def delay_rounds(of: Setting, run: Facts) -> Iterator[DelayRound]:
    """One for each primary path and round that tells its size."""
    for row in run.listed("rounds"):
        size = whole(row, "bytes")
        if size is None or size <= 0:
            continue
        connected = {text(t, "name") or "": number(t, "connect_ms") for t in mappings(row, "transfers")}
        alone = [ms for name, ms in connected.items() if name.startswith("tcp ") and ms is not None]
        for benefit in mappings(row, "benefits"):
            share, side = round_share(run.result, benefit)
            yield DelayRound(
                of,
                size,
                number(benefit, "delay_s"),
                number(benefit, "benefit"),
                share,
                connected.get(f"mptcp {text(benefit, 'primary') or ''}"),
                min(alone, default=None),
                side,
            )


def _first(flows: list[dict[str, Any]], key: str) -> dict[str, float]:
    """Of each path's first subflow that tells it."""
    out: dict[str, float] = {}
    for row in flows:
        path, value = text(row, "path"), number(row, key)
        if path is not None and value is not None:
            out.setdefault(path, value)
    return out


def _loss(flows: list[dict[str, Any]]) -> dict[str, float]:
    """Sent again over all sent; negative counts are none."""
    carried, again = summed(flows, "bytes"), summed(flows, "bytes_retrans")
    sent = {path: carried.get(path, 0.0) + count for path, count in again.items()}
    return {path: again[path] / every for path, every in sent.items() if every > 0 and again[path] >= 0}
