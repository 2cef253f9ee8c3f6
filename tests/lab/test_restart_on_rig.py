"""The collector is killed in the midst of a drive and started again: what it measured before and after is one campaign, rightly scored.

A reboot differs from it by the boot id and the monotonic clock alone, so the same records are read again as those of another boot.
"""

import json
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit_on_rig import PROBE, KitOnRig, awaited, kit_on_rig

from tandem_bench.scenario import load as load_scenario
from tandem_bench.scenario import play
from tandem_server.analysis.evaluate import Evaluation, evaluate
from tandem_server.analysis.folder import load
from tandem_server.analysis.influx_source import InfluxSource
from tandem_server.analysis.source import Row
from tandem_server.analysis.summary import summary
from tandem_server.registry import Registry
from tandem_server.store import Influx, PrivateInflux

pytestmark = [pytest.mark.lab, pytest.mark.slow]
OTHER = "00000000-aaaa-4bbb-8ccc-000000000002"
HANDOVERS = 'SELECT count("seq") FROM "event" WHERE "kind" = $kind AND time >= '


class Rebooted(InfluxSource):
    """The records from ``since_utc_ns`` on as if another boot had made them, whose monotonic clock began 20 s before."""

    def __init__(self, store: Influx, boot: str, since_utc_ns: int) -> None:
        super().__init__(store)
        self._boot, self._since_utc_ns = boot, since_utc_ns

    def rows(self, measurement, probe, start_utc_ns, end_utc_ns, _fields=None) -> Iterator[Row]:
        return map(self._moved, super().rows(measurement, probe, start_utc_ns, end_utc_ns))

    def numbers(self, measurement: str, probe: str, boots: Collection[str]) -> np.ndarray:
        rows = self.rows(measurement, probe, None, None)
        found = [int(row.fields["seq"]) for row in rows if "seq" in row.fields and row.tags["boot"] in boots]
        return np.array(found, dtype=np.int64)

    def _moved(self, row: Row) -> Row:
        if row.utc_ns < self._since_utc_ns or "seq" not in row.fields:
            return row
        monotonic_ns = row.utc_ns - self._since_utc_ns + 20 * 10**9
        return Row(row.utc_ns, {**row.tags, "boot": OTHER}, {**row.fields, "monotonic_ns": monotonic_ns})


def drive(folder: Path, influxd: Path) -> int:
    """Killed once; when it was up again, UTC ns."""
    scene = play(load_scenario("drive", duration_s=60.0, seed=4))
    with kit_on_rig(folder, influxd, scene=scene) as kit:
        began_ns = kit.rig.epoch_monotonic_ns
        # The drive of 60 s moves from 15 s on: handovers come after 20 s and until 46 s.
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
        "format": "tandem-campaign/1", "scenario": "drive", "seed": 4, "probe": PROBE, "paths": paths, "stopped": None,
        "started_utc_ns": began_ns + offset_ns, "started_monotonic_ns": began_ns, "ended_utc_ns": time.time_ns(),
    }  # fmt: skip
    (folder / "campaign.json").write_text(json.dumps(campaign))
    return started_utc_ns


def kit_started(kit: KitOnRig) -> int:
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


def test_a_killed_collector_and_a_reboot_are_scored_rightly(tmp_path: Path, influxd: Path) -> None:
    folder = tmp_path / "campaign"
    started_utc_ns = drive(folder, influxd)
    with Registry(folder / "server" / "registry.sqlite") as registry:
        ledger = {run.id for run in registry.runs.all(PROBE)}
    with PrivateInflux(influxd, folder / "server" / "influxdb", 0) as private, private.client() as store:
        killed = evaluate(load(folder), InfluxSource(store), ledger)
        collector = json.loads((folder / "probe" / PROBE / "collector.json").read_text())
        boot = collector["boot"]
        (folder / "probe" / PROBE / "collector.json").write_text(json.dumps({**collector, "boot": OTHER}))
        rebooted = evaluate(load(folder), Rebooted(store, boot, started_utc_ns), ledger)
    for found in (killed, rebooted):
        assert_right(found)
    assert (killed.clock.boot, rebooted.clock.boot) == (None, boot)
    one, other = summary(killed), summary(rebooted)
    for key in ("handovers", "signal_drops", "radio_records", "polls_late", "records"):
        assert one[key] == other[key], key
    assert one["mobility"]["accuracy"] == pytest.approx(other["mobility"]["accuracy"], abs=0.01)


def assert_right(found: Evaluation) -> None:
    """Nothing of a life is lost, and what was between the lives is nobody's fault. What was not spooled yet had no number."""
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
