"""How well movement is told: logs, logs told worse, the bench's scenarios; the fit with each log left out; the cost of a record.

    python tests/bench/bench_mobility.py --logs DIR [--fit] [--seeds N] [--plot FILE --plot-log LOG] [--json]

Leave-one-out (``--fit``, some minutes): the best parameters of a grid are chosen on all logs but one and their harder copies
(mobility_variants), and judged on the one; a log and its copies are never on both sides.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from pathlib import Path
from typing import Any

import mobility_variants as variants

from tandem.mobility.detectors import Detectors
from tandem.mobility.fused import FusedDetector
from tandem.mobility.fused_settings import FusedSettings
from tandem.mobility.gnettrack import Second, read
from tandem.mobility.movement import MobilityDetector
from tandem.mobility.replay import period_s, play, scored
from tandem.mobility.score import MOVING_KM_H, Score
from tandem.mobility.settings import Settings
from tandem.schema.record import Record

GRID: dict[str, tuple[float, ...]] = {
    "window_s": (10.0, 20.0),
    "neutral_db": (1.3, 1.6, 2.0),
    "quiet_per_s": (0.3, 0.4, 0.6),
    "start_s": (10.0, 15.0),
    "most_s": (40.0, 60.0, 90.0),
    "new_cell_s": (4.0, 8.0),
}
Log = list[Second]


Polls = list[tuple[Record, bool | None]]


def polls_of(log: Log) -> Polls:
    """(poll, moving by the speed; None when it is not known), made once for all candidates."""
    begin_s = log[0].at_s
    known = [None if s.speed_km_h is None else s.speed_km_h > MOVING_KM_H for s in log]
    return [(s.record("a", s.at_s - begin_s), moving) for s, moving in zip(log, known, strict=True)]


def accuracy(polls: Polls, settings: FusedSettings) -> tuple[int, int]:
    """(seconds judged rightly, seconds)."""
    detector = FusedDetector(settings)
    right = seconds = 0
    for record, moving in polls:
        detector.feed(record)
        if moving is not None:
            right, seconds = right + (moving == detector.mobile), seconds + 1
    return right, seconds


def leave_one_out(logs: dict[str, Log]) -> dict[str, Any]:
    """Accuracy of the grid's best on each log left out, and of its best on all."""
    copies = {name: [polls_of(copy) for copy in variants.hard(log, 1).values()] for name, log in logs.items()}
    polls = {name: polls_of(log) for name, log in logs.items()}
    candidates = [FusedSettings(**dict(zip(GRID, values, strict=True))) for values in itertools.product(*GRID.values())]
    table = []
    for settings in candidates:
        own = {name: accuracy(own_polls, settings) for name, own_polls in polls.items()}
        harder = {name: [r / n for r, n in (accuracy(c, settings) for c in copies[name])] for name in logs}
        table.append((own, harder))

    def merit(i: int, without: str | None) -> float:
        own, harder = table[i]
        names = [name for name in logs if name != without]
        # Logs count twice what their harder copies do: those are guesses of what other places are like.
        return statistics.mean(own[n][0] / own[n][1] for n in names) + 0.5 * statistics.mean(
            x for n in names for x in harder[n]
        )

    best = {without: max(range(len(candidates)), key=lambda i: merit(i, without)) for without in (None, *logs)}
    seconds = sum(table[0][0][name][1] for name in logs)
    default = {name: accuracy(own_polls, FusedSettings()) for name, own_polls in polls.items()}
    return {
        "candidates": len(candidates),
        "best on all": {name: getattr(candidates[best[None]], name) for name in GRID},
        "accuracy, best on all": sum(table[best[None]][0][n][0] for n in logs) / seconds,
        "accuracy, each left out": sum(table[best[n]][0][n][0] for n in logs) / seconds,
        "each left out": {
            n: {
                "accuracy": table[best[n]][0][n][0] / table[best[n]][0][n][1],
                "chosen": [getattr(candidates[best[n]], g) for g in GRID],
            }
            for n in logs
        },
        "worst of the grid": min(sum(own[n][0] for n in logs) for own, _ in table) / seconds,
        "median of the grid": statistics.median(sum(own[n][0] for n in logs) for own, _ in table) / seconds,
        "accuracy, defaults": sum(r for r, _ in default.values()) / seconds,
    }


def both(groups: dict[str, list[list[Log]]], hold_s: float) -> dict[str, Any]:
    """Figures by group; a group is a list of probes, a probe a list of modems' logs."""
    out = {}
    for name, probes in groups.items():
        out[name] = {}
        for detector in ("published", "fused"):
            total = Score()
            for probe in probes:
                total = total + scored(probe, detector, hold_s)
            out[name][detector] = total.figures()
    return out


