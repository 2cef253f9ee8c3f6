"""What a round of health costs: processor time of its parts, and of what a process each round would take instead.

usage: bench_health.py [--rounds N] [--json]

No root. On this machine's own files, and on a Raspberry Pi 4's as a tree (files on a disk instead of the kernel's: what a sensor's driver
takes is not in it). Processor time, not time of day. "process": starting and reaping one program that does nothing, as ``vcgencmd
get_throttled`` every round would at least take. Ratios are to that, in one run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "health"))

from pi_tree import plant

from tandem.app.health.machine_state import MachineState
from tandem.app.health.roots import Roots
from tandem.app.health.wrong import Wrong
from tandem.schema.record import Record


def cpu_us(act: Callable[[], object], times: int) -> float:
    """Processor time of one, children included, in µs."""
    act()
    began = time.process_time() + _children_s()
    for _ in range(times):
        act()
    return (time.process_time() + _children_s() - began) / times * 1e6


def _children_s() -> float:
    import resource

    told = resource.getrusage(resource.RUSAGE_CHILDREN)
    return told.ru_utime + told.ru_stime


def parts(machine: MachineState, times: int) -> dict[str, float]:
    """By part, µs each."""
    wrong = Wrong()

    def health() -> None:
        fields = machine.fields()
        Record.make("health", {}, fields, 1)
        wrong.supply(machine.supply, 1)
        if machine.room is not None:
            wrong.disk(machine.room, 1)
        wrong.events()

    return {
        "look (each second)": cpu_us(machine.look, times),
        "health (each 10 s)": cpu_us(health, times),
        "temperatures (each minute)": cpu_us(machine.temperatures, times),
        "cards (each hour)": cpu_us(machine.cards, times),
    }


def share_per_mille(told: dict[str, float]) -> float:
    """Of one core, in ‰."""
    every_s = {
        "look (each second)": 1,
        "health (each 10 s)": 10,
        "temperatures (each minute)": 60,
        "cards (each hour)": 3600,
    }
    return sum(us / every_s[name] for name, us in told.items()) / 1e3


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=500, metavar="N", help="of each part; default: %(default)s")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tandem-bench-health-") as folder:
        root = Path(folder)
        machines = {
            "this machine": MachineState(Roots(), root, 1),
            "a Pi 4's files": MachineState(plant("pi4", root), root, 1),
        }
        told = {name: parts(machine, args.rounds) for name, machine in machines.items()}
    process = cpu_us(lambda: subprocess.run(["/bin/true"], check=True), max(20, args.rounds // 10))
    result = {
        "process_us": process,
        "parts_us": told,
        "share_per_mille": {name: share_per_mille(found) for name, found in told.items()},
        "health_to_process": {name: found["health (each 10 s)"] / process for name, found in told.items()},
    }
    if args.json:
        print(json.dumps(result, indent=1))
        return 0
    for name, found in told.items():
        print(f"{name}: {result['share_per_mille'][name]:.3f} ‰ of a core")  # type: ignore[index]
        for part, us in found.items():
            print(f"  {part:28} {us:8.0f} µs   {us / process:6.3f} of a process")
    print(f"a process that does nothing: {process:.0f} µs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
