"""Chen et al.: A Measurement-based Study of MultiPath TCP Performance over Wireless Networks (IMC 2013), §4 and §5."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tandem_server.analysis import estimates
from tandem_server.analysis.estimates import Histogram, pooled
from tandem_server.analysis.material import Bins, Material, place
from tandem_server.analysis.measured import Download, shares_from
from tandem_server.report import words
from tandem_server.report.figures import grouping
from tandem_server.report.figures.figure import DOWNLOADS, LackingError, Need, figures
from tandem_server.report.figures.marks import Line, Mark, Row, numbers_of
from tandem_server.report.figures.sheet import OTHERS, Axis, Panel, Sheet, binary_size, operator_hues

SMALL, LARGE, BACKLOG = (1, 4 << 20), (4 << 20, 32 << 20), (256 << 20, 1 << 40)
"""Sizes of figures 4 to 7, 9 and 10, and 11."""
HOTSPOT = "hotspot"
"""In the name of a campaign at a public hot spot: figures 6 and 7 and table 4, and no others."""
PATHS = Need(
    "downloads with a cellular path (roles wifi and cellular)",
    lambda m: [d for d in m.downloads if "cellular" in d.of.roles],
)


def _arm(d: Download) -> str:
    """As the paper names it: SP for single path, MP-2 and MP-4 by subflows."""
    if d.kind == "tcp":
        return f"SP {place(d.primary, d.of.roles, d.of.operators)}"
    name = f"MP-{d.subflows}" if d.subflows is not None else "MP"
    return f"{name} ({grouping.controller(d.controller)})" if d.controller else name


def _mine(m: Material, sizes: tuple[int, int], *, hot: bool = False) -> list[Download]:
    found = [
        d for d in m.downloads if "cellular" in d.of.roles and d.asked_bytes is not None and d.duration_s is not None
    ]
    found = [d for d in found if sizes[0] <= (d.asked_bytes or 0) <= sizes[1] and (HOTSPOT in d.of.campaign) is hot]
    if not found:
        span = (
            f"{binary_size(sizes[0])} and more"
            if sizes == BACKLOG
            else f"{binary_size(sizes[0])} to {binary_size(sizes[1])}"
        )
        where = f"a hot spot (a campaign with “{HOTSPOT}” in its name)" if hot else "Wi-Fi"
        raise LackingError(f"downloads of {span} over {where} and cellular")
    return sorted(found, key=lambda d: (d.kind != "tcp", d.subflows or 0, d.controller, d.primary))


def _hues(m: Material) -> dict[str, str]:
    """Each arm's colour, the same in every figure."""
    every = [d for d in m.downloads if "cellular" in d.of.roles]
    arms = sorted({_arm(d) for d in every if d.kind == "mptcp"})
    single = dict(zip(("SP Wi-Fi", "SP cellular"), OTHERS, strict=False))
    return single | {arm: OTHERS[2 + n % (len(OTHERS) - 2)] for n, arm in enumerate(arms)}


def _by_size(
    m: Material,
    mine: Sequence[Download],
    value: Callable[[Download], float | None],
    marks: Callable[[list[grouping.Triple]], Sequence[Mark]],
    y: Axis,
    note: str,
) -> Sheet:
    there = sorted({d.asked_bytes or 0 for d in mine})
    values: list[grouping.Triple] = [(_arm(d), there.index(d.asked_bytes or 0), value(d)) for d in mine]
    across = Axis("size", names=tuple(binary_size(size) for size in there))
    return Sheet([Panel("", marks(values), across, y)], note, _hues(m), wide=True)


def times(sizes: tuple[int, int], *, hot: bool = False) -> Callable[[Material], Sheet]:
    """Figures 4, 6, 9 and 11: download time."""
    note = (
        "SP: TCP over one path; MP-2, MP-4: subflows. Boxes: quartiles; whiskers: deciles; black: 95 % "
        "bootstrap interval of the median."
    )

    def draw(m: Material) -> Sheet:
        mine, y = _mine(m, sizes, hot=hot), Axis("download time, s", log=True)
        return _by_size(m, mine, lambda d: d.duration_s, grouping.boxes, y, note)

    return draw


