"""Fits the fused detector to a folder of drive logs, and says what that is worth on days and routes it was not fitted to.

    python tests/bench/fit_mobility.py --logs DIR [--write] [--json] [--ceiling]

What is fitted: the weights of the windows' spreads and of the new cells (ridge regression of the logarithm of the odds, on what
``score.moving_by_fixes`` knows), and when evidence is full and when it starts a movement (a small grid). Nested: the logs of one day
(of one route) are set aside; from the others alone, weights are fitted with each of their days left out in turn, the grid's best is
chosen by those, the weights are fitted anew, and only then the logs set aside are judged. Intervals: whole logs drawn anew, a
thousand times. ``--write`` fits to all logs and writes the parameters that ship (``tandem/mobility/fitted.py``). ``--ceiling``: what
gradient-boosted trees reach on the same split, with RSSI, SINR and RSRQ beside what the detector looks at (needs scikit-learn).
"""

from __future__ import annotations

import datetime
import itertools
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import benching
import numpy as np
from benching import say
from numpy.typing import NDArray

import tandem.mobility
from tandem.mobility.detectors import Detectors, ModemEvidence
from tandem.mobility.gnettrack import Second, read
from tandem.mobility.score import Scores, moving_by_fixes, period_s, rounds, scored, scores, states
from tandem.mobility.settings import FusedSettings, Settings

Array = NDArray[np.float64]
GRID: dict[str, tuple[float, ...]] = {
    "full_odds": (1.0, 3.0), "start_s": (3.0, 6.0, 10.0), "most_s": (8.0, 16.0, 32.0),
}  # fmt: skip
FALSE_START = 15.0
"""A false start costs as much as so many seconds judged wrongly: it begins a run."""
RIDGE = 10.0
EVERY = 5
"""Seconds lie so near each other that a fifth of them says as much of the weights as all."""
SQUARE_DEG, SAME_ROUTE = 0.0025, 0.4
HOLD_S = 120.0
TREES = {"max_iter": 100, "learning_rate": 0.1, "max_leaf_nodes": 15, "min_samples_leaf": 100}
TREES |= {"l2_regularization": 5, "early_stopping": False}


@dataclass(frozen=True)
class Log:
    name: str
    seconds: list[Second]
    quantities: Array
    """A row a second; NaN while too few polls tell."""
    moving: Array
    """1, 0, NaN where nobody knows."""
    at_s: Array

    @property
    def day(self) -> str:
        return datetime.datetime.fromtimestamp(self.seconds[0].at_s, datetime.UTC).date().isoformat()


def log_of(name: str, seconds: list[Second]) -> Log:
    settings = FusedSettings(period_s=period_s([seconds]))
    modem, rows = ModemEvidence(settings), []
    for second in seconds:
        modem.feed(second.record("a", second.at_s - seconds[0].at_s))
        rows.append(modem.quantities or [math.nan] * len(settings.weights))
    moving = [math.nan if m is None else float(m) for m in moving_by_fixes(seconds)]
    return Log(name, seconds, np.array(rows), np.array(moving), np.array([float(s.at_s) for s in seconds]))


def weights(logs: Iterable[Log]) -> Array:
    """Weights and, last, the bias."""
    logs = list(logs)
    x = np.concatenate([log.quantities[::EVERY] for log in logs])
    y = np.concatenate([log.moving[::EVERY] for log in logs])
    known = ~np.isnan(y) & ~np.isnan(x).any(axis=1)
    x, y = np.column_stack([x[known], np.ones(known.sum())]), y[known]
    penalty = np.diag([RIDGE] * (x.shape[1] - 1) + [0.0])
    w = np.zeros(x.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
        step = np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + penalty, x.T @ (y - p) - penalty @ w)
        w = w + step
        if np.abs(step).max() < 1e-6:
            break
    return w


CANDIDATES = [
    found
    for values in itertools.product(*GRID.values())
    if (found := dict(zip(GRID, values, strict=True)))["start_s"] <= found["most_s"]
]


def cost(log: Log, w: Array) -> Array:
    """Of each candidate on one log: wrong seconds and what false starts cost. Evidence as in ``FusedDetector``, polls a second apart."""
    full, start, most = (np.array([c[name] for c in CANDIDATES]) for name in GRID)
    odds = np.nan_to_num(log.quantities @ w[:-1] + w[-1])
    rates = np.clip(odds[:, None] / full, -1, 1)
    gaps = np.clip(np.diff(log.at_s, prepend=log.at_s[0]), 0, FusedSettings().successive_periods)
    evidence, mobile, total = np.zeros(len(CANDIDATES)), np.zeros(len(CANDIDATES), bool), np.zeros(len(CANDIDATES))
    for i in range(len(odds)):
        evidence = np.clip(evidence + rates[i - 1] * gaps[i] if i else evidence, 0, most)
        now = np.where(mobile, evidence > 0, evidence >= start)
        if log.moving[i] == 0:
            total += now + FALSE_START * (now & ~mobile)
        elif log.moving[i] == 1:
            total += ~now
        mobile = now
    return total


