"""The controllers in the kernel as long as a block lasts, also when what runs it is killed. Shared by lab test and benchmark."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OBJECT = Path(
    os.environ.get("TANDEM_CONGESTION") or Path(__file__).resolve().parents[2] / "build/congestion/coupled.bpf.o"
)


def command(*words: str) -> list[str]:
    """``tandem-server congestion`` with these words."""
    return [sys.executable, "-m", "tandem_server", "congestion", *words]


@contextmanager
def held() -> Iterator[subprocess.Popen[str]]:
    """The holder. AssertionError with its last line when it does not load them."""
    holder = subprocess.Popen(
        command("load", "--hold", "--object", str(OBJECT)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    try:
        first = holder.stdout.readline()
        assert first.startswith("loaded: lia, olia, balia"), holder.communicate()[1]
        yield holder
    finally:
        holder.terminate()
        holder.communicate(timeout=60)