def cellular(sizes: tuple[int, int], *, hot: bool = False) -> Callable[[Material], Sheet]:
    """Figures 5, 7 and 10: what the cellular path carried."""

    def share(d: Download) -> float | None:
        whole = sum(d.shares.values())
        return d.shares.get(d.of.roles["cellular"], 0.0) / whole if whole > 0 else None

    def draw(m: Material) -> Sheet:
        mine = [d for d in _mine(m, sizes, hot=hot) if d.kind == "mptcp" and d.shares]
        if not mine:
            raise LackingError("downloads by MPTCP over Wi-Fi and cellular that tell what each path carried")
        note = f"Medians over downloads with 95 % bootstrap intervals. 0: the cellular path carried nothing. {shares_from(mine)}"
        return _by_size(m, mine, share, grouping.bars, Axis("share over the cellular path", low=0, high=1), note)

    return draw


def table(kind: str, sizes: tuple[int, int], *, hot: bool = False) -> Callable[[Material], Sheet]:
    """Tables 3 to 5: loss and round-trip time of each path."""

    def draw(m: Material) -> Sheet:
        mine = [d for d in _mine(m, sizes, hot=hot) if d.kind == kind]
        numbers: list[Row] = []
        texts = []
        for size in sorted({d.asked_bytes or 0 for d in mine}):
            row = [binary_size(size)]
            for role in ("wifi", "cellular"):
                runs = [(d, d.of.roles[role]) for d in mine if d.asked_bytes == size and role in d.of.roles]
                found = {
                    "loss_percent": [d.loss[path] * 100 for d, path in runs if path in d.loss],
                    "rtt_ms": [d.rtt_ms[path] for d, path in runs if path in d.rtt_ms],
                }
                for name, digits in (("loss_percent", 2), ("rtt_ms", 1)):
                    e, mean = estimates.median(found[name]), estimates.spread(found[name])
                    row += [grouping.written(e, digits), mean_text(mean, digits)]
                    if e is not None and mean is not None:
                        place: Row = {"size_bytes": size, "path": role, "quantity": name}
                        numbers.append({**place, **numbers_of(e), "mean": mean[0], "se": mean[1]})
                row.append(str(len(found["rtt_ms"]) or len(found["loss_percent"])))
            texts.append(row)
        heads = ["Size"]
        for path in ("Wi-Fi", "Cellular"):
            heads += [f"{path} loss, %", "mean", f"{path} RTT, ms", "mean", "n"]
        note = (
            "Medians over downloads with 95 % bootstrap intervals; means ± standard errors, as in the paper. Loss: bytes sent again "
            "over all sent. RTT: each download’s median, at the sender."
        )
        return grouping.table(
            heads, texts, numbers, note, "downloads whose sender told loss or round-trip time of each path"
        )

    return draw


def mean_text(found: tuple[float, float | None] | None, digits: int) -> str:
    """``estimates.spread``'s as the paper prints it: mean ± standard error."""
    if found is None:
        return words.ABSENT
    error = "" if found[1] is None else f"\u2009±\u2009{words.fixed(found[1], digits)}"
    return f"{words.fixed(found[0], digits)}{error}"


def _never(_: Material) -> Sheet:
    raise LackingError(
        "a kernel that sends the SYNs of all subflows at once: no released one does, the paper patched its own"
    )


_BOTH = (DOWNLOADS, PATHS)


DELAYS = Need(
    "round-trip times or waits of packets in captures (tandem-server analyse)",
    lambda m: [one for one in m.bins if one.rtts is not None or one.waits is not None],
)
MOST_SIZES = 4
"""Panels of a pair of operators; the paper has four sizes."""
TAIL = Axis("share that took longer", log=True, high=1)


def _captured(m: Material) -> list[tuple[Download, Bins]]:
    """Of the downloads by Multipath TCP, in order of the pairs and sizes."""
    runs = {d.of.run: d for d in m.downloads if d.kind == "mptcp" and len(set(d.of.paths)) > 1}
    found = [(runs[one.run], one) for one in m.bins if one.run in runs]
    return sorted(found, key=lambda pair: (_pair(pair[0]), pair[0].asked_bytes or 0))


