"""Paths steered by the radio of a drive, by the collector as it is: orders are records and stand in the manifest, a kill leaves none."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.running_kit import RunningKit, awaited, running_kit
from tandem_bench.run.programs import READY_S
from tandem_bench.scenario import load, play

pytestmark = [pytest.mark.lab, pytest.mark.slow]

USUAL, LOW = "threshold_db = 6.0", "threshold_db = 1.0"
"""A drive has a fall of so little all the time, whichever polls see it."""
PAIRS, NO_PAIRS = 'on_mobility_start = "simultaneous"', 'on_mobility_start = "off"'
"""A pair of the collector's own would have a run of these tests refused."""
DECIDED = 'SELECT "action", "cause", "predicted_s", "policy" FROM "event" WHERE "kind" = $kind'


@pytest.fixture(scope="module")
def kit(influxd: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningKit]:
    scene = play(load("drive", duration_s=240, seed=2))

    def edited(text: str) -> str:
        for usual, here in ((USUAL, LOW), (PAIRS, NO_PAIRS)):
            assert text.count(usual) == 1
            text = text.replace(usual, here)
        return text

    with running_kit(tmp_path_factory.mktemp("rig"), influxd, scene=scene, edited=edited) as running:
        yield running


def actions(kit: RunningKit) -> set[str]:
    return {row[1] for series in kit.query(DECIDED, kind="steering") for row in series["rows"]}


def flags(kit: RunningKit) -> str:
    return kit.run("probe", "ip", "mptcp", "endpoint", "show")


def test_a_drop_makes_its_path_backup_and_every_decision_is_told(kit: RunningKit) -> None:
    running = kit.experiment("--kind", "mptcp", "--path", "wifi", "--seconds", "3000", "--steering", "drop")
    awaited("a path was made backup and restored", lambda: {"backup", "restore"} <= actions(kit))
    steering: dict[str, Any] = kit.stopped(running)["steering"]
    assert steering["policy"] == "drop"
    made = steering["decisions"]
    assert {d["path"] for d in made} <= {"a", "b"}
    assert all(d["predicted_s"] > 0 and d["cause"] == "signal_drop" for d in made if d["action"] == "backup")
    orders = [(d["action"], d["path"]) for d in made if d["action"] in ("backup", "restore")]
    assert [action for action, _ in orders] == ["backup", "restore"] * (len(orders) // 2)
    assert [path for _, path in orders[::2]] == [path for _, path in orders[1::2]]
    awaited("all decisions are in the database", lambda: actions(kit) == {d["action"] for d in made})
    told = json.loads(kit.tool("probe", "tandem", "steering", "simulate", str(kit.probe), "--json"))
    (run,) = told["runs"]
    assert run["steered_by"] == "drop"
    assert run["policies"]["drop"]["backup"] > 0
    assert run["policies"]["off"]["backup"] == 0


def test_a_killed_collector_leaves_nothing_backup_and_the_next_goes_on(kit: RunningKit) -> None:
    running = kit.experiment("--kind", "mptcp", "--path", "wifi", "--seconds", "3000", "--steering", "drop")
    awaited("a path is backup", lambda: "backup" in flags(kit))
    os.kill(kit.collector.pid, signal.SIGKILL)
    awaited("the guard takes the order back", lambda: "backup" not in flags(kit))
    kit.programs.end(kit.collector)
    running.communicate(timeout=240)
    kit.collector = kit.programs.start("collector", kit.collector.argv, READY_S)
    (run,) = awaited("it measures again", lambda: kit.measured("--kind", "mptcp", "--path", "wifi", "--seconds", "3"))
    assert run["failure"] is None
    assert run["steering"]["policy"] == "off"
    assert "backup" not in flags(kit)
