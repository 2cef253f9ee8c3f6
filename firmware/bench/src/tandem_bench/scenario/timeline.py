"""Timelines: what one operator's modem hears and its link carries, ten times a second. Format ``tandem-timeline/1``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem_bench.scenario.model import TICK_S

FORMAT = "tandem-timeline/1"

COLUMNS = (
    "rsrp_dbm", "rsrq_db", "sinr_db", "rssi_dbm", "plmn", "tac", "eci", "pci", "earfcn", "band", "rat", "registered",
    "speed_m_s", "down_bit_per_s", "up_bit_per_s", "rtt_ms", "buffer_down_bytes", "buffer_up_bytes", "loss_down", "loss_up",
    "outage", "queue",
)  # fmt: skip
"""Keys of a tick beside ``t_s``. Radio values are None where nothing is heard; ``queue`` is ``kept`` or ``dropped``."""


@dataclass(frozen=True)
class Timeline:
    """One operator's ticks, by column: ``columns[name][i]`` holds at ``i · TICK_S`` seconds."""

    operator: str
    scenario: str
    seed: int
    duration_s: float
    columns: Mapping[str, list[Any]]

    def __len__(self) -> int:
        return len(self.columns["outage"])

    def tick(self, i: int) -> dict[str, Any]:
        """One line of the file after its header."""
        return {"t_s": round(i * TICK_S, 1), **{name: self.columns[name][i] for name in COLUMNS}}

    def lines(self) -> Iterator[str]:
        """The file, line by line, without line breaks."""
        header = {
            "format": FORMAT,
            "operator": self.operator,
            "tick_s": TICK_S,
            "duration_s": self.duration_s,
            "scenario": self.scenario,
            "seed": self.seed,
        }
        yield json.dumps(header)
        for i in range(len(self)):
            yield json.dumps(self.tick(i))

    def write(self, path: Path) -> None:
        """Write the file whole: under another name first, so that no reader meets half of it."""
        unfinished = path.with_name(path.name + ".tmp")
        with unfinished.open("w", encoding="utf-8", newline="\n") as out:
            out.writelines(line + "\n" for line in self.lines())
        unfinished.replace(path)
