"""Processor time of polling two modems once a second: the paper's shell loop against the collector's poller.

usage: bench_poll_cpu.py [--seconds N] [--families F G] [--json]

Both sides poll the same two emulated modems, one side after the other, with fresh modems each. Counted are user and system
time of the polling process and of all its children. ``total`` includes start-up; ``polling`` leaves out loading Python and its
modules (the shell has next to no start-up), which a collector that runs for weeks pays once.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SHELL = [str(HERE / "shell-poller" / "poll.sh")]
COLLECTOR = [sys.executable, str(HERE / "shell-poller" / "collector_poller.py")]
BENCH = [sys.executable, "-m", "tandem_bench"]


@dataclass(frozen=True)
class Cost:
    """What one side took. ``polls`` of both modems together, ``answered`` of them with a level in the answer."""

    polls: int
    answered: int
    total_s: float
    polling_s: float

    @property
    def per_poll_ms(self) -> float:
        """Processor time of one poll of one modem."""
        return self.polling_s / max(1, self.polls) * 1e3


def write_timeline(path: Path, seconds: int) -> None:
    """A level that wanders and a cell that changes every ten seconds: nothing here may depend on a standing answer."""
    header = {"format": "tandem-timeline/1", "operator": path.stem, "tick_s": 1.0, "duration_s": seconds}
    fixed = {
        "rsrq_db": -10.0,
        "sinr_db": 9.0,
        "plmn": "00101",
        "tac": 77,
        "pci": 9,
        "earfcn": 1300,
        "band": 3,
        "rat": "LTE",
    }
    with path.open("w") as out:
        print(json.dumps(header), file=out)
        for t in range(seconds):
            level = -95.0 - 7 * (t % 3)
            print(
                json.dumps(
                    {
                        "t_s": float(t),
                        "rsrp_dbm": level,
                        "rssi_dbm": level + 30,
                        "eci": 256 * (1 + t // 10),
                        "registered": True,
                    }
                    | fixed
                ),
                file=out,
            )


@contextmanager
def modem(folder: Path, name: str, family: str) -> Iterator[Path]:
    """An emulated modem; gives the name of its port."""
    link = folder / name
    arguments = [*BENCH, "modem", "--family", family, "--timeline", str(folder / f"{name}.jsonl"), "--link", str(link)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or not process.stdout.readline().startswith("ready"):
                raise SystemExit("bench_poll_cpu: the emulated modem did not start")
            yield link
        finally:
            process.terminate()


def spent(arguments: list[str]) -> tuple[float, str]:
    """Run to the end; user and system seconds of it and its children, and what it printed."""
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, text=True
    )  # waited for by wait4, which tells the times
    assert process.stdout is not None
    printed = process.stdout.read()
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"bench_poll_cpu: {arguments[0]} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, printed


def by_shell(folder: Path, ports: list[Path], polls: int) -> Cost:
    """The paper's loop."""
    rows = folder / "shell.csv"
    total_s, _ = spent([*SHELL, *map(str, ports), str(rows), str(polls)])
    table = [line.split(",") for line in rows.read_text().splitlines()]
    return Cost(len(table), sum(bool(row[2]) for row in table), total_s, total_s)


def by_collector(_folder: Path, ports: list[Path], polls: int) -> Cost:
    """The collector's poller."""
    total_s, printed = spent([*COLLECTOR, *map(str, ports), str(polls)])
    said = json.loads(printed)
    return Cost(said["polls"], said["answered"], total_s, said["ended_s"] - said["began_s"])


def measure(seconds: int, families: list[str]) -> dict[str, Cost]:
    """Both sides, one after the other."""
    costs = {}
    for name, side in (("shell", by_shell), ("collector", by_collector)):
        with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
            folder = Path(temporary)
            for path in "ab":
                write_timeline(folder / f"{path}.jsonl", seconds + 60)
            ports = [
                stack.enter_context(modem(folder, path, family)) for path, family in zip("ab", families, strict=True)
            ]
            costs[name] = side(folder, ports, seconds)
    return costs


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="polls of each modem, one a second (default 60)")
    parser.add_argument(
        "--families", nargs=2, default=["generic", "generic"], help="of the two modems (default generic)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    costs = measure(args.seconds, args.families)
    shell, collector = costs["shell"], costs["collector"]
    ratios = {"polling": shell.per_poll_ms / collector.per_poll_ms, "total": shell.total_s / collector.total_s}
    if args.json:
        sides = {name: vars(cost) | {"per_poll_ms": cost.per_poll_ms} for name, cost in costs.items()}
        print(json.dumps({"families": args.families, **sides, "shell_to_collector": ratios}, indent=2))
        return
    print(f"{'side':<10} {'polls':>6} {'answered':>9} {'total s':>8} {'polling s':>10} {'ms a poll':>10}")
    for name, cost in costs.items():
        seconds = f"{cost.total_s:>8.3f} {cost.polling_s:>10.3f} {cost.per_poll_ms:>10.2f}"
        print(f"{name:<10} {cost.polls:>6} {cost.answered:>9} {seconds}")
    print(
        f"the shell takes {ratios['polling']:.1f} times the collector's processor time ({ratios['total']:.1f} with start-up)"
    )


if __name__ == "__main__":
    main()