def settings_of(logs: list[Log], groups: dict[str, str]) -> FusedSettings:
    """Fitted to these logs alone; the grid's best by groups left out in turn."""
    total = np.zeros(len(CANDIDATES))
    for group in sorted({groups[log.name] for log in logs}):
        inner = [log for log in logs if groups[log.name] != group]
        if inner:
            w = weights(inner)
            total += sum(cost(log, w) for log in logs if groups[log.name] == group)
    w = weights(logs)
    return FusedSettings(
        weights=tuple(float(x) for x in w[:-1].round(4)), bias=round(float(w[-1]), 4), **CANDIDATES[int(total.argmin())]
    )


def by_day(logs: list[Log]) -> dict[str, str]:
    return {log.name: log.day for log in logs}


def by_route(logs: list[Log]) -> dict[str, str]:
    """Logs that share ``SAME_ROUTE`` of the squares (some 250 m) that either passes are one route, and so on from log to log."""

    def square(latitude_deg: float, longitude_deg: float) -> tuple[int, int]:
        return round(latitude_deg / SQUARE_DEG), round(longitude_deg / SQUARE_DEG / 1.6)

    squares = {log.name: {square(*s.place) for s in log.seconds if s.place} for log in logs}
    route = {log.name: log.name for log in logs}
    for one, other in itertools.combinations(squares, 2):
        a, b = squares[one], squares[other]
        if a and b and len(a & b) / len(a | b) >= SAME_ROUTE:
            old, new = route[other], route[one]
            route = {name: new if r == old else r for name, r in route.items()}
    return route


def nested(logs: list[Log], groups: dict[str, str]) -> tuple[dict[str, Scores], dict[str, Scores]]:
    """Each log's scores, by what was fitted without its group; and those of one that never stops once it has started."""
    own, latched = {}, {}
    for group in sorted(set(groups.values())):
        say(f"without {group}")
        fitted = settings_of([log for log in logs if groups[log.name] != group], groups)
        for log in logs:
            if groups[log.name] == group:
                played = rounds([log.seconds])
                period = period_s([log.seconds])
                settings = Settings(detector="fused", period_s=period)
                mobile = states(played, Detectors(settings, replace(fitted, period_s=period)))
                own[log.name] = scores(played, mobile)
                latched[log.name] = scores(played, list(itertools.accumulate(mobile, lambda a, b: a or b)))
    return own, latched


def summary(found: dict[str, Scores]) -> dict[str, Any]:
    """Pooled figures by both truths, the worst log, and intervals of 95 % over logs drawn anew."""
    out: dict[str, Any] = {}
    rng = np.random.default_rng(1)
    for truth in ("by_fixes", "by_speed"):
        single = [getattr(s, truth) for s in found.values()]
        total = sum(single[1:], single[0])
        shares = sorted((s.right / s.seconds, name) for name, s in zip(found, single, strict=True) if s.seconds)
        right, of = (np.array([getattr(s, k) for s in single], float) for k in ("right", "seconds"))
        drawn = rng.integers(0, len(single), (1000, len(single)))
        pooled = right[drawn].sum(1) / of[drawn].sum(1)
        worst = np.where(of > 0, right / np.maximum(of, 1), 1.0)[drawn].min(1)
        out[truth] = {
            **total.figures(),
            "accuracy_95": [round(float(x), 4) for x in np.quantile(pooled, (0.025, 0.975))],
            "mean_of_logs": round(float(np.mean([x for x, _ in shares])), 4),
            "worst": [[name, round(x, 4)] for x, name in shares[:4]],
            "worst_95": [round(float(x), 4) for x in np.quantile(worst, (0.025, 0.975))],
        }
    return out


