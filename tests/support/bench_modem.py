"""One emulated modem on a pseudo-terminal, standing still in LTE coverage, that fails when told to."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROW = {
    "rat": "LTE", "registered": True, "rsrp_dbm": -92.0, "rsrq_db": -9.0, "sinr_db": 14.0, "rssi_dbm": -63.0,
    "plmn": "00101", "tac": 0x1A2B, "eci": 0x05201002, "pci": 54, "earfcn": 1300, "band": 3,
}  # fmt: skip


@dataclass
class BenchModem:
    """``port``: the link to its terminal."""

    port: Path
    control: Path

    def play(self, fault: dict[str, Any]) -> None:
        """See ``tandem-bench modem --help``."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.control))
            client.sendall(json.dumps(fault).encode() + b"\n")
            with client.makefile() as answers:
                assert json.loads(answers.readline()) == {"ok": True}


@contextmanager
def bench_modem(family: str, folder: Path) -> Iterator[BenchModem]:
    """It answers when this is entered."""
    folder.mkdir(parents=True)
    header = {"format": "tandem-timeline/1", "operator": "A", "tick_s": 1.0, "duration_s": 600.0}
    rows = [{"t_s": float(i), **ROW} for i in range(600)]
    timeline = folder / "timeline.jsonl"
    timeline.write_text("".join(json.dumps(row) + "\n" for row in [header, *rows]))
    modem = BenchModem(folder / "port", folder / "control.sock")
    argv = [
        *(
            sys.executable,
            "-m",
            "tandem_bench",
            "modem",
            "--family",
            family,
            "--timeline",
            str(timeline),
            "--seed",
            "1",
        ),
        *("--epoch-ns", str(time.monotonic_ns()), "--link", str(modem.port), "--control", str(modem.control)),
    ]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("ready")
            yield modem
        finally:
            process.terminate()
