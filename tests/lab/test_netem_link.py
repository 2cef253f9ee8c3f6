"""The netem link, where the kernel has netem; elsewhere it says why not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tandem_bench.link.netem import lack

SCRIPT = Path(__file__).parents[1] / "support/netem_link.py"


def test_it_shapes_as_it_is_told_or_says_why_it_cannot() -> None:
    why = lack()
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False, timeout=250)
    if why is not None:
        assert done.returncode == 3
        assert done.stdout == f"cannot: {why}\n"
        assert "; hint: " in why
        pytest.skip(why)
    assert done.returncode == 0, done.stdout + done.stderr
