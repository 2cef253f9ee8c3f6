"""Forty spools damaged at random: each is read, or refused with one line, and every count is exact (more: tests/bench/fuzz_spool.py)."""

import subprocess
import sys
from pathlib import Path

FUZZER = Path(__file__).resolve().parents[2] / "bench/fuzz_spool.py"


def test_damaged_spools_are_read_or_refused_and_counted() -> None:
    done = subprocess.run(
        [sys.executable, str(FUZZER), "--rounds", "40", "--seconds", "3600", "--seed", "7"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "40 damaged spools, 0 wrong" in done.stdout
