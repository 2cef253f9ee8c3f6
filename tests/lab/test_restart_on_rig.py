"""The collector is killed in the midst of a drive and started again: what it measured before and after is one campaign, rightly scored.

A reboot, which differs by the boot id and the monotonic clock alone: tests/unit/server/report/test_report_interrupted.py."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from support.running_kit import PROBE, RunningKit, awaited, running_kit
from tandem_bench.scenario import load as load_scenario
from tandem_bench.scenario import play
from tandem_server.analysis.evaluate import evaluate
from tandem_server.analysis.folder import load
from tandem_server.analysis.records import InfluxSource
from tandem_server.registry import Registry
from tandem_server.store import PrivateInflux

pytestmark = [pytest.mark.lab, pytest.mark.slow]
SCENE = Path(__file__).with_name("incidents.toml")
"""A calibrated drive of a minute has hardly a handover."""
HANDOVERS = 'SELECT count("seq") FROM "event" WHERE "kind" = $kind AND time >= '


def drive(folder: Path, influxd: Path) -> None:
    scene = play(load_scenario(SCENE))
    with running_kit(folder, influxd, scene=scene) as kit:
        began_ns = kit.rig.epoch_monotonic_ns
        # Of 90 s; handovers come from 48 to 69 s.
        awaited("its first handover is in the database", lambda: kit.query(HANDOVERS + "0", kind="handover"))
        kit.collector_cut()
        started_utc_ns = kit_started(kit)
        again_s = (time.monotonic_ns() - began_ns) / 1e9
        # Some machines take long to start a collector: the first handover that it can see is waited for.
        if any(e["type"] == "handover" and e["t_s"] > again_s for e in scene.events):
            since = HANDOVERS + str(started_utc_ns)
            awaited("a handover in its second life", lambda: kit.query(since, kind="handover"))
        # It goes on noticing until it has ended; the truth tells only of what was played when it is written.
        kit.programs.end(kit.collector, 90)
        kit.rig.write_truth(folder / "truth.jsonl")
        paths = {path.name: {"operator": path.operator} for path in kit.rig.probe_paths()}
    offset_ns = time.time_ns() - time.monotonic_ns()
    campaign: dict[str, Any] = {
        "format": "tandem-campaign/1", "scenario": "incidents", "seed": 3, "probe": PROBE, "paths": paths, "stopped": None,
        "started_utc_ns": began_ns + offset_ns, "started_monotonic_ns": began_ns, "ended_utc_ns": time.time_ns(),
    }  # fmt: skip
    (folder / "campaign.json").write_text(json.dumps(campaign))


def kit_started(kit: RunningKit) -> int:
    """When the collector's second life began, as it recorded it."""
    found = awaited(
        "its second start is in the database",
        lambda: [
            row[0]
            for series in kit.query('SELECT "seq" FROM "event" WHERE "kind" = $kind', kind="collector_start")
            for row in series["rows"]
        ][1:],
    )
    return int(found[0])


def test_a_killed_collector_is_scored_rightly(tmp_path: Path, influxd: Path) -> None:
    """Nothing of a life is lost, and what was between the lives is nobody's fault. What was not spooled yet had no number."""
    folder = tmp_path / "campaign"
    drive(folder, influxd)
    with Registry(folder / "server" / "registry.sqlite") as registry:
        ledger = {run.id for run in registry.runs.all(PROBE)}
    with PrivateInflux(influxd, folder / "server" / "influxdb", 0) as private, private.client() as store:
        found = evaluate(load(folder), InfluxSource(store), ledger)
    assert found.clock.boot is None
    assert found.account.lost == 0
    assert found.account.missing == []
    assert len(found.recorded.starts) == 1
    assert found.handover_score is not None
    assert found.handover_score.true > 0
    assert (found.handover_score.missed, found.handover_score.false_events) == ([], [])
    assert found.drop_score is not None
    assert found.drop_score.missed == []
    assert found.mobility_score is not None
    assert found.mobility_score.accuracy is not None
    cut_off = [line for line in found.missing if "it was cut off" not in line]
    assert cut_off == []