def _pair(d: Download) -> str:
    """The operators of its paths, and the server's scheduler where that is told."""
    pair = " + ".join(sorted(d.of.operator(path) for path in set(d.of.paths)))
    return f"{pair}, {d.of.scheduler}" if d.of.scheduler else pair


def _size(d: Download) -> str:
    return "timed" if d.asked_bytes is None else binary_size(d.asked_bytes)


def _tails(found: Iterable[tuple[str, Histogram]]) -> list[Line]:
    """A line a series, of all its histograms together."""
    by_series: dict[str, list[Histogram]] = {}
    for series, one in found:
        by_series.setdefault(series, []).append(one)
    lines = []
    for series, every in by_series.items():
        whole = pooled(every)
        # Neither "in order" nor "nobody" has a place on axes of logarithms.
        points = [(ms, share) for ms, share in whole.above() if ms > 0 and share > 0]
        lines.append(Line(series, points, n=whole.n, step=True))
    return [line for line in lines if line.points]


def round_trips(m: Material) -> Sheet:
    """How often a subflow's round trip took longer."""
    known = [(d, one.path, one.rtts) for d, one in _captured(m) if one.path and one.rtts is not None]
    sizes: dict[str, list[str]] = {}
    for d, _, _ in known:
        mine = sizes.setdefault(_pair(d), [])
        mine += [_size(d)] if _size(d) not in mine else []
    panels = [
        Panel(
            f"{pair}, {size}",
            _tails((d.of.operator(path), rtts) for d, path, rtts in known if (_pair(d), _size(d)) == (pair, size)),
            Axis("round-trip time, ms", log=True),
            TAIL,
        )
        for pair, mine in sizes.items()
        for size in mine[-MOST_SIZES:]
    ]
    lacking = "round-trip times in captures of downloads by MPTCP over known paths"
    left = sum(max(0, len(mine) - MOST_SIZES) for mine in sizes.values())
    note = (
        "By the captures at the probe, from its packet to the answer’s timestamp echo, as the sender has it; to the millisecond begun; "
        f"n: samples, all downloads of a size together.{f' Smaller sizes left out: {left}.' if left else ''}"
    )
    return grouping.sheet(panels, lacking, note, operator_hues(m.named()))


def waits(m: Material) -> Sheet:
    """How often a packet waited longer for those before it."""
    known = [(d, one.waits) for d, one in _captured(m) if one.path is None and one.waits is not None]
    pairs = list(dict.fromkeys(_pair(d) for d, _ in known))
    x = Axis("out-of-order delay, ms", log=True)
    panels = [Panel(pair, _tails((_size(d), one) for d, one in known if _pair(d) == pair), x, TAIL) for pair in pairs]
    lacking = "packets that waited, in captures of every path of downloads by MPTCP"
    note = f"{WAITED} n: packets, all downloads of a size together. {unknown_waits(one for _, one in known)}"
    return grouping.sheet(panels, lacking, note)


WAITED = (
    "From a packet’s coming to the coming of all data before its last byte, on any subflow; to the millisecond begun. "
    "Of what came twice the first copy."
)


def unknown_waits(found: Iterable[Histogram]) -> str:
    """Of packets whose wait has no end in the capture."""
    whole = pooled(found)
    return f"Packets that waited longer than was captured: {words.count(int(whole.longer))}; they count as longer than all."


def delays(m: Material) -> Sheet:
    """Means and standard errors, a subflow or connection one value."""
    values: dict[tuple[str, str, str], list[float]] = {}
    for d, one in _captured(m):
        if one.path and one.rtts is not None and (mean := one.rtts.mean_ms()) is not None:
            values.setdefault((_pair(d), _size(d), f"RTT, {d.of.operator(one.path)}, ms"), []).append(mean)
        if one.path is None and one.waits is not None and (mean := one.waits.mean_ms()) is not None:
            values.setdefault((_pair(d), _size(d), "out-of-order delay, ms"), []).append(mean)
            late = one.waits.n - float(one.waits.counts[one.waits.ms == 0].sum())
            values.setdefault((_pair(d), _size(d), "out of order, %"), []).append(100 * late / one.waits.n)
    numbers: list[Row] = []
    texts = []
    for (pair, size, quantity), mine in values.items():
        e, both = estimates.median(mine), estimates.spread(mine)
        if e is None or both is None:
            continue
        row: Row = {"pair": pair, "size": size, "quantity": quantity, "mean": both[0], "se": both[1]}
        numbers.append({**row, **numbers_of(e)})
        texts.append([pair, size, quantity, mean_text(both, 1), grouping.written(e, 1), str(e.n)])
    heads = ["Paths", "Size", "", "mean", "median", "n"]
    note = (
        "Means ± standard errors over downloads (of each one value: its path’s subflows, or its connection), as in the paper; "
        "medians with 95 % bootstrap intervals. Out-of-order delay: over all packets whose wait is known, those in order with 0."
    )
    lacking = "delays of packets in captures of downloads by MPTCP over known paths"
    return grouping.table(heads, texts, numbers, note, lacking)


