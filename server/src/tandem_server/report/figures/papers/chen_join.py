"""In place of Chen's Figure 8 (SYNs at once, a patched kernel): what a stock kernel shows of the delayed SYN, by size of the download.

Linux sends the SYN of a further subflow once the first byte of Multipath TCP was acknowledged. How long that is, and what part of a short
download it takes, is measured; what a SYN at once would save is bracketed: modelled of each download, and measured by downloads whose
request was held until the second subflow was there (``join_before_request``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tandem_server.analysis import estimates
from tandem_server.analysis.estimates import Estimate
from tandem_server.analysis.material import Material
from tandem_server.analysis.measured import Download
from tandem_server.report import words
from tandem_server.report.figures.figure import DOWNLOADS, Figure, LackingError
from tandem_server.report.figures.marks import Cells, Row
from tandem_server.report.figures.papers.chen import PATHS, SMALL, WHO
from tandem_server.report.figures.sheet import Panel, Sheet, binary_size

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


def _draw(m: Material) -> Sheet:
    delayed, held = _mine(m.downloads), _mine(m.held)
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
        arms = {_arm(d) for d in waited}
        others = [d for d in mine if not arms or _arm(d) in arms]
        for name, found, digits in (
            ("syn_gap_ms", _known(syn_gap_ms(d) for d in mine), 0),
            ("alone_percent", _known(_percent(alone_share(d)) for d in mine), 0),
            ("modelled_percent", _known(_percent(saved_by_model(d)) for d in mine), 1),
        ):
            e = estimates.median(found)
            row.append(_text(e, digits))
            if e is not None:
                numbers.append(
                    {"size_bytes": size, "quantity": name, "y": e.value, "low": e.low, "high": e.high, "n": e.n}
                )
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
    return Sheet([Panel("", [Cells(heads, texts, numbers)])], _NOTE, wide=True)


def _measured(size: int, delayed: Sequence[Download], held: Sequence[Download], numbers: list[Row]) -> list[str]:
    """Median times of both, and what the later lacks to the former."""
    found = [estimates.median([1e3 * (d.duration_s or 0.0) for d in ones]) for ones in (delayed, held)]
    for name, e in zip(("delayed_ms", "held_ms"), found, strict=True):
        if e is not None:
            numbers.append({"size_bytes": size, "quantity": name, "y": e.value, "low": e.low, "high": e.high, "n": e.n})
    texts = [_text(e, 0) for e in found]
    before, after = found
    if before is None or after is None or before.value <= 0:
        return [*texts, words.ABSENT]
    saved = 100 * (1 - after.value / before.value)
    numbers.append({"size_bytes": size, "quantity": "measured_percent", "y": saved, "n": min(before.n, after.n)})
    return [*texts, words.fixed(saved, 1)]


def _mine(downloads: Sequence[Download]) -> list[Download]:
    return [
        d
        for d in downloads
        if d.kind == "mptcp"
        and "cellular" in d.of.roles
        and d.duration_s is not None
        and SMALL[0] <= (d.asked_bytes or 0) <= SMALL[1]
    ]


def _arm(d: Download) -> tuple[str, str, int | None]:
    """What is compared with each other."""
    return d.primary, d.controller, d.subflows


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _known(values: Iterable[float | None]) -> list[float]:
    return [v for v in values if v is not None]


def _text(e: Estimate | None, digits: int) -> str:
    if e is None:
        return words.ABSENT
    span = "" if e.low is None or e.high is None else f" ({words.fixed(e.low, digits)}–{words.fixed(e.high, digits)})"
    return f"{words.fixed(e.value, digits)}{span}"


FIGURES = (
    Figure(
        "chen-join",
        WHO,
        "§4.1.2",
        "Delayed SYN: how late the second subflow comes, and what it would save to have it at once",
        (DOWNLOADS, PATHS),
        _draw,
    ),
)
