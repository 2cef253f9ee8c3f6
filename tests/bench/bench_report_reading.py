"""What the report reads, as it is read now and as it was: bins of a capture, and a long campaign's records, in time and in memory held.

    PYTHONPATH=collector/src:server/src python tests/bench/bench_report_reading.py [--days 1] [--modems 2] [--bins 20000] [--json FILE]

Needs no database: the answers are made up in pieces as one sends them. Memory is the peak of what Python allocates. Prints what was
measured, with ratios, and asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tandem.schema.metrics import MEASUREMENTS
from tandem_server.analysis.clock import Clock
from tandem_server.analysis.influx_source import InfluxSource, rows_of
from tandem_server.analysis.papers.capture_bins import bins_of_capture
from tandem_server.analysis.recorded import load
from tandem_server.store.series import Series, joined

S = 10**9
PIECE = 10_000


class Answers:
    """A database of nothing but polls, one a second and modem."""

    def __init__(self, seconds: int, modems: int) -> None:
        self.seconds, self.modems = seconds, modems

    def parts(self, influxql: str, _params: object = None) -> Iterator[Series]:
        """Of the fields that are asked for."""
        if '"radio"' not in influxql:
            return
        every = [field.name for field in MEASUREMENTS["radio"].fields] + ["seq", "monotonic_ns"]
        names = every if "SELECT *" in influxql else [name for name in every if f'"{name}"' in influxql]
        for modem in range(self.modems):
            for first in range(0, self.seconds, PIECE):
                seconds = range(first, min(first + PIECE, self.seconds))
                rows = [[s * S, *(float(s // 60 % 50 + n) for n in range(len(names)))] for s in seconds]
                yield Series("radio", {"path": f"m{modem}", "boot": "b"}, ["time", *names], rows)


def records_before(answers: Answers) -> None:
    """The whole answer with all fields, then every record as an object, then columns of them."""
    whole = joined(answers.parts('SELECT * FROM "radio"'))
    rows = sorted((row for series in whole for row in rows_of(series)), key=lambda row: row.utc_ns)
    for name in ("rsrp_dbm", "sinr_db", "poll_late_ms", "poll_duration_ms"):
        np.array([row.fields.get(name, np.nan) for row in rows], dtype=np.float64)


def records_now(answers: Answers) -> None:
    """As the report does."""
    load(InfluxSource(answers), "probe-1", Clock(0), {}, None, None)  # type: ignore[arg-type]  (it asks ``parts`` only)


def sums_before(columns: dict[str, np.ndarray]) -> None:
    """A look at all rows for each bin."""
    start, rows = columns["bin_start_utc_ns"], np.isfinite(columns["subflow"])
    for t in np.unique(start[rows]):
        columns["in_flight_mean_bytes"][rows & (start == t)].sum()


def sums_now(columns: dict[str, np.ndarray]) -> None:
    """As the report does."""
    bins_of_capture("r", None, columns, Clock(0), whole=True)


def columns_of(bins: int) -> dict[str, np.ndarray]:
    """Of a connection of two subflows."""
    start = np.tile(np.arange(bins) * S / 10, 3)
    values = np.arange(3.0 * bins)
    own = np.repeat([0.0, 1.0, np.nan], bins)
    names = ("in_flight_mean_bytes", "reorder_queue_max_bytes")
    return {"subflow": own, "direction": np.ones(3 * bins), "bin_start_utc_ns": start, **dict.fromkeys(names, values)}


def cost(act: Callable[[], None]) -> tuple[float, float]:
    """Seconds of processor time, and MB at the peak."""
    began = time.process_time()
    act()
    took = time.process_time() - began
    tracemalloc.start()
    act()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return took, peak / 1e6


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=float, default=1.0)
    parser.add_argument("--modems", type=int, default=2)
    parser.add_argument("--bins", type=int, default=20_000)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    answers, columns = Answers(round(args.days * 86_400), args.modems), columns_of(args.bins)
    cases = {
        f"records of {args.modems} modems, {args.days:g} days": (
            lambda: records_before(answers),
            lambda: records_now(answers),
        ),
        f"{args.bins} bins": (lambda: sums_before(columns), lambda: sums_now(columns)),
    }
    found = {}
    print(f"{'':<32} {'before':>18} {'now':>18} {'before : now':>16}")
    for name, (before, now) in cases.items():
        (then_s, then_mb), (now_s, now_mb) = cost(before), cost(now)
        found[name] = {"before_s": then_s, "now_s": now_s, "before_mb": then_mb, "now_mb": now_mb}
        figures = f"{then_s:>8.2f} s {then_mb:>5.0f} MB {now_s:>8.2f} s {now_mb:>5.0f} MB"
        print(f"{name:<32} {figures} {then_s / now_s:>7.1f} {then_mb / now_mb:>7.1f}")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
