"""How well movement is told: logs, logs told worse, the bench's scenarios; the cost of a record. The fit is ``fit_mobility.py``.

python tests/bench/bench_mobility.py --logs DIR [--seeds N] [--plot FILE --plot-log LOG] [--json]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import mobility_variants as variants

from tandem.mobility.detectors import Detectors, FusedDetector
from tandem.mobility.gnettrack import Second, read
from tandem.mobility.radio_events import MobilityDetector
from tandem.mobility.score import Scores, period_s, rounds, scored, states
from tandem.mobility.settings import FusedSettings, Settings

Log = list[Second]


def both(groups: dict[str, list[list[Log]]], hold_s: float) -> dict[str, Any]:
    """Figures by group; a group is a list of probes, a probe a list of modems' logs."""
    out = {}
    for name, probes in groups.items():
        out[name] = {}
        for detector in ("published", "fused"):
            total = Scores()
            for probe in probes:
                total = total + scored(probe, detector, hold_s)
            out[name][detector] = total.by_fixes.figures()
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
    played = rounds([log])
    rows = [("by fixes", [r.by_fixes is True for r in played])]
    for name in ("published", "fused"):
        detectors = Detectors(Settings(detector=name, stop_after_s=hold_s, period_s=period_s([log])))
        rows.append((f"{name}, {hold_s:g} s" if name == "published" else name, states(played, detectors)))
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
    if args.json:
        print(json.dumps(result, indent=1))
        return
    keys = (
        "accuracy",
        "still_judged_moving",
        "moving_judged_still",
        "delay_s_median",
        "stop_delay_s_median",
    )
    print(f"{'':38} {'':10} " + " ".join(f"{key.removesuffix('_median'):>20}" for key in keys))
    for name, detectors in result["groups"].items():
        for detector, figures in detectors.items():
            cells = " ".join(f"{'–' if figures[key] is None else format(figures[key], '.4g'):>20}" for key in keys)
            print(f"{name:38} {detector:10} {cells}")
    print(json.dumps(result["cost"], indent=1))


if __name__ == "__main__":
    main()
