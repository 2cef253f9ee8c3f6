"""How like the world the scenarios are: the paper's and the drive logs' figures beside those of many seeds.

    python tests/bench/bench_scenario_likeness.py [--seeds N] [--json] [--logs DIR]

Polls are put at every tenth of a second in turn, so that no figure hangs on their phase. The detector is the paper's: moving
from a change of 6 dB between two polls of either modem, standing again after ten seconds without one.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from tandem_bench.scenario import Played, load, play, replay
from tandem_bench.truth import LEAST_DB, by_the_rule, states


def levels(played: Played, operator: str) -> list[float | None]:
    """Reported RSRP, one a tick."""
    return played.operators[operator].columns["rsrp_dbm"]


def truth_of(played: Played) -> list[bool]:
    """Moving or not, one a tick."""
    return states(next(iter(played.operators.values())).columns["speed_m_s"], 0.1)


def detector(played: Played, offset: int) -> tuple[float, float, float]:
    """(accuracy, share of moving polls called standing, share of standing polls called moving) for one phase of the polls."""
    moving, series = truth_of(played), [levels(played, o) for o in played.operators]
    said = by_the_rule(series, [offset] * len(series), 0.1)
    polls = [(said[tick], moving[tick]) for tick in range(offset + 10, len(moving), 10)]
    missed, false = polls.count((False, True)), polls.count((True, False))
    n_moving = sum(state for _, state in polls)
    return 1 - (missed + false) / len(polls), missed / max(1, n_moving), false / max(1, len(polls) - n_moving)


def step_shares(played: Played) -> dict[str, tuple[int, int]]:
    """By standing and moving: (comparisons over one second, those of 6 dB or more), over both modems and all poll phases."""
    moving = truth_of(played)
    out = {"standing": (0, 0), "moving": (0, 0)}
    for operator in played.operators:
        series = levels(played, operator)
        for tick in range(10, len(series)):
            a, b = series[tick], series[tick - 10]
            if a is None or b is None or moving[tick] != moving[tick - 10]:
                continue
            name = "moving" if moving[tick] else "standing"
            out[name] = (out[name][0] + 1, out[name][1] + (abs(a - b) >= LEAST_DB))
    return out


def events_in(played: Played, activity: str) -> dict[str, float]:
    """Per five minutes and operator in the phases of one activity: drops, drops above 8 dB, handovers, and those after a drop."""
    spans = [(p["t_s"], p["until_s"]) for p in played.phases if p["activity"] == activity]
    seconds = sum(b - a for a, b in spans)

    def of(kind: str) -> list[dict[str, Any]]:
        return [e for e in played.of_type(kind) if any(a <= e["t_s"] < b for a, b in spans)]

    drops, handovers = of("signal_drop"), of("handover")
    after = sum(any(h["operator"] == d["operator"] and 0 <= h["t_s"] - d["t_s"] <= 2 for d in drops) for h in handovers)
    per = 300 / seconds / len(played.operators) if seconds else 0.0
    return {
        "drops": len(drops) * per,
        "drops_above_8": sum(d["change_db"] < -8 for d in drops) * per,
        "handovers": len(handovers) * per,
        "handovers_after_a_drop": after * per,
    }


def likeness(seeds: int) -> dict[str, Any]:
    """All figures, means over ``seeds`` seeds."""
    out: dict[str, Any] = {}
    commutes = [play(load("commute", 180, seed)) for seed in range(1, seeds + 1)]
    scores = [detector(p, offset) for p in commutes for offset in range(0, 10, 3)]
    out["commute detector accuracy"] = statistics.mean(s[0] for s in scores)
    out["commute detector accuracy, worst seed"] = min(
        statistics.mean(detector(p, offset)[0] for offset in range(0, 10, 3)) for p in commutes
    )
    out["commute moving called standing"] = statistics.mean(s[1] for s in scores)
    shares = [step_shares(p) for p in commutes]
    for name in ("standing", "moving"):
        total, large = (sum(s[name][i] for s in shares) for i in (0, 1))
        out[f"commute 6 dB a modem-second, {name}"] = large / total
    for operator in "AB":
        counts = sorted(len(p.of_type("handover", operator)) for p in commutes)
        out[f"commute handovers {operator}, 10/50/90 %"] = [counts[len(counts) * q // 100] for q in (10, 50, 90)]
        first = [p.summary()["phases"][0]["operators"][operator] for p in commutes]
        for way in ("down", "up"):
            rates = sorted(f[f"{way}_bit_per_s"] / 1e6 for f in first)
            out[f"commute home {way} {operator}, least/median/most Mbit/s"] = [
                round(r, 1) for r in (rates[0], rates[len(rates) // 2], rates[-1])
            ]
    for activity in ("walk", "drive"):
        rides = [play(load(activity, 600, seed)) for seed in range(1, max(2, seeds // 3) + 1)]
        shares = [step_shares(p) for p in rides]
        out[f"{activity} 6 dB a modem-second"] = sum(s["moving"][1] for s in shares) / sum(
            s["moving"][0] for s in shares
        )
        events = [events_in(p, activity) for p in rides]
        mean = {key: statistics.mean(e[key] for e in events) for key in events[0]}
        out[f"{activity} drops per 5 min"] = mean["drops"]
        out[f"{activity} drops above 8 dB, share"] = mean["drops_above_8"] / mean["drops"]
        out[f"{activity} handovers per 5 min"] = mean["handovers"]
        out[f"{activity} handovers within 2 s after a drop, share"] = mean["handovers_after_a_drop"] / max(
            1e-9, mean["handovers"]
        )
    out["handovers driving over walking"] = out["drive handovers per 5 min"] / max(
        1e-9, out["walk handovers per 5 min"]
    )
    return out


def logs(folder: Path) -> dict[str, Any]:
    """The same comparison on the recorded drives, where they are."""
    out: dict[str, Any] = {}
    for kind in ("static-download", "drive-download", "drive-video"):
        pair = [folder / f"{kind}-{x}.csv" for x in "ab"]
        if all(p.exists() for p in pair):
            played = replay(*pair)
            for name, (total, large) in step_shares(played).items():
                if total > 5000:
                    out[f"log {kind} 6 dB a modem-second, {name}"] = large / total
            if kind != "static-download":
                out[f"log {kind} detector accuracy"] = statistics.mean(detector(played, o)[0] for o in range(0, 10, 3))
    return out


def main() -> None:
    """Print the table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--logs", type=Path, help="folder with the recorded drives")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    figures = likeness(args.seeds) | (logs(args.logs) if args.logs else {})
    if args.json:
        print(json.dumps(figures, indent=1))
        return
    for name, value in figures.items():
        print(f"{name:60} {f'{value:.4g}' if isinstance(value, float) else value}")


if __name__ == "__main__":
    main()
