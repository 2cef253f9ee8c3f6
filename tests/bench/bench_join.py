"""What does the delayed SYN of Multipath TCP cost, by the size of the download? In place of Chen's Figure 8 (§4.1.2; a patched kernel).

    ./kit run python tests/bench/bench_join.py [--repetitions 20] [--quick] [--json FILE]

Root; namespaces of its own, the real endpoint. Path a is the Wi-Fi and the primary one, path b the cellular; round trips and the Wi-Fi's
loss are those of the paper's Table 3. Each size is downloaded as Linux does it (the second subflow joins late) and with the request held
until the second subflow is there, in random order within a repetition. Prints, by size: the time between the two SYNs; the part of the
download before the second path could carry; what a SYN at once would save by the model of the report's figure chen-join; and what the
held request saved. Asserts nothing.
"""

from __future__ import annotations

import random
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from benching import Column
from trends import Bench, Row, bench, finish, in_random_order, interval, options, settle

from tandem.experiment.results import quantile
from tandem_server.analysis.measured import Download, Setting
from tandem_server.report.figures.papers.chen import alone_share, saved_by_model, syn_gap_ms

FULL = {"sizes": [8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20], "repetitions": 20}
QUICK = {"sizes": [128 << 10], "repetitions": 1}
MBIT, RTT_MS, QUEUE_MS, LOSS_A = {"a": 20.0, "b": 12.0}, {"a": 24.0, "b": 61.0}, 200.0, 0.016


def downloaded(line: dict[str, Any], size: int) -> Download | None:
    """As the report reads it; None of a failed one."""
    result = line["result"]
    if line["failure"] is not None or result is None:
        return None
    flows = [s for s in result["subflows"] if s["path"] is not None]
    of = Setting("bench", "", "", "", {}, {}, ("a", "b"), None, None, None)
    return Download(
        of, "", "single", "mptcp", "a", "", size, 2, result["goodput_bit_per_s"], result["duration_s"], result["connect_ms"],
        {s["path"]: s["share"] for s in flows}, {}, {},
        {s["path"]: s["handshake_rtt_ms"] for s in flows if s["handshake_rtt_ms"] is not None}, {},
        join_ms={s["path"]: s["join_delay_ms"] for s in flows if s["join_delay_ms"] is not None}, held=result["held_ms"] is not None,
    )  # fmt: skip


def all_runs(made: Bench, args: Namespace) -> list[Row]:
    rows = []
    cells = [(size, held) for size in args.sizes for held in (False, True)]
    for repetition, (size, held) in in_random_order(args, cells):
        asked = {"kind": "mptcp", "path": "a", "subflows": 2, "join_before_request": held, "bytes": size}
        line = made.experiment("download", **asked, congestion_control=args.congestion_control, whoami=False)
        rows.append({"repetition": repetition, "bytes": size, "held": held, "download": downloaded(line, size)})
    return rows


def by_size(rows: Sequence[Row], args: Namespace) -> list[Row]:
    """A row for each size. ``saved``: within a repetition, 1 less held over delayed; its median with a 95 % interval (resampled)."""
    chance, found = random.Random(args.seed), []
    for size in args.sizes:
        mine = {
            (r["repetition"], r["held"]): r["download"]
            for r in rows
            if r["bytes"] == size and r["download"] is not None
        }
        delayed = [d for (_, held), d in mine.items() if not held]
        both = [i for i in range(args.repetitions) if {(i, False), (i, True)} <= mine.keys()]
        saved = [1 - mine[i, True].duration_s / mine[i, False].duration_s for i in both]
        row: Row = {"bytes": size, "n": len(delayed), "joined": sum(bool(d.join_ms) for d in delayed)}
        for name, of in (("gap_ms", syn_gap_ms), ("alone", alone_share), ("modelled", saved_by_model)):
            row[name] = quantile([v for d in delayed if (v := of(d)) is not None], 0.5)
        row |= {"delayed_ms": quantile([1000 * (d.duration_s or 0.0) for d in delayed], 0.5), "pairs": len(saved)}
        row["saved"], row["low"], row["high"] = interval(saved, chance)
        found.append(row)
    return found


COLUMNS: list[Column] = [
    ("size", "d", "bytes"),
    ("n", "d", "n"),
    ("joined", "d", "joined"),
    ("time ms", ".0f", "delayed_ms"),
    ("SYN gap ms", ".0f", "gap_ms"),
    ("before it carries", ".2f", "alone"),
    ("modelled saving", ".3f", "modelled"),
    ("pairs", "d", "pairs"),
    ("measured saving", ".3f", "saved"),
    ("95 % from", ".3f", "low"),
    ("to", ".3f", "high"),
]


def main() -> int:
    parser = options(__doc__, controller="reno")
    parser.add_argument("--sizes", type=int, nargs="+", metavar="BYTES", help="(8 KB to 2 MB)")
    args = parser.parse_args()
    settle(args, FULL, QUICK)
    with bench(MBIT, RTT_MS, QUEUE_MS) as made:
        made.pair.tell("a", f"down loss {LOSS_A}")
        links = f"{MBIT} Mbit/s, {RTT_MS} ms, {LOSS_A} of a's packets lost, queues of {QUEUE_MS:g} ms"
        setting = made.setting(args, links)
        rows = all_runs(made, args)
    return finish(args, setting, COLUMNS, by_size(rows, args), rows)


if __name__ == "__main__":
    sys.exit(main())
