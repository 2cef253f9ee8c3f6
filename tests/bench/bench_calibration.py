"""How like recorded LTE the bench's radio moves: two-sample distances, half of the logs for fitting and the other half for showing.

    python tests/bench/bench_calibration.py --logs DIR [--seeds N] [--plot FILE.png] [--json]

Quantities, of seconds that move and of seconds that stand, by what the logs' fixes say (``tandem.mobility.score``) and by the bench's
own truth: the step of RSRP over 1 s (a poll a second, no handover left out), the time between changes of the serving cell, falls of
more than 6 dB between polls an hour, the autocorrelation of the level, and the capacity offered (recorded: goodput of logs that
download) given RSRP. Distances are Kolmogorov and Smirnov's. Days of logs are halved in turn: the first day is fitted to, the second
shown, and so on. Nothing is fitted by this script: what other values would give is seen with a file that has them as --scenario.
"""

from __future__ import annotations

import datetime
import itertools
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import benching
import numpy as np
from benching import say

from tandem.mobility.gnettrack import Second, read
from tandem.mobility.levels import family
from tandem.mobility.score import moving_by_fixes
from tandem_bench.scenario import load, play
from tandem_bench.scenario.model import Scenario
from tandem_bench.truth import states

LAGS_S = (1, 2, 5, 10, 20, 40)
BINS_DBM = (-115, -105, -95, -85, -75, -65)
Poll = tuple[int, float, int, bool | None, float | None]
"""(second, RSRP dBm, ECI, moving, Mbit/s or None)."""


def recorded(log: Sequence[Second], *, downloads: bool, rates: dict[int, float]) -> list[Poll]:
    out = []
    for second, moving in zip(log, moving_by_fixes(log), strict=True):
        level, eci = second.fields.get("rsrp_dbm"), second.fields.get("eci")
        if family(second.rat) == "LTE" and isinstance(level, float) and isinstance(eci, int):
            out.append((second.at_s, level, eci, moving, rates.get(second.at_s) if downloads else None))
    return out