_CAPTURED = (DOWNLOADS, DELAYS)


_NOTE = (
    "No released kernel sends both SYNs at once. SYN gap: from the first subflow’s SYN to the second’s (connecting, and its join "
    "less its own handshake); before it carries: the part of the download time before the second subflow was there; joined: "
    "downloads in which it came to be. Modelled: what a SYN at once would save of the time, each path at its own mean rate; of "
    "joined downloads. Time; held: of downloads whose request waited until the second subflow was there (the wait is not counted), "
    "which saves at least as much as a SYN at once would; negative: slower. Medians with 95 % bootstrap intervals, of the downloads "
    "in the last column."
)


def syn_gap_ms(d: Download) -> float | None:
    """From the first subflow's SYN to that of the one which joined next; None where it is not known."""
    second = _second(d)
    if second is None or d.connect_ms is None or second not in d.handshake_ms:
        return None
    return max(0.0, d.connect_ms + d.join_ms[second] - d.handshake_ms[second])


def alone_share(d: Download) -> float | None:
    """Part of the download time in which only the first path could carry, 0 to 1."""
    second = _second(d)
    if second is None or d.connect_ms is None or not d.duration_s:
        return None
    return min(1.0, (d.connect_ms + d.join_ms[second]) / 1e3 / d.duration_s)


def saved_by_model(d: Download) -> float | None:
    """Part of the download time that a second SYN at once would save, 0 to 1: each path keeps the mean rate that it had since it could
    carry, and the second one could after its own handshake. None where something of it is not known, or more than two paths carried."""
    second, gap_ms = _second(d), syn_gap_ms(d)
    if second is None or gap_ms is None or d.connect_ms is None or not d.duration_s or len(d.shares) > 2:
        return None
    whole, part = sum(d.shares.values()), d.shares.get(second, 0.0)
    first_s, then_s = d.connect_ms / 1e3, (d.connect_ms + d.join_ms[second]) / 1e3
    if whole <= 0 or then_s >= d.duration_s:
        return None
    rate, late_rate = (1 - part / whole) / (d.duration_s - first_s), part / whole / (d.duration_s - then_s)
    at_once_s = then_s - gap_ms / 1e3
    took_s = (1 + rate * first_s + late_rate * at_once_s) / (rate + late_rate)
    return 1 - took_s / d.duration_s


def _second(d: Download) -> str | None:
    """The path of the subflow that joined next."""
    joined = {path: ms for path, ms in d.join_ms.items() if path != d.primary}
    return min(joined, key=lambda path: joined[path], default=None)


def delayed_syn(m: Material) -> Sheet:
    delayed, held = _joinable(m.downloads), _joinable(m.held)
    if not delayed:
        low, high = SMALL
        raise LackingError(f"downloads of {binary_size(low)} to {binary_size(high)} by MPTCP over Wi-Fi and cellular")
    sizes = sorted({d.asked_bytes or 0 for d in (*delayed, *held)})
    texts, numbers = [], list[Row]()
    for size in sizes:
        row = [binary_size(size)]
        mine = [d for d in delayed if d.asked_bytes == size]
        # With what was held only the same arms are compared.
        waited = [d for d in held if d.asked_bytes == size]
        arms = {_compared(d) for d in waited}
        others = [d for d in mine if not arms or _compared(d) in arms]
        for name, found, digits in (
            ("syn_gap_ms", _known(syn_gap_ms(d) for d in mine), 0),
            ("alone_percent", _known(_percent(alone_share(d)) for d in mine), 0),
            ("modelled_percent", _known(_percent(saved_by_model(d)) for d in mine), 1),
        ):
            e = estimates.median(found)
            row.append(grouping.written(e, digits))
            if e is not None:
                numbers.append({"size_bytes": size, "quantity": name, **numbers_of(e)})
        row += _measured(size, others, waited, numbers)
        joined = sum(_second(d) is not None for d in mine)
        numbers.append({"size_bytes": size, "quantity": "joined", "y": joined, "n": len(mine)})
        texts.append([*row, f"{joined} of {len(mine)}"])
    heads = [
        "Size",
        "SYN gap, ms",
        "Before it carries, %",
        "Modelled saving, %",
        "Time, ms",
        "held, ms",
        "saving, %",
        "Joined",
    ]
    return grouping.table(heads, texts, numbers, _NOTE, wide=True)


