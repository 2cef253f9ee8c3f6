"""The papers' stack beside the stock one: the same links, seeds and sizes on two kernels, each in a virtual machine of the same kind.

``two_stacks.py --image FILE [--beside stock|FILE] [--repetitions 5] [--seconds 10] [--seed 1] [--json FILE] [--svg FILE]``. No root; QEMU
and the tests' virtual machine (``tests/system/vm``). One table and one figure: share of bytes on the faster link, goodput and reordering
with each kernel's own scheduler (v0.94: minSRTT); what Reno, LIA, OLIA and BALIA take of a link that they share with one TCP. Emulated:
rates are a few Mbit/s, look at ratios. ``--image stock`` on both sides must agree: the intervals overlap, or the exit status is 1.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path

import benching
from benching import Row, say, student

from tandem_bench.kernel import image
from tandem_bench.kernel.image import Image, ImageError
from tandem_bench.kernel.machine import REPOSITORY, VmError, run

SCENE = Path(__file__).with_name("stacks_scene.py")
CONGESTION = REPOSITORY / "build/congestion/coupled.bpf.o"
VALUES = (
    ("shares", "share_a", "share of link a", 1.0),
    ("shares", "goodput_bit_per_s", "goodput, Mbit/s", 1e6),
    ("shares", "wait_ms_mean", "wait for earlier data, mean, ms", 1.0),
    ("shares", "wait_ms_p95", "wait for earlier data, 95 % below, ms", 1.0),
    ("shared", "ratio", "Multipath TCP / one TCP", 1.0),
)
SIDES = ("image", "beside")
Cells = dict[tuple[str, str], tuple[int, float, float, float]]
"""By what is measured and the arm: n, mean, interval."""


def measured(found: Image, args: Namespace) -> tuple[Row, list[Row]]:
    """What the scene says on one kernel: the kernel, and its rows. VmError when it does not come to an end."""
    modules = "modprobe -a tun veth sch_tbf sch_htb 2>/dev/null; mkdir -p /run/netns"
    scene = f"python3 {SCENE} {args.repetitions} {args.seconds:g} {args.seed}"
    files = {"coupled.bpf.o": CONGESTION.read_bytes()} if found.stock and CONGESTION.exists() else {}
    command = f"{modules}; PYTHONPATH={REPOSITORY}/tests:$PYTHONPATH TANDEM_CONGESTION={{folder}}/coupled.bpf.o {scene}"
    machine = {"timeout_s": args.timeout, "memory_mb": 1024, "kernel": found.file}
    # Without the panic one in the scene leaves a machine that waits for its time to be up.
    done = run(["sh", "-c", command], files, **machine, append="oops=panic")
    if done.exit != 0:
        raise VmError(f"the scene ended with status {done.exit}: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    head, *rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return head, rows


def cells(rows: list[Row]) -> Cells:
    found: Cells = {}
    for cell, key, title, unit in VALUES:
        for arm in dict.fromkeys(row["arm"] for row in rows if row["cell"] == cell):
            mine = [row[key] for row in rows if (row["cell"], row["arm"]) == (cell, arm)]
            values = [value / unit for value in mine if value is not None]
            if values:
                found[title, arm] = (len(values), *student(values))
    return found


def table(heads: list[Row], sides: list[Cells]) -> tuple[list[str], int]:
    """Its lines, and in how many the two sides' intervals do not overlap."""
    lines = [f"{side}: Linux {head['linux']} ({_stack(head)})" for side, head in zip(SIDES, heads, strict=True)]
    lines.append(f"{'':48} {SIDES[0]:>36} {SIDES[1]:>36}")
    apart = 0
    for place in dict.fromkeys([*sides[0], *sides[1]]):
        words, bounds = [], []
        for side in sides:
            if place not in side:
                words.append("none")
                continue
            n, mean, low, high = side[place]
            words.append(f"{mean:.3g} ({low:.3g} to {high:.3g}), n={n}")
            bounds.append((low, high))
        overlap = len(bounds) == 2 and bounds[0][0] <= bounds[1][1] and bounds[1][0] <= bounds[0][1]
        apart += not overlap
        lines.append(f"{place[0] + ', ' + place[1]:48} {words[0]:>36} {words[1]:>36}{'' if overlap else '  apart'}")
    return lines, apart


def _stack(head: Row) -> str:
    return f"{head['kernel']}, scheduler {head['scheduler']}"


def drawn(file: Path, heads: list[Row], sides: list[Cells]) -> None:
    """One figure: a panel a quantity, both kernels beside each other with their intervals."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    titles = list(dict.fromkeys(title for side in sides for title, _ in side))
    figure, axes = pyplot.subplots(1, len(titles), figsize=(3.2 * len(titles), 3.4), layout="constrained")
    for panel, title in zip(axes, titles, strict=True):
        arms = list(dict.fromkeys(arm for side in sides for what, arm in side if what == title))
        for number, (head, side) in enumerate(zip(heads, sides, strict=True)):
            there = [(place, arm) for place, arm in enumerate(arms) if (title, arm) in side]
            points = [(place + 0.2 * number - 0.1, *side[title, arm][1:]) for place, arm in there]
            middles = [point[1] for point in points]
            bars = [[p[1] - p[2] for p in points], [p[3] - p[1] for p in points]]
            label = f"{SIDES[number]}: {_stack(head)}"
            panel.errorbar([p[0] for p in points], middles, yerr=bars, fmt="os"[number], capsize=3, label=label)
        panel.set_xticks(range(len(arms)), arms)
        panel.set_xlim(-0.6, len(arms) - 0.4)
        panel.set_title(title, fontsize=8)
        panel.set_ylim(0, 1.1 * panel.get_ylim()[1])
    axes[0].legend(fontsize=7)
    figure.savefig(file)


def main() -> int:
    parser = benching.parser(__doc__, json_file="every measurement as JSON too")
    parser.add_argument("--image", required=True, metavar="FILE|stock", help="a bzImage of Multipath TCP v0.94")
    parser.add_argument("--beside", default="stock", metavar="stock|FILE", help="the other side (default stock)")
    parser.add_argument("--repetitions", type=int, default=5, metavar="N", help="of each cell (default 5)")
    parser.add_argument("--seconds", type=float, default=10.0, metavar="S", help="of each measurement beside a TCP")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the random order (default 1)")
    parser.add_argument("--timeout", type=float, default=3600.0, metavar="S", help="for one machine")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="the table as a figure")
    args = parser.parse_args()
    heads: list[Row] = []
    sides = []
    raw = []
    try:
        images = [image.read(name) for name in (args.image, args.beside)]
        for found in images:
            say(f"{'stock' if found.stock else found.file}: booting")
            head, rows = measured(found, args)
            heads.append(head)
            raw.append({**head, "rows": rows})
            sides.append(cells(rows))
            say(f"{head['linux']}: {len(rows)} measurements")
    except ImageError as error:
        print(f"two_stacks.py: {error}", file=sys.stderr)
        return 2
    except VmError as error:
        print(f"two_stacks.py: {image.lack(error.console) or image.panic(error.console) or error}", file=sys.stderr)
        return 3
    lines, apart = table(heads, sides)
    print("\n".join(lines))
    benching.keep(args.json, raw)
    if args.svg is not None:
        drawn(args.svg, heads, sides)
    same = all(found.stock for found in images)
    return 1 if same and apart else 0


if __name__ == "__main__":
    sys.exit(main())
