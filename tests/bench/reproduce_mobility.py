"""Mohan's question: does what Multipath TCP gains over the best single path fall from standing still to driving?

    ./kit run python tests/bench/reproduce_mobility.py [--replay A.csv B.csv | --from-run DIR] [--quick] [--json FILE]

Root; namespaces of its own, the real endpoint, ``download``; links that follow the scenario engine's radio (the bench's commute, a seed a
repetition), recorded drives or a finished campaign. Each stretch is played twice, somewhere in one random order: once for TCP over
both operators at the same time (their links share nothing), once for Multipath TCP, primary drawn. So both meet the same radio, which no
drive can offer. Paper: 300 MB each, five months, 54 ms, minSRTT, MPTCP and TCP at the same time over the same modems.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benching import Column, say
from trends import Bench, Progress, finish, options, played_bench, quartiles, settle, spread

from tandem_bench.scenario import TICK_S, Played, ScenarioError, Timeline, from_run, load, play, replay

FULL = {"activities": ["still", "walk", "tram", "drive"], "seconds": 12.0, "repetitions": 5}
QUICK = {"activities": ["still", "drive"], "seconds": 1.0, "repetitions": 1}
AROUND_S = 3.0
"""Of a slot, for the experiment's start and end."""
LATEST_S = 1.5
"""A download under way later than this after its slot began meets another part of its stretch: it does not count."""
LEAD_S = 4.0
PASSES = 3
"""Slots that a busy machine missed are played again, so often at most."""
COMMUTE_S = 180.0
GOODPUTS = ("tcp a", "tcp b", "mptcp")
PATHS = {"a": "A", "b": "B"}
"""The operator behind each path."""


@dataclass(frozen=True)
class Stretch:
    """So many seconds of what was played, from ``start_s`` on. Played again, it has the same cells, rates, handovers and outages."""

    activity: str
    played: Played
    start_s: float
    seconds: float

    def events(self, kind: str) -> int:
        """How many of them (``handover``, ``signal_drop``) both operators together have within."""
        return sum(self.start_s <= e["t_s"] < self.start_s + self.seconds for e in self.played.of_type(kind))

    def offered_mbit_s(self, path: str, seconds: float) -> float:
        """The mean capacity on the way to the probe, over the first ``seconds``; outages as nothing."""
        down = self.played.operators[PATHS[path]].columns["down_bit_per_s"]
        begin, ticks = round(self.start_s / TICK_S), round(seconds / TICK_S)
        return float(sum(down[begin : begin + ticks])) / ticks / 1e6

    def told(self) -> dict[str, object]:
        scenario = {"scenario": self.played.name, "seed": self.played.seed}
        events = {f"{kind}s": self.events(kind) for kind in ("handover", "signal_drop")}
        return {"activity": self.activity, **scenario, "start_s": self.start_s, "seconds": self.seconds, **events}


def draw(sources: Sequence[Played], activity: str, count: int, seconds: float, seed: int) -> list[Stretch]:
    """``count`` stretches in which nothing but ``activity`` happens, from the sources in turn, each begun at a random tick. SystemExit
    with one line when no source has one that long."""
    drawn = random.Random(f"tandem stretches {activity} {seed}")
    able = []
    for played in sources:
        phases = [p for p in played.phases if p["activity"] == activity and p["until_s"] - p["t_s"] >= seconds]
        if phases:
            able.append((played, phases))
    if not able:
        raise SystemExit(f"nothing played has {seconds:g} s of {activity!r}; hint: other --activities, or --seconds")
    found = []
    for number in range(count):
        played, phases = able[number % len(able)]
        room = [p["until_s"] - p["t_s"] - seconds for p in phases]
        (phase,) = drawn.choices(phases, [r + TICK_S for r in room])
        start = phase["t_s"] + drawn.random() * (phase["until_s"] - phase["t_s"] - seconds)
        found.append(Stretch(activity, played, round(start - start % TICK_S, 1), seconds))
    return found


def write_timelines(slots: Sequence[Stretch], folder: Path, seed: int) -> dict[str, Path]:
    """The slots one after the other, as a timeline for each path's link."""
    written = {}
    for path, operator in PATHS.items():
        columns: dict[str, list[object]] = {}
        for slot in slots:
            begin, ticks = round(slot.start_s / TICK_S), round(slot.seconds / TICK_S)
            for name, values in slot.played.operators[operator].columns.items():
                columns.setdefault(name, []).extend(values[begin : begin + ticks])
        whole_s = round(len(columns["outage"]) * TICK_S, 1)
        written[path] = folder / f"timeline-{path}.jsonl"
        Timeline(operator, "stretches", seed, whole_s, columns).write(written[path])
    return written


