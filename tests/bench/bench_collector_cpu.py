"""Where the collector's processor time goes, by thread and by program that it starts: at rest, and while it measures.

usage: bench_collector_cpu.py [--seconds N] [--pairs N] [--source FOLDER...] [--profile FOLDER] [--json]

Root. The real collector on the bench's rig (two modems at 1 Hz, three paths, server and database): first at rest, then through
simultaneous pairs (MPTCP and a TCP run on each operator's path, with captures), one every ten seconds. Shown is the time in per mille of
one core. With several --source (folders of ``tandem``'s sources) each is measured in turn, and the ratio is to the first. Each takes
--seconds, ten for each pair, and about a minute more.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # what tests share

import benching
from benching import say, table

from support.running_kit import RunningKit, awaited, find_influxd, running_kit

HERE = Path(__file__).resolve().parent
EVERY_S = 10.0
SETTLED_S = 5.0
"""The start's own work (identification, path set-up) is over by then; it is told apart."""
OWN = HERE.parents[1] / "collector" / "src"


@dataclass(frozen=True)
class Phase:
    """Seconds of processor time by part, over ``wall_s``."""

    name: str
    wall_s: float
    parts: dict[str, float]
    total_s: float

    @property
    def per_mille(self) -> float:
        """Of one core."""
        return self.total_s / self.wall_s * 1e3


class Account:
    """Asks ``collector_account`` for its account."""

    def __init__(self, file: Path) -> None:
        self._file, self._told = file, 0
        self._before: dict[str, Any] = {"threads": {}, "children": {}, "total": 0.0}
        self._since_s = time.monotonic()

    def phase(self, name: str) -> Phase:
        """What was spent since the last call."""
        pid = int(self._file.with_suffix(".pid").read_text())
        os.kill(pid, signal.SIGUSR1)
        lines = awaited("the account", self._lines)
        now, wall_s = json.loads(lines[-1]), time.monotonic() - self._since_s
        self._told, before = len(lines), self._before
        self._before, self._since_s = now, time.monotonic()
        parts: Counter[str] = Counter()
        for kind in ("threads", "children"):
            for part, spent in now[kind].items():
                parts[part if kind == "threads" else f"→ {part}"] += spent - before[kind].get(part, 0.0)
        return Phase(name, wall_s, dict(parts), now["total"] - before["total"])

    def _lines(self) -> list[str]:
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        return lines if len(lines) > self._told else []


def pairs(kit: RunningKit, count: int) -> None:
    """``count`` pairs, one every ten seconds."""
    for _ in range(count):
        until = time.monotonic() + EVERY_S
        kit.measured("--pairing", "simultaneous", "--seconds", "3")
        time.sleep(max(0.0, until - time.monotonic()))


def measure(source: Path, seconds: float, number: int, *, profile: Path | None) -> list[Phase]:
    influxd = find_influxd()
    if influxd is None:
        raise SystemExit("bench_collector_cpu: no influxd; hint: ./kit test once, or TANDEM_INFLUXD")
    say(f"{source}: starting the kit")
    with tempfile.TemporaryDirectory() as temporary:
        file = (profile or Path(temporary)) / "account"
        file.unlink(missing_ok=True)
        account = Account(file)
        program = ["env", f"PYTHONPATH={source}", sys.executable, str(HERE / "collector_account.py"), str(file)]
        with running_kit(Path(temporary) / "kit", influxd, program + ["--profile"] * (profile is not None)) as kit:
            time.sleep(SETTLED_S)
            phases = [account.phase("start")]
            say(f"{source}: {seconds:g} s at rest, then {number} pairs")
            time.sleep(seconds)
            phases.append(account.phase("at rest"))
            if number:
                pairs(kit, number)
                phases.append(account.phase(f"{number} pairs"))
    return phases


def show(source: Path, phases: Sequence[Phase], first: Sequence[Phase]) -> None:
    """A table: parts down, phases across."""
    print(f"\n{source} (start in s, then ‰ of a core)")
    names = sorted({name for p in phases for name in p.parts}, key=lambda n: -phases[-1].parts.get(n, 0.0))
    rows = [{"part": name, **{p.name: _cell(p, p.parts.get(name, 0.0)) for p in phases}} for name in names]
    rows.append({"part": "total", **{p.name: _cell(p, p.total_s) for p in phases}})
    ratios = {p.name: f"{_ratio(p, f):.2f}" for p, f in zip(phases, first, strict=True)}
    table([(name, "", name) for name in ("part", *ratios)], [*rows, {"part": "to the first", **ratios}])


def _cell(phase: Phase, spent_s: float) -> str:
    return f"{spent_s:.2f} s" if phase.name == "start" else f"{spent_s / phase.wall_s * 1e3:.2f}"


def _ratio(phase: Phase, first: Phase) -> float:
    return phase.total_s / first.total_s if phase.name == "start" else phase.per_mille / first.per_mille


def _plain(phases: Sequence[Phase], first: Sequence[Phase]) -> list[dict[str, Any]]:
    return [{**vars(p), "to_the_first": round(_ratio(p, f), 3)} for p, f in zip(phases, first, strict=True)]


def main() -> int:
    parser = benching.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="at rest (default 60)")
    parser.add_argument("--pairs", type=int, default=4, help="afterwards, one every ten seconds (default 4)")
    parser.add_argument("--source", type=Path, nargs="+", default=[OWN], help="collectors to compare (this one)")
    parser.add_argument("--profile", type=Path, metavar="FOLDER", help="write each thread's profile there (pstats)")
    args = parser.parse_args()
    measured = [(s, measure(s.resolve(), args.seconds, args.pairs, profile=args.profile)) for s in args.source]
    if args.json:
        first = measured[0][1]
        print(json.dumps([{"source": str(s), "phases": _plain(phases, first)} for s, phases in measured]))
        return 0
    for source, phases in measured:
        show(source, phases, measured[0][1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