def ceiling(logs: list[Log], groups: dict[str, str]) -> dict[str, Any]:
    """Trees on many windows of level, RSSI, SINR and RSRQ; each second by itself."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    wide = {log.name: np.column_stack([log.quantities, *more(log)]) for log in logs}
    right: dict[str, tuple[int, int]] = {}
    for group in sorted(set(groups.values())):
        train = [log for log in logs if groups[log.name] != group]
        x = np.concatenate([wide[log.name][::EVERY] for log in train])
        y = np.concatenate([log.moving[::EVERY] for log in train])
        model = HistGradientBoostingClassifier(**TREES).fit(x[~np.isnan(y)], y[~np.isnan(y)])
        for log in logs:
            if groups[log.name] == group:
                known = ~np.isnan(log.moving)
                said = model.predict(wide[log.name][known])
                right[log.name] = int((said == log.moving[known]).sum()), int(known.sum())
    shares = sorted((r / n, name) for name, (r, n) in right.items() if n)
    accuracy = sum(r for r, _ in right.values()) / sum(n for _, n in right.values())
    return {"accuracy": round(accuracy, 4), "worst": [[name, round(x, 4)] for x, name in shares[:4]]}


def more(log: Log) -> Iterable[Array]:
    """Spreads of RSSI, SINR, RSRQ and level over 10 to 320 s, the range of the level, its steps, and changes of cell."""
    names = (("rssi_dbm",), ("sinr_db",), ("rsrq_db", "ecno_db"), ("rsrp_dbm", "rscp_dbm"))
    cell = np.array([hash((s.fields.get("eci"), s.fields.get("ci"))) for s in log.seconds])
    changed = np.concatenate([[0], np.cumsum(cell[1:] != cell[:-1])])
    for window_s in (10, 20, 40, 80, 160, 320):
        first = np.searchsorted(log.at_s, log.at_s - window_s, side="right")
        rows = np.arange(len(cell)) + 1
        yield (changed - changed[first]).astype(float)
        for name in names:
            level = np.array([next((float(s.fields[n]) for n in name if n in s.fields), math.nan) for s in log.seconds])
            there = ~np.isnan(level)
            powers = (there, np.nan_to_num(level), np.nan_to_num(level) ** 2)
            sums = [np.concatenate([[0], np.cumsum(x)]) for x in powers]
            number, total, squares = (s[rows] - s[first] for s in sums)
            with np.errstate(divide="ignore", invalid="ignore"):
                yield np.sqrt(np.maximum(0, squares / number - (total / number) ** 2))
            steps = np.concatenate([[0], np.cumsum(np.nan_to_num(np.abs(np.diff(level, prepend=level[0]))))])
            yield (steps[rows] - steps[first]) / (rows - first)


def write(logs: list[Log]) -> Path:
    fitted = settings_of(logs, by_day(logs))
    hours = sum(len(log.seconds) for log in logs) / 3600
    file = Path(tandem.mobility.__file__).with_name("fitted.py")
    file.write_text(
        f'"""Parameters of the fused detector. Made by tests/bench/fit_mobility.py --write; not to be changed by hand.\n\n'
        f"Fitted to {len(logs)} logs of {len({log.day for log in logs})} days, {hours:.1f} hours of one operator and one kind of "
        f'telephone, on {datetime.datetime.now(datetime.UTC).date()}.\n"""\n\n'
        f"WINDOWS_S = {fitted.windows_s}\nWEIGHTS = {fitted.weights}\nBIAS = {fitted.bias}\n"
        + "".join(f"{name.upper()} = {getattr(fitted, name)}\n" for name in GRID)
    )
    return file


def main() -> None:
    parser = benching.parser(__doc__)
    parser.add_argument("--logs", type=Path, required=True, help="folder with drive logs")
    parser.add_argument("--write", action="store_true", help="write the parameters that ship")
    parser.add_argument(
        "--ceiling", action="store_true", help="what trees reach on the same split (needs scikit-learn)"
    )
    parser.add_argument("--baselines", action="store_true", help="the published rule, and one that never stops")
    args = parser.parse_args()
    logs = [log_of(file.stem, read(file.read_bytes())) for file in sorted(args.logs.glob("*.csv"))]
    if args.write:
        print(write(logs))
        return
    result: dict[str, Any] = {}
    for name, groups in (("day", by_day(logs)), ("route", by_route(logs))):
        own, latched = nested(logs, groups)
        result[f"fused, by {name} ({len(set(groups.values()))} groups)"] = summary(own)
        if args.baselines:
            result[f"fused, by {name}, that never stops"] = summary(latched)
        if args.ceiling:
            result[f"trees, by {name}"] = {"by_fixes": ceiling(logs, groups)}
    if args.baselines:
        published = {log.name: scored([log.seconds], "published", HOLD_S) for log in logs}
        result[f"published, {HOLD_S:g} s"] = summary(published)
    if args.json:
        print(json.dumps(result, indent=1))
        return
    for name, truths in result.items():
        for truth, figures in truths.items():
            print(f"{name}, {truth}: {json.dumps(figures)}")


if __name__ == "__main__":
    main()