@dataclass(frozen=True)
class Slot:
    """A stretch, played for one way of using it. ``primary``: None for TCP over both."""

    number: int
    stretch: Stretch
    primary: str | None


def sources(args: Namespace) -> list[Played]:
    """What is played; SystemExit with one line when it cannot be."""
    try:
        if args.replay is not None:
            return [replay(a, b, None, args.seed) for a, b in args.replay]
        if args.from_run is not None:
            return [from_run(args.from_run, None, args.seed)]
        return [play(load(args.scenario, COMMUTE_S, args.seed + n)) for n in range(args.repetitions)]
    except ScenarioError as error:
        raise SystemExit(str(error)) from None


def planned(args: Namespace, stretches: list[Stretch]) -> list[Slot]:
    """Every stretch twice, in a random order."""
    drawn = random.Random(f"tandem mobility {args.seed}")
    slots = [Slot(n, stretch, None) for n, stretch in enumerate(stretches)]
    slots += [Slot(n, stretch, drawn.choice("ab")) for n, stretch in enumerate(stretches)]
    drawn.shuffle(slots)
    return slots


def download(made: Bench, args: Namespace, kind: str, path: str) -> dict[str, Any]:
    """One of them, as the experiment tells it."""
    line = made.experiment(
        "download", kind=kind, path=path, seconds=args.seconds, congestion_control=args.congestion_control, whoami=False
    )  # fmt: skip
    result, failure = line["result"] or {}, line["failure"]
    found: dict[str, Any] = {"failure": None if failure is None else failure["reason"]}
    found["first_sample_ns"] = line["first_sample_ns"]
    found["mbit_s"] = result["goodput_bit_per_s"] / 1e6 if failure is None else None
    found["subflows"] = [
        {name: s[name] for name in ("path", "share", "rtt_ms_median", "join_delay_ms")}
        for s in result.get("subflows", [])
    ]
    return found


def measure(
    made: Bench, args: Namespace, slots: list[Slot], epoch_ns: int, found: dict[int, dict[str, Any]]
) -> list[Slot]:
    """Put into ``found``, by the stretch's number, what each way came to; the slots whose downloads were not under way in time."""
    missed = []
    progress, slot_s = Progress(len(slots), "slots"), args.seconds + AROUND_S
    with ThreadPoolExecutor(2) as both:
        for place, slot in enumerate(slots):
            due_s = epoch_ns / 1e9 + place * slot_s
            time.sleep(max(0.0, due_s - time.monotonic()))
            lines: dict[str, dict[str, Any]] = {}
            if time.monotonic() - due_s < LATEST_S:
                if slot.primary is None:
                    tcp = both.map(lambda p: download(made, args, "tcp", p), "ab")
                    lines = {f"tcp {path}": line for path, line in zip("ab", tcp, strict=True)}
                else:
                    lines = {"mptcp": download(made, args, "mptcp", slot.primary)}
            begun = [line["first_sample_ns"] for line in lines.values() if line["first_sample_ns"] is not None]
            told = found.setdefault(slot.number, {"primary": None, "begun_s": {}})
            if not lines or any(at / 1e9 - due_s > LATEST_S for at in begun):
                missed.append(slot)
            else:
                told.update(lines)
                told["primary"] = slot.primary or told["primary"]
                told["begun_s"] |= {name: round(min(begun, default=0) / 1e9 - due_s, 3) for name in lines}
            progress.step(f"(last: {slot.stretch.activity}, {'TCP' if slot.primary is None else 'Multipath TCP'})")
    return missed


