"""Mohan's question: does what Multipath TCP gains over the best single path fall from standing still to driving?

    ./kit run python tests/bench/reproduce_mobility.py [--replay A.csv B.csv | --from-run DIR] [--quick] [--json FILE] [--plot FILE.svg]

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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mobility_stretches import Stretch, draw, write_timelines
from trend_pictures import COLOURS, labelled, picture, points
from trends import Bench, Progress, finish, options, played_bench, settle, spread, table

from tandem_bench.scenario import Played, ScenarioError, from_run, load, play, replay

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
WORDS = {
    "tcp a": "TCP over A",
    "tcp b": "TCP over B",
    "mptcp": "Multipath TCP",
    "over best": "over the better TCP",
    "of sum": "of the sum of both",
}


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
    return {
        **row,
        "primary": told["primary"],
        "begun_s": told["begun_s"],
        "ways": {name: told.get(name) for name in GOODPUTS},
    }


def summed(args: Namespace, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each activity."""
    rows = []
    names = (
        *GOODPUTS,
        "offered a",
        "offered b",
        "over mean",
        "of sum",
        "imbalance",
        "share",
        "handovers",
        "signal_drops",
    )
    for activity in args.activities:
        group = [f for f in found if f["activity"] == activity]
        row: dict[str, Any] = {"activity": activity, **{name: spread(f[name] for f in group).median for name in names}}
        row["over best"] = spread(f["over best"] for f in group)
        gains = [f["over best"] for f in group if f["over best"] is not None]
        row["behind"] = sum(g < 1 for g in gains)
        rows.append({**row, "failed": sum(f["failed"] for f in group)})
    return rows


def drawn(args: Namespace, found: list[dict[str, Any]], foot: str) -> None:
    """Goodputs on the left, gains on the right: every stretch a dot, medians as bars."""
    with picture(args.plot, "Multipath TCP over two operators by activity", foot, 1, 2) as (rates, gains):
        for axis, names in ((rates, GOODPUTS), (gains, ("over best", "of sum"))):
            width = 0.8 / len(names)
            for number, name in enumerate(names):
                for place, activity in enumerate(args.activities):
                    values = sorted(f[name] for f in found if f["activity"] == activity and f[name] is not None)
                    x = place + (number - (len(names) - 1) / 2) * width
                    label = WORDS[name] if place == 0 else None
                    axis.bar(x, spread(values).median or 0, width * 0.9, color=COLOURS[number], alpha=0.35, label=label)
                    points(axis, x, values, COLOURS[number], width * 0.5)
            axis.set_xticks(range(len(args.activities)), args.activities)
        gains.axhline(1, color="#000000", lw=0.8)
        labelled(rates, "goodput: medians, every stretch", "", "Mbit/s")
        labelled(gains, "what Multipath TCP came to", "", "ratio of goodputs")


def main() -> int:
    """See the module."""
    parser = options(__doc__)
    parser.add_argument(
        "--activities",
        nargs="+",
        metavar="WORD",
        help="still walk cycle tram train drive (default: still walk tram drive)",
    )
    parser.add_argument("--seconds", type=float, help="of each transfer (default: 12)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--scenario", default="commute", help="a scenario's name or file (default: %(default)s)")
    what.add_argument(
        "--replay", nargs=2, action="append", metavar=("A.csv", "B.csv"), help="recorded drives; may be given again"
    )
    what.add_argument("--from-run", type=Path, metavar="DIR", help="a finished campaign's folder")
    args = parser.parse_args()  # fmt: skip
    settle(args, FULL, QUICK)
    played, slot_s = sources(args), args.seconds + AROUND_S
    stretches = [s for a in args.activities for s in draw(played, a, args.repetitions, slot_s, args.seed)]
    slots = planned(args, stretches)
    print(f"{len(slots)} slots of {slot_s:g} s: {len(slots) * slot_s / 60:.1f} minutes", file=sys.stderr, flush=True)
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
    columns = [
        ("activity", ""),
        ("n", "d"),
        ("TCP A", ".1f"),
        ("TCP B", ".1f"),
        ("MPTCP", ".1f"),
        ("over best", ".2f"),
        ("q1", ".2f"),
    ]
    columns += [
        ("q3", ".2f"),
        ("behind", "d"),
        ("over mean", ".2f"),
        ("of sum", ".2f"),
        ("TCP best/worst", ".2f"),
        ("most loaded", ".2f"),
    ]
    columns += [("handovers", ".0f"), ("drops", ".0f"), ("offered A", ".1f"), ("B", ".1f"), ("failed", "d")]  # fmt: skip
    print(
        "medians; goodputs in Mbit/s; over best: Multipath TCP over the better of both TCPs, of the same stretch; behind: how often below 1"
    )
    table(columns, [
        [r["activity"], r["over best"].n, *(r[name] for name in GOODPUTS), *r["over best"][1:], r["behind"], r["over mean"], r["of sum"],
         r["imbalance"], r["share"], r["handovers"], r["signal_drops"], r["offered a"], r["offered b"], r["failed"]] for r in rows
    ])  # fmt: skip
    print(f"slots begun too late and played again: {missed - len(slots)}; left out: {len(slots)}")
    finish(args, setting, rows, found)
    if args.plot is not None:
        drawn(args, found, f"{links}; {args.congestion_control}, n = {args.repetitions}, kernel {setting['kernel']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
