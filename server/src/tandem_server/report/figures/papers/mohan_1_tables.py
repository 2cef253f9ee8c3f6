"""Mohan et al., Is two greater than one? (2019), §3 and §4.1: Tables 1 and 2."""

from __future__ import annotations

from tandem_server.analysis import estimates
from tandem_server.analysis.estimates import Estimate
from tandem_server.analysis.material import CONTROLLED, Material
from tandem_server.analysis.measured import Download
from tandem_server.analysis.runs import DOWNLOAD_BYTES
from tandem_server.report import words
from tandem_server.report.figures.figure import DOWNLOADS, Figure, LackingError
from tandem_server.report.figures.grouping import classes
from tandem_server.report.figures.marks import Cells, Row
from tandem_server.report.figures.sheet import Panel, Sheet

WHO = "Mohan et al."
WORDS = {"static": "Stationary", "low": "Walking", "high": "Driving, tram", "moving": "Moving"}


OTHERS = {"cellular", "path1"}
"""Chen's and Adarsh's: an operator beside Wi-Fi, or two networks of any kind."""


def in_the_wild(m: Material) -> list[Download]:
    """Downloads over links as they are, of a known mobility class, in which the kernel chose its subflows; not the other papers', whose
    paths have roles (``OTHERS``)."""
    return [
        d
        for d in m.downloads
        if not d.of.shape and d.subflows is None and d.of.mobility is not None and not OTHERS & set(d.of.roles)
    ]


def table_1(m: Material) -> Sheet:
    """How much was measured."""
    numbers: list[Row] = []
    for name, controlled in (("Uncontrolled", False), ("Controlled", True)):
        runs = [d for d in m.downloads if (d.of.step == CONTROLLED or d.of.label != "") is controlled]
        plays = [p for p in m.plays if (p.of.step == CONTROLLED or p.of.label != "") is controlled]
        kinds = [*(d.kind for d in runs), *(p.kind for p in plays)]
        numbers.append(
            {
                "runs": name,
                "mptcp_connections": kinds.count("mptcp"),
                "tcp_connections": kinds.count("tcp"),
                "downloads": len({d.pair or d.of.run for d in runs}),
                "plays": len(plays),
            }
        )
    keys = ("mptcp_connections", "tcp_connections", "downloads", "plays")
    texts = [[str(row["runs"]), *(words.count(int(str(row[key]))) for key in keys)] for row in numbers]
    heads = ["", "MPTCP connections", "TCP connections", "File downloads", "Video plays"]
    note = (
        "Measurements with a result. Controlled: labelled by hand, or of a step of that name. A file "
        "download may be several runs: one by each way."
    )
    return Sheet([Panel("", [Cells(heads, texts, numbers)])], note)


def table_2(m: Material) -> Sheet:
    """Goodput, round-trip time and download time by mobility."""
    runs = in_the_wild(m)
    labelled = [d for d in runs if d.of.label]
    runs = labelled or [d for d in runs if d.pairing != "single"] or runs
    numbers: list[Row] = []
    texts = []
    for name in classes(d.of.mobility for d in runs):
        row: dict[str, float | int | str | None] = {"mobility": name}
        cells = [WORDS[name]]
        for key, unit, value in _QUANTITIES:
            for kind in ("mptcp", "tcp"):
                found = [v for d in runs if d.of.mobility == name and d.kind == kind and (v := value(d)) is not None]
                e = estimates.median(found)
                column = f"{kind}_{key}_{unit}"
                row |= {column: e and e.value, f"{column}_low": e and e.low, f"{column}_high": e and e.high}
                if key == "goodput":
                    row[f"{kind}_n"] = len(found)
                cells.append(_text(e, 1 if key != "rtt" else 0, with_n=key == "goodput"))
        numbers.append(row)
        texts.append(cells)
    if not numbers:
        raise LackingError("downloads at times of a known mobility class")
    heads = ["", "Rate MPTCP, Mbit/s", "TCP", "RTT MPTCP, ms", "TCP", "300 MB MPTCP, s", "TCP"]
    note = (
        "Medians with 95 % bootstrap intervals (n runs); TCP over the runs of every operator. RTT at the "
        "sender. 300 MB: as measured, or, of "
        f"other amounts, at the run’s goodput. {'Labelled runs only.' if labelled else 'By what the probe was doing.'}"
    )
    return Sheet([Panel("", [Cells(heads, texts, numbers)])], note)


def _mbit(d: Download) -> float | None:
    return None if d.goodput_bit_per_s is None else d.goodput_bit_per_s / 1e6


def _took_s(d: Download) -> float | None:
    if d.asked_bytes == DOWNLOAD_BYTES and d.duration_s is not None:
        return d.duration_s
    return DOWNLOAD_BYTES * 8 / d.goodput_bit_per_s if d.goodput_bit_per_s else None


_QUANTITIES = (("goodput", "mbit_per_s", _mbit), ("rtt", "ms", lambda d: d.rtt()), ("download", "s", _took_s))


def _text(e: Estimate | None, digits: int, *, with_n: bool) -> str:
    if e is None:
        return words.ABSENT
    text = words.fixed(e.value, digits)
    if e.low is not None and e.high is not None:
        text += f" ({words.fixed(e.low, digits)}–{words.fixed(e.high, digits)})"
    return f"{text}, n={e.n}" if with_n else text


FIGURES = (
    Figure("mohan-table-1", WHO, "Table 1", "What was measured", (DOWNLOADS,), table_1),
    Figure(
        "mohan-table-2", WHO, "Table 2", "Goodput, round-trip time and download time by mobility", (DOWNLOADS,), table_2
    ),
)