def figures(stretch: Stretch, told: dict[str, Any], seconds: float) -> dict[str, Any]:
    """A stretch's row: goodputs, what Multipath TCP gained; None where something failed."""
    rates = {name: told.get(name, {}).get("mbit_s") for name in GOODPUTS}
    row: dict[str, Any] = {**stretch.told(), **rates}
    row["failed"] = sum(told[name]["failure"] is not None for name in GOODPUTS if name in told)
    row["offered a"], row["offered b"] = (stretch.offered_mbit_s(path, seconds) for path in "ab")
    subflows = told.get("mptcp", {}).get("subflows", [])
    row["share"] = max((s["share"] for s in subflows), default=None)
    a, b, together = (rates[name] for name in GOODPUTS)
    whole = a is not None and b is not None and together is not None and min(a, b) > 0
    row["over best"] = together / max(a, b) if whole else None
    row["over mean"] = together / ((a + b) / 2) if whole else None
    row["of sum"] = together / (a + b) if whole else None
    row["imbalance"] = max(a, b) / min(a, b) if whole else None
    ways = {name: told.get(name) for name in GOODPUTS}
    return {**row, "primary": told["primary"], "begun_s": told["begun_s"], "ways": ways}


def summed(args: Namespace, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each activity."""
    rows = []
    names = [where for _, form, where in COLUMNS if isinstance(where, str) and form != "d" and where != "activity"]
    for activity in args.activities:
        group = [f for f in found if f["activity"] == activity]
        row: dict[str, Any] = {"activity": activity, **{name: spread(f[name] for f in group).median for name in names}}
        row["over best"] = spread(f["over best"] for f in group)
        gains = [f["over best"] for f in group if f["over best"] is not None]
        row["behind"] = sum(g < 1 for g in gains)
        rows.append({**row, "failed": sum(f["failed"] for f in group)})
    return rows


COLUMNS: list[Column] = [
    ("activity", "", "activity"),
    ("n", "d", lambda r: r["over best"].n),
    *((name.upper(), ".1f", name) for name in GOODPUTS),
    *quartiles("over best", ".2f", "over best"),
    ("behind", "d", "behind"),
    ("over mean", ".2f", "over mean"),
    ("of sum", ".2f", "of sum"),
    ("TCP best/worst", ".2f", "imbalance"),
    ("most loaded", ".2f", "share"),
    ("handovers", ".0f", "handovers"),
    ("drops", ".0f", "signal_drops"),
    ("offered A", ".1f", "offered a"),
    ("B", ".1f", "offered b"),
    ("failed", "d", "failed"),
]


def main() -> int:
    parser = options(__doc__)
    activities = "still walk cycle tram train drive (default: still walk tram drive)"
    parser.add_argument("--activities", nargs="+", metavar="WORD", help=activities)
    parser.add_argument("--seconds", type=float, help="of each transfer (default: 12)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--scenario", default="commute", help="a scenario's name or file (default: %(default)s)")
    recorded = {"nargs": 2, "action": "append", "metavar": ("A.csv", "B.csv")}
    what.add_argument("--replay", help="recorded drives; may be given again", **recorded)
    what.add_argument("--from-run", type=Path, metavar="DIR", help="a finished campaign's folder")
    args = parser.parse_args()  # fmt: skip
    settle(args, FULL, QUICK)
    played, slot_s = sources(args), args.seconds + AROUND_S
    stretches = [s for a in args.activities for s in draw(played, a, args.repetitions, slot_s, args.seed)]
    slots = planned(args, stretches)
    say(f"{len(slots)} slots of {slot_s:g} s: {len(slots) * slot_s / 60:.1f} minutes")
    source = ", ".join(sorted({p.name for p in played}))
    links = f"two operators of {source!r}, queues as of its base stations; {args.seconds:g} s a transfer"
    told: dict[int, dict[str, Any]] = {}
    setting: dict[str, Any] | None = None
    missed = 0
    for _ in range(1 if args.quick else PASSES):
        with tempfile.TemporaryDirectory() as folder:
            timelines = write_timelines([slot.stretch for slot in slots], Path(folder), args.seed)
            with played_bench(timelines, LEAD_S) as (made, epoch_ns):
                setting = setting or made.setting(args, links)
                slots = measure(made, args, slots, epoch_ns, told)
        missed += len(slots)
        if not slots:
            break
    setting = {**(setting or {}), "slots_begun_late": missed, "slots_left_out": len(slots)}
    found = [figures(stretch, told[n], args.seconds) for n, stretch in enumerate(stretches)]
    rows = summed(args, found)
    print(
        "medians; goodputs in Mbit/s; over best: Multipath TCP over the better of both TCPs, of the same stretch; behind: how often below 1"
    )
    print(f"slots begun too late and played again: {missed - len(slots)}; left out: {len(slots)}")
    return finish(args, setting, COLUMNS, rows, found)


if __name__ == "__main__":
    sys.exit(main())