def emulated(scenario: Scenario) -> list[list[Poll]]:
    """A series an operator, polled once a second."""
    out = []
    for timeline in play(scenario).operators.values():
        columns = timeline.columns
        moving = states(columns["speed_m_s"], 0.1)
        level, cell, down = (columns[name] for name in ("rsrp_dbm", "eci", "down_bit_per_s"))
        out.append([(i // 10, level[i], cell[i], moving[i], down[i] / 1e6) for i in range(0, len(moving), 10)])
    return out


class Sample:
    def __init__(self) -> None:
        self.steps: dict[bool, list[float]] = {True: [], False: []}
        self.dwells: list[float] = []
        self.lagged: dict[int, list[tuple[float, float]]] = {lag: [] for lag in LAGS_S}
        self.rates: list[tuple[float, float]] = []
        self.falls, self.hours = 0, 0.0

    def add(self, polls: Sequence[Poll]) -> None:
        at = {p[0]: p for p in polls}
        levels = [p[1] for p in polls if p[3] is True]
        mean = statistics.mean(levels) if levels else 0.0
        for p in polls:
            after = at.get(p[0] + 1)
            if after is not None and p[3] is not None and p[3] is after[3]:
                self.steps[p[3]].append(after[1] - p[1])
                if p[3]:
                    self.falls += after[1] - p[1] < -6
                    self.hours += 1 / 3600
            for lag in LAGS_S if p[3] is True else ():
                later = at.get(p[0] + lag)
                if later is not None and later[3] is True:
                    self.lagged[lag].append((p[1] - mean, later[1] - mean))
            if p[4] is not None and p[4] > 0:
                self.rates.append((p[1], p[4]))
        since: int | None = None
        for before, now in itertools.pairwise(polls):
            if now[0] - before[0] > 10:
                since = None
            elif now[2] != before[2]:
                if since is not None:
                    self.dwells.append(now[0] - since)
                since = now[0]

    def figures(self) -> dict[str, Any]:
        step = {m: np.abs(np.array(self.steps[m])) for m in (True, False)}
        rates = {
            f"{a} to {b} dBm": round(statistics.median(near), 1)
            for a, b in itertools.pairwise(BINS_DBM)
            if len(near := [r for level, r in self.rates if a <= level < b]) >= 50
        }
        return {
            "seconds moving, standing": [len(step[True]), len(step[False])],
            "moving, steps of 6 dB and more": large(step[True], 4),
            "standing, steps of 6 dB and more": large(step[False], 5),
            "falls over 6 dB an hour": round(self.falls / self.hours, 1) if self.hours else None,
            "times between changes of cell": len(self.dwells),
            "dwell 10, 50, 90 %, s": [float(x) for x in np.quantile(self.dwells, (0.1, 0.5, 0.9)).round(1)]
            if self.dwells
            else None,
            "autocorrelation": {
                lag: round(float(np.corrcoef(np.array(pairs).T)[0, 1]), 2)
                for lag, pairs in self.lagged.items()
                if len(pairs) > 50
            },
            "Mbit/s, median": rates,
        }


def large(steps: np.ndarray, digits: int) -> float | None:
    """Which share of them."""
    return round(float((steps >= 6).mean()), digits) if len(steps) else None


def distance(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Kolmogorov and Smirnov's: the largest difference of the two shares below any value."""
    if not len(a) or not len(b):
        return None
    one, other = np.sort(np.asarray(a, float)), np.sort(np.asarray(b, float))
    at = np.concatenate([one, other])
    gap = np.searchsorted(one, at, side="right") / len(one) - np.searchsorted(other, at, side="right") / len(other)
    return round(float(np.abs(gap).max()), 3)


def halves(folder: Path) -> tuple[Sample, Sample]:
    """(to be fitted to, to be shown), by days in turn."""
    logs = {file.stem: (read(file.read_bytes()), file) for file in sorted(folder.glob("*.csv"))}
    days = sorted({datetime.datetime.fromtimestamp(log[0].at_s, datetime.UTC).date() for log, _ in logs.values()})
    out = Sample(), Sample()
    for name, (log, file) in logs.items():
        day = datetime.datetime.fromtimestamp(log[0].at_s, datetime.UTC).date()
        downloads = "download" in name
        out[days.index(day) % 2].add(recorded(log, downloads=downloads, rates=goodput(file) if downloads else {}))
    return out


def goodput(file: Path) -> dict[int, float]:
    """Mbit/s by second, from the column that the product does not read."""
    import csv

    from tandem.mobility.gnettrack import _time

    with file.open(encoding="utf-8", errors="replace") as lines:
        return {_time(0, row["Timestamp"]): float(row["DL_bitrate"]) / 1000 for row in csv.DictReader(lines)}


def table(samples: dict[str, Sample], halves_: tuple[Sample, Sample]) -> dict[str, Any]:
    fitted, shown = halves_
    out: dict[str, Any] = {"recorded, fitted to": fitted.figures(), "recorded, shown": shown.figures()}
    out["between the halves"] = against(fitted, shown)
    for name, sample in samples.items():
        out[name] = {"distances": against(sample, shown), "to the fitted half": against(sample, fitted)}
        out[name] |= sample.figures()
    return out


def against(a: Sample, b: Sample) -> dict[str, float | None]:
    return {
        "steps moving": distance(a.steps[True], b.steps[True]),
        "steps standing": distance(a.steps[False], b.steps[False]),
        "dwell": distance(a.dwells, b.dwells),
    }


def plot(samples: dict[str, Sample], halves_: tuple[Sample, Sample], file: Path) -> None:
    """Distributions only, recorded (both halves) against emulated."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 4, figsize=(13, 3), layout="constrained")
    a, b, c, d = axes
    lines = [("recorded, fitted to", halves_[0], "#888"), ("recorded, shown", halves_[1], "#000")]
    colours = itertools.cycle(("#c33", "#36b", "#2a2", "#d80"))
    for name, sample, colour in [*lines, *((n, s, next(colours)) for n, s in samples.items())]:
        for axis, values in ((a, np.abs(sample.steps[True])), (b, np.abs(sample.steps[False])), (c, sample.dwells)):
            if len(values):
                x = np.sort(values)
                axis.step(x, 1 - np.arange(len(x)) / len(x), where="post", color=colour, lw=1, label=name)
        pairs = sample.figures()["autocorrelation"]
        if pairs:
            d.plot(list(pairs), list(pairs.values()), color=colour, lw=1, marker=".", label=name)
    titles = ("|step of RSRP in 1 s|, moving, dB", "the same, standing", "time in a cell, s", "lag, s")
    for axis, title in zip(axes, titles, strict=True):
        axis.set_xlabel(title)
    for axis, least in ((a, 1e-3), (b, 1e-4)):
        axis.set_yscale("log")
        axis.set_ylim(least, 1)
        axis.set_xlim(0, 20)
    c.set_xscale("log")
    a.set_ylabel("share above")
    d.set_ylabel("autocorrelation of RSRP, moving")
    d.legend(fontsize=6)
    figure.savefig(file, dpi=70)


def main() -> None:
    parser = benching.parser(__doc__)
    parser.add_argument("--logs", type=Path, required=True, help="folder with recorded drives")
    parser.add_argument("--scenario", action="append", metavar="NAME", help="or file; default: all four")
    parser.add_argument("--duration", type=float, default=600.0, metavar="S", help="of each scenario (default 600)")
    parser.add_argument("--seeds", type=int, default=4, help="cells change seldom: 10 for a commute, 20 for a walk")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="distributions, recorded against emulated")
    args = parser.parse_args()
    both = halves(args.logs)
    samples = {}
    for name in args.scenario or ["commute", "walk", "drive", "still"]:
        say(f"playing {name}")
        samples[name] = Sample()
        for seed in range(1, args.seeds + 1):
            for polls in emulated(load(name, args.duration, seed)):
                samples[name].add(polls)
    result = table(samples, both)
    if args.plot:
        plot(samples, both, args.plot)
    if args.json:
        print(json.dumps(result, indent=1))
        return
    for name, figures in result.items():
        print(f"{name}:")
        for key, value in figures.items():
            print(f"  {key}: {value}")


if __name__ == "__main__":
    main()
