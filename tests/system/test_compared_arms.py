"""A campaign file's arms compared on the bench by one command: blocks under the same radio, and a report that pairs them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from support.rehearsals import processes_naming
from tandem_bench.run.programs import Owner

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(1750)]
BLOCKS, STRETCH_S = 3, 20
FILE = """\
format = "tandem-campaign-file/1"
name = "small-ab"
title = "two policies, small"
roles = ["isp_a", "isp_b"]
quiet_s = 3
[[step]]
name = "downloads"
experiment = "download"
repetitions = 30
[step.parameters]
kind = "mptcp"
path = "isp_a"
seconds = 3
steering = ["off", "drop"]
[step.conditions]
mobile = true
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    root = tmp_path_factory.mktemp("compared")
    Owner.of_caller().give(root)
    (root / "small.toml").write_text(FILE)
    argv = [sys.executable, "-m", "tandem_bench", "campaign", "--file", "small.toml", "--blocks", str(BLOCKS)]
    argv += ["--stretch", str(STRETCH_S), "--out", str(root / "out"), "--json"]
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True, timeout=1700, check=False)
    assert done.stdout, done.stderr
    return root / "out", json.loads(done.stdout)


def manifests(folder: Path) -> list[dict[str, Any]]:
    found = [json.loads(file.read_text()) for file in folder.glob("probe/*/runs/*.json")]
    return sorted(found, key=lambda m: m["started_monotonic_ns"])


def test_every_block_has_each_arm_once(played: tuple[Path, dict[str, Any]]) -> None:
    folder, told = played
    runs = manifests(folder)
    assert told["runs"] == len(runs) == 2 * BLOCKS
    blocks = [
        [m["steering"]["policy"] for m in block] for _, block in groupby(runs, lambda m: m["campaign"]["repetition"])
    ]
    assert [sorted(block) for block in blocks] == [["drop", "off"]] * BLOCKS


def test_runs_of_a_block_were_made_while_the_same_radio_was_played(played: tuple[Path, dict[str, Any]]) -> None:
    """But for those that the command itself reports as misplaced."""
    folder, told = played
    epoch = json.loads((folder / "campaign.json").read_text())["started_monotonic_ns"]
    slots = [
        (m["campaign"]["repetition"], int((m["started_monotonic_ns"] - epoch) / 1e9 // STRETCH_S))
        for m in manifests(folder)
    ]
    assert len({slot for _, slot in slots}) == len(slots)
    assert sum(slot // 3 != block for block, slot in slots) == told["misplaced"]
    levels: dict[int, list[float]] = {}
    with (folder / "truth.jsonl").open() as file:
        for line in map(json.loads, file):
            if line["type"] == "radio" and line["operator"] == "A":
                levels.setdefault(int(line["t_s"] / STRETCH_S + 1e-6), []).append(line["rsrp_dbm"])
    whole = {slot: found for slot, found in levels.items() if len(found) == 10 * STRETCH_S}
    for block in range(BLOCKS):
        assert len({tuple(whole[slot]) for slot in range(3 * block, 3 * block + 3) if slot in whole}) <= 1
    assert len({tuple(found) for found in whole.values()}) > 1


def test_the_report_compares_them(played: tuple[Path, dict[str, Any]]) -> None:
    folder, told = played
    keys = [column["key"] for column in told["arms"]["columns"]]
    rows = [dict(zip(keys, row, strict=True)) for row in told["arms"]["rows"]]
    failed = Counter(m["steering"]["policy"] for m in manifests(folder) if m["failure"])
    goodput = {row["arm"]: row for row in rows if row["outcome"] == "goodput_bit_per_s"}
    assert {arm: row["failed"] for arm, row in goodput.items()} == {arm: failed[arm] for arm in ("off", "drop")}
    assert goodput["drop"]["pairs"] + goodput["drop"]["left_out"] == BLOCKS
    assert "reorder_queue_bytes" in {row["outcome"] for row in rows}
    assert "Arms compared" in (folder / "report.html").read_text()


def test_nothing_runs_on(played: tuple[Path, dict[str, Any]]) -> None:
    assert processes_naming(str(played[0])) == []
