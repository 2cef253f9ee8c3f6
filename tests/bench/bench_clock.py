"""What asking who vouches for the time costs, beside starting ``chronyc -c tracking`` for it. Prints a table; asserts nothing.

Needs the programs chronyd and chronyc (``--programs FOLDER`` where they are not installed: the package chrony unpacked). Starts a
chronyd of its own that sets no clock (-x); as root, in a network namespace of its own whose loopback is up (``unshare --net``).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tandem.app.clock import chrony, kernel


def cost_us(action: Callable[[], object], times: int) -> tuple[float, float]:
    """Processor time of this process and its children, and wall time, µs a time."""
    before, wall = os.times(), time.monotonic()
    for _ in range(times):
        action()
    after = os.times()
    spent = sum(after[:4]) - sum(before[:4])
    return spent / times * 1e6, (time.monotonic() - wall) / times * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--programs", type=Path, default=Path("/"), help="root of the unpacked package; default: %(default)s"
    )
    root = parser.parse_args().programs
    with tempfile.TemporaryDirectory() as name:
        conf = Path(name) / "chrony.conf"
        conf.write_text(f"local stratum 10\npidfile {name}/pid\n")
        daemon = subprocess.Popen(
            [root / "usr/sbin/chronyd", "-x", "-d", "-u", "root", "-f", conf], stderr=subprocess.DEVNULL
        )
        asked = chrony.Chrony()
        try:
            while asked.ask() is None:
                time.sleep(0.05)
            told = asked.ask()
            socket_us, socket_wall_us = cost_us(asked.ask, 5000)
            kernel_us, kernel_wall_us = cost_us(kernel.ask, 5000)
            argv = [str(root / "usr/bin/chronyc"), "-c", "-n", "tracking"]
            process_us, process_wall_us = cost_us(lambda: subprocess.run(argv, capture_output=True, check=True), 100)
        finally:
            daemon.terminate()
            daemon.wait()
    print(told)
    print(f"{'':24}{'processor µs':>14}{'wall µs':>10}{'ratio':>8}")
    for what, spent, wall in (
        ("chronyd by its socket", socket_us, socket_wall_us),
        ("the kernel", kernel_us, kernel_wall_us),
        ("starting chronyc", process_us, process_wall_us),
    ):
        print(f"{what:24}{spent:14.0f}{wall:10.0f}{spent / socket_us:8.1f}")


if __name__ == "__main__":
    main()
