"""Chen et al.: A Measurement-based Study of MultiPath TCP Performance over Wireless Networks (IMC 2013), §4."""

from __future__ import annotations

from collections.abc import Callable

from tandem_server.analysis import estimates
from tandem_server.analysis.estimates import Estimate
from tandem_server.analysis.material import Material, place
from tandem_server.analysis.measured import Download, shares_from
from tandem_server.report import words
from tandem_server.report.figures import grouping
from tandem_server.report.figures.figure import DOWNLOADS, Figure, LackingError, Need
from tandem_server.report.figures.marks import Cells, Row
from tandem_server.report.figures.sheet import OTHERS, Axis, Panel, Sheet, binary_size

WHO = "Chen et al."
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


def times(sizes: tuple[int, int], *, hot: bool = False) -> Callable[[Material], Sheet]:
    """Figures 4, 6, 9 and 11: download time."""

    def draw(m: Material) -> Sheet:
        mine = _mine(m, sizes, hot=hot)
        there = sorted({d.asked_bytes or 0 for d in mine})
        values = [(_arm(d), there.index(d.asked_bytes or 0), d.duration_s) for d in mine]
        axis = Axis("size", names=tuple(binary_size(size) for size in there))
        note = (
            "SP: TCP over one path; MP-2, MP-4: subflows. Boxes: quartiles; whiskers: deciles; black: 95 % "
            "bootstrap interval of the median."
        )
        return Sheet(
            [Panel("", list(grouping.boxes(values)), axis, Axis("download time, s", log=True))],
            note,
            _hues(m),
            wide=True,
        )

    return draw


def cellular(sizes: tuple[int, int], *, hot: bool = False) -> Callable[[Material], Sheet]:
    """Figures 5, 7 and 10: what the cellular path carried."""

    def draw(m: Material) -> Sheet:
        mine = [d for d in _mine(m, sizes, hot=hot) if d.kind == "mptcp" and d.shares]
        if not mine:
            raise LackingError("downloads by MPTCP over Wi-Fi and cellular that tell what each path carried")
        there = sorted({d.asked_bytes or 0 for d in mine})
        values = [
            (
                _arm(d),
                there.index(d.asked_bytes or 0),
                d.shares.get(d.of.roles["cellular"], 0.0) / sum(d.shares.values()),
            )
            for d in mine
            if sum(d.shares.values()) > 0
        ]
        axis = Axis("size", names=tuple(binary_size(size) for size in there))
        note = f"Medians over downloads with 95 % bootstrap intervals. 0: the cellular path carried nothing. {shares_from(mine)}"
        panel = Panel("", list(grouping.bars(values)), axis, Axis("share over the cellular path", low=0, high=1))
        return Sheet([panel], note, _hues(m), wide=True)

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
                    row += [_text(e, digits), mean_text(mean, digits)]
                    if e is not None and mean is not None:
                        place: Row = {"size_bytes": size, "path": role, "quantity": name}
                        middle: Row = {"y": e.value, "low": e.low, "high": e.high, "n": e.n}
                        numbers.append({**place, **middle, "mean": mean[0], "se": mean[1]})
                row.append(str(len(found["rtt_ms"]) or len(found["loss_percent"])))
            texts.append(row)
        if not numbers:
            raise LackingError("downloads whose sender told loss or round-trip time of each path")
        heads = ["Size"]
        for path in ("Wi-Fi", "Cellular"):
            heads += [f"{path} loss, %", "mean", f"{path} RTT, ms", "mean", "n"]
        note = (
            "Medians over downloads with 95 % bootstrap intervals; means ± standard errors, as in the paper. Loss: bytes sent again "
            "over all sent. RTT: each download’s median, at the sender."
        )
        return Sheet([Panel("", [Cells(heads, texts, numbers)])], note)

    return draw


def _text(e: Estimate | None, digits: int) -> str:
    if e is None:
        return words.ABSENT
    span = f" ({words.fixed(e.low, digits)}–{words.fixed(e.high, digits)})" if e.low is not None else ""
    return f"{words.fixed(e.value, digits)}{span}"


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
FIGURES = (
    Figure("chen-4", WHO, "Figure 4", "Download time of small files", _BOTH, times(SMALL)),
    Figure("chen-5", WHO, "Figure 5", "Share of the cellular path, small files", _BOTH, cellular(SMALL)),
    Figure("chen-table-3", WHO, "Table 3", "Loss and RTT of small single-path downloads", _BOTH, table("tcp", SMALL)),
    Figure("chen-6", WHO, "Figure 6", "Download time at a hot spot", _BOTH, times(SMALL, hot=True)),
    Figure("chen-7", WHO, "Figure 7", "Share of the cellular path at a hot spot", _BOTH, cellular(SMALL, hot=True)),
    Figure("chen-table-4", WHO, "Table 4", "Loss and RTT at a hot spot", _BOTH, table("tcp", SMALL, hot=True)),
    Figure("chen-8", WHO, "Figure 8", "Simultaneous and delayed SYN", _BOTH, _never),
    Figure("chen-9", WHO, "Figure 9", "Download time of large files", _BOTH, times(LARGE)),
    Figure("chen-10", WHO, "Figure 10", "Share of the cellular path, large files", _BOTH, cellular(LARGE)),
    Figure(
        "chen-table-5", WHO, "Table 5", "Loss and RTT of the subflows of large downloads", _BOTH, table("mptcp", LARGE)
    ),
    Figure("chen-11", WHO, "Figure 11", "Download time of an endless backlog", _BOTH, times(BACKLOG)),
)
