"""The yardstick of the polling benchmark does the work that it is charged for."""

import subprocess
import sys
import time
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

from modem_desk import write_timeline

POLL = Path(__file__).parents[2] / "bench" / "shell-poller" / "poll.sh"


def test_shell_loop_writes_level_and_cell_of_both_modems_and_notices_mobility(tmp_path):
    ticks = {
        "a": [{"rsrp_dbm": -50.0 - i, "rssi_dbm": -67.0} for i in range(0, 80, 2)],  # 10 dB a second
        "b": [{"eci": 256 * 77 + 3, "rssi_dbm": -75.0}],
    }
    with ExitStack() as stack:
        for name in "ab":
            timeline = write_timeline(tmp_path / f"{name}.jsonl", ticks[name], tick_s=0.2)
            modem = subprocess.Popen(
                [
                    sys.executable, "-m", "tandem_bench", "modem", "--family", "generic", "--timeline", str(timeline),
                    "--link", str(tmp_path / name), "--epoch-ns", str(time.monotonic_ns()),
                ],
                stdout=subprocess.PIPE,
            )  # fmt: skip
            stack.enter_context(modem)
            stack.callback(modem.terminate)
            assert modem.stdout is not None
            assert modem.stdout.readline().startswith(b"ready")
        arguments = [str(POLL), str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "rows.csv"), "3"]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=240, check=True)
    rows = [row.split(",")[1:] for row in (tmp_path / "rows.csv").read_text().splitlines()]
    assert [row[0] for row in rows] == ["a", "b"] * 3
    assert all(row[1:] == ["-75", "-97", "77", "3"] for row in rows if row[0] == "b")
    levels = [int(row[2]) for row in rows if row[0] == "a"]
    assert sorted(levels, reverse=True) == levels
    changes = [(a, b) for a, b in pairwise(levels) if a != b]
    assert done.stdout.splitlines() == [f"mobility start: a from {a} to {b} dBm" for a, b in changes]
