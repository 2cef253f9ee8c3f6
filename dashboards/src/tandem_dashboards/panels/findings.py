"""What a run of several connections found out: aggregation by round, and a verdict for each path and role."""

from __future__ import annotations

from tandem.schema.grades import Meaning
from tandem_dashboards.conditions import chosen
from tandem_dashboards.expressions import tag
from tandem_dashboards.influxql import select
from tandem_dashboards.kinds import table
from tandem_dashboards.look import Look
from tandem_dashboards.panel import Panel

RUN = chosen("run")


def aggregation(width: int = 24) -> Panel:
    """Each round of a bandwidth or delay experiment."""
    names = (
        *("round", "benefit", "tdi", "goodput_bit_per_s", "c_max_bit_per_s", "c_total_bit_per_s", "bandwidth_ratio"),
        *("bytes", "delay_ms", "fastest_ms", "ideal_ms", "fallback"),
    )
    shown = {
        **{name: Look() for name in ("round", "path", "operator", "mode")},
        **{name: Look() for name in names[1:]},
        "path": Look(title="Primary path"),
        "mode": Look(
            title="Direction", words={"oneway": Meaning("upload", "quiet"), "reqresp": Meaning("download", "quiet")}
        ),
        "benefit": Look(title="Benefit", cell="text", decimals=2),
        "tdi": Look(title="TDI", cell="text", decimals=2),
        "c_max_bit_per_s": Look(title="Best path alone"),
        "c_total_bit_per_s": Look(title="All paths at once, TCP"),
        "bytes": Look(title="Size of each transfer"),
        "delay_ms": Look(title="Delay"),
        "fastest_ms": Look(title="Fastest path alone"),
        "ideal_ms": Look(title="Ideal"),
    }
    return table(
        "What aggregation gave, round by round",
        "Benefit: 0 is the best path alone, 1 the ideal, below 0 a loss. TDI: 1 where the paths share no bottleneck. Delays for runs of "
        "the delay experiment, goodputs for bandwidth. Empty: the run was neither, or no round of it is whole.",
        select(*(tag(name) for name in ("path", "operator", "mode")), *names, of="aggregation", where=[RUN]),
        show=shown,
        sort_by=("Round", False),
        width=width,
        height=6,
    )


def verdicts(width: int = 24) -> Panel:
    """Whether each path lets Multipath TCP through."""
    asked = select(
        *(tag(name) for name in ("path", "operator", "role", "verdict")),
        "where",
        "over",
        "detail",
        of="verdict",
        where=[RUN],
    )
    return table(
        "Whether each path lets Multipath TCP through",
        "Of a verdict run: each path as the one on which a connection begins and as one that joins, with where it was lost and why. "
        "Empty: the run was none of the verdict experiment.",
        asked,
        show={
            **{name: Look() for name in ("path", "operator", "role")},
            "verdict": Look(cell="colour"),
            **{name: Look() for name in ("where", "over", "detail")},
        },
        width=width,
        height=5,
    )
