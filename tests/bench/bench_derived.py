"""What derived series cost: processor time and time to make one hour of one probe (two modems, a poll a second), as a part of that hour,
and against the time that it took to write its records. Prints a table.

    python tests/bench/bench_derived.py [--probes N]
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "derived"))

from riding import HOUR, START, commute

from tandem_server.derived.making import Making
from tandem_server.store import PrivateInflux, find_influxd


def main() -> None:
    """Fill, make, make again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--probes", type=int, default=5, help="how many; default: %(default)s")
    probes = [f"probe-{n}" for n in range(1, parser.parse_args().probes + 1)]
    with (
        tempfile.TemporaryDirectory() as folder,
        PrivateInflux(find_influxd(), Path(folder), 0) as database,
        database.client() as store,
    ):
        began, lines = time.monotonic(), 0
        for seed, name in enumerate(probes):
            ride = commute(name, seed, hours=1, every_s=1)
            lines += len(ride.lines)
            for i in range(0, len(ride.lines), 1000):
                assert store.write(ride.lines[i : i + 1000]) == []
        written_s = (time.monotonic() - began) / len(probes)
        making = Making(store)
        print(f"{lines // len(probes)} records an hour and probe; made by a seed and written in {written_s:.2f} s")
        print(f"{'':24} {'ours, cpu':>10} {'whole':>8} {'of an hour':>11} {'by writing':>11}")
        for what in ("made", "made again, unchanged"):
            cpu_s, began = _cpu_s(), time.monotonic()
            for name in probes:
                making.hour(name, START)
            making.together([START])
            cpu_s, took_s = (_cpu_s() - cpu_s) / len(probes), (time.monotonic() - began) / len(probes)
            share, ratio = took_s / (HOUR / 1e9), took_s / written_s
            print(f"{what:24} {cpu_s:8.3f} s {took_s:6.3f} s {share:11.5%} {ratio:11.2f}")
    print(
        f"resident at most: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB, with the records of the rides"
    )


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