def cost(log: Log) -> dict[str, float]:
    """Microseconds a record, least of five passes, and the ratio."""
    records = [second.record("a", i) for i, second in enumerate(log)]
    out: dict[str, float] = {}
    for name, make in (
        ("published", lambda: MobilityDetector(Settings())),
        ("fused", lambda: FusedDetector(FusedSettings())),
    ):
        passes = []
        for _ in range(5):
            detector = make()
            begin = time.perf_counter()
            for record in records:
                detector.feed(record)
            passes.append((time.perf_counter() - begin) / len(records) * 1e6)
        out[f"{name}, us a record"] = round(min(passes), 2)
    out["ratio"] = round(out["fused, us a record"] / out["published, us a record"], 2)
    return out


def plot(log: Log, file: Path, hold_s: float) -> None:
    """Speed, truth, and what both detectors say, over the minutes of one log."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (upper, lower) = pyplot.subplots(
        2, 1, sharex=True, figsize=(9, 4), height_ratios=(2, 1.1), layout="constrained"
    )
    begin = log[0].at_s
    minutes = [(s.at_s - begin) / 60 for s in log]
    upper.plot(minutes, [s.speed_km_h for s in log], color="#444", lw=0.9, label="speed")
    upper.set_ylabel("km/h")
    levels = upper.twinx()
    levels.plot(
        minutes, [s.fields.get("rsrp_dbm", s.fields.get("rscp_dbm")) for s in log], color="#69c", lw=0.5, label="level"
    )
    levels.set_ylabel("level, dBm", color="#69c")
    rows = [("by speed", [(s.speed_km_h or 0) > 3 for s in log])]
    for name in ("published", "fused"):
        judged, _ = play([log], Detectors(Settings(detector=name, stop_after_s=hold_s, period_s=period_s([log]))))
        rows.append((f"{name}, {hold_s:g} s" if name == "published" else name, [j.mobile for j in judged]))
    for y, (_, mobile) in enumerate(rows):
        lower.fill_between(
            minutes, y - 0.35, y + 0.35, where=mobile, step="post", color=("#444", "#c73", "#283")[y], lw=0
        )
    lower.set_yticks(range(3), [name for name, _ in rows])
    lower.set_ylim(2.6, -0.6)
    lower.set_xlabel("minutes; filled: moving")
    figure.savefig(file, dpi=80)


def main() -> None:
    """Print everything that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=Path, required=True, help="folder with drive logs")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--hold", type=float, default=120.0)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--plot-log", default="drive-video-a")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    logs = {file.stem: read(file.read_bytes()) for file in sorted(args.logs.glob("*.csv"))}
    if args.plot:
        plot(logs[args.plot_log], args.plot, args.hold)
        return
    groups: dict[str, list[list[Log]]] = {"logs": [[log] for log in logs.values()]}
    for make in (variants.augmented, variants.hard):
        for log in logs.values():
            for name, copy in make(log, 1).items():
                groups.setdefault(name, []).append([copy])
    for name, duration_s in (("still", 600), ("walk", 900), ("drive", 900), ("commute", 900), ("commute", 300)):
        for seed in range(1, args.seeds + 1):
            pair = variants.scenario(name, duration_s, seed)
            groups.setdefault(f"bench {name} {duration_s} s, two modems", []).append(pair)
            groups.setdefault(f"bench {name} {duration_s} s, one modem", []).append(pair[:1])
    result: dict[str, Any] = {"groups": both(groups, args.hold), "cost": cost(next(iter(logs.values())))}
    if args.fit:
        result["fit"] = leave_one_out(logs)
    if args.json:
        print(json.dumps(result, indent=1))
        return
    keys = (
        "accuracy",
        "still_judged_moving",
        "moving_judged_still",
        "delay_s_median",
        "stop_delay_s_median",
        "speed_class_accuracy",
    )
    print(f"{'':38} {'':10} " + " ".join(f"{key.removesuffix('_median'):>20}" for key in keys))
    for name, detectors in result["groups"].items():
        for detector, figures in detectors.items():
            cells = " ".join(f"{'–' if figures[key] is None else format(figures[key], '.4g'):>20}" for key in keys)
            print(f"{name:38} {detector:10} {cells}")
    print(json.dumps({key: result[key] for key in ("cost", "fit") if key in result}, indent=1))


if __name__ == "__main__":
    main()