def _measured(size: int, delayed: Sequence[Download], held: Sequence[Download], numbers: list[Row]) -> list[str]:
    """Median times of both, and what the later lacks to the former."""
    found = [estimates.median([1e3 * (d.duration_s or 0.0) for d in ones]) for ones in (delayed, held)]
    for name, e in zip(("delayed_ms", "held_ms"), found, strict=True):
        if e is not None:
            numbers.append({"size_bytes": size, "quantity": name, **numbers_of(e)})
    texts = [grouping.written(e, 0) for e in found]
    before, after = found
    if before is None or after is None or before.value <= 0:
        return [*texts, words.ABSENT]
    saved = 100 * (1 - after.value / before.value)
    numbers.append({"size_bytes": size, "quantity": "measured_percent", "y": saved, "n": min(before.n, after.n)})
    return [*texts, words.fixed(saved, 1)]


def _joinable(downloads: Sequence[Download]) -> list[Download]:
    return [
        d
        for d in downloads
        if d.kind == "mptcp"
        and "cellular" in d.of.roles
        and d.duration_s is not None
        and SMALL[0] <= (d.asked_bytes or 0) <= SMALL[1]
    ]


def _compared(d: Download) -> tuple[str, str, int | None]:
    """What is compared with each other."""
    return d.primary, d.controller, d.subflows


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _known(values: Iterable[float | None]) -> list[float]:
    return [v for v in values if v is not None]


FIGURES = figures(
    "Chen et al.",
    ("chen-4", "Figure 4", "Download time of small files", times(SMALL), *_BOTH),
    ("chen-5", "Figure 5", "Share of the cellular path, small files", cellular(SMALL), *_BOTH),
    ("chen-table-3", "Table 3", "Loss and RTT of small single-path downloads", table("tcp", SMALL), *_BOTH),
    ("chen-6", "Figure 6", "Download time at a hot spot", times(SMALL, hot=True), *_BOTH),
    ("chen-7", "Figure 7", "Share of the cellular path at a hot spot", cellular(SMALL, hot=True), *_BOTH),
    ("chen-table-4", "Table 4", "Loss and RTT at a hot spot", table("tcp", SMALL, hot=True), *_BOTH),
    ("chen-8", "Figure 8", "Simultaneous and delayed SYN", _never, *_BOTH),
    ("chen-9", "Figure 9", "Download time of large files", times(LARGE), *_BOTH),
    ("chen-10", "Figure 10", "Share of the cellular path, large files", cellular(LARGE), *_BOTH),
    ("chen-table-5", "Table 5", "Loss and RTT of the subflows of large downloads", table("mptcp", LARGE), *_BOTH),
    ("chen-11", "Figure 11", "Download time of an endless backlog", times(BACKLOG), *_BOTH),
    ("chen-rtt", "§5", "Tail of the subflows’ round-trip times", round_trips, *_CAPTURED),
    ("chen-out-of-order", "§5", "Tail of the packets’ out-of-order delays", waits, *_CAPTURED),
    ("chen-table-delays", "§5, table", "Round-trip times and out-of-order delays", delays, *_CAPTURED),
    (
        "chen-join",
        "§4.1.2",
        "Delayed SYN: how late the second subflow comes, and what it would save to have it at once",
        delayed_syn,
        DOWNLOADS,
        PATHS,
    ),
)
