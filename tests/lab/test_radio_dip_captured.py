"""A delay that is put on one of two links for a while, in a real capture: the join finds when it began to hurt and when it was over."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_trace_core_tshark import carried, second_path
from traced_download import MPTCP, download

from support.two_paths import lab_with
from tandem_server.analysis.captures import Packets, of_campaign
from tandem_server.analysis.evaluate import evaluate
from tandem_server.analysis.folder import load
from tandem_server.analysis.recorded import Event
from tandem_server.analysis.records import Clock
from tandem_server.cli.main import main

pytestmark = [*lab_with(), pytest.mark.slow]

ADDRESSES = {"a": "10.64.0.2", "b": "10.64.1.2"}
DELAY_MS = 500
SECOND = 10**9


class Dip:
    """While it is there what comes down link 0 takes half a second. Told in the wall clock's nanoseconds."""

    def __init__(self) -> None:
        self.start_ns = self.end_ns = 0

    def play(self, _client: Any, _server: Any, links: Any) -> None:
        links[0].set("down", "buffer_bytes", 30_000)  # 20 ms: what is above the level is the dip's, not a full buffer's
        carried(links[0], 4_500_000)  # three seconds at least
        self.start_ns = time.time_ns()
        links[0].set("down", "delay_us", 1000 * DELAY_MS)
        carried(links[1], bytes_of(links[1]) + 1_500_000)  # two seconds at least
        self.end_ns = time.time_ns()
        links[0].clear("down", "delay_us")


def bytes_of(link: Any) -> int:
    return sum(json.loads(line).get("bytes", 0) for line in link.spec.log.read_text().splitlines() if '"down"' in line)


def campaign(folder: Path, token: int, size: int) -> None:
    """The records' part: what a collector would have written of one run and its capture."""
    own = folder / "probe" / "probe-1"
    (own / "runs").mkdir(parents=True)
    manifest = {
        "format": "tandem-run/1", "id": "run-1", "pair": "pair-1", "kind": "mptcp", "paths": ["a", "b"],
        "experiment": {"name": "download"}, "result": {"bytes": size}, "files": [{"name": "captures/run-1.pcap"}],
        "environment": {"path_addresses": ADDRESSES, "further": {"connection": f"{token:x}"}},
    }  # fmt: skip
    (own / "runs" / "run-1.json").write_text(json.dumps(manifest))
    captures = [{"file": "captures/run-1.pcap", "run": "run-1", "pair": "pair-1", "path": None, "cut": False}]
    (own / "collector.json").write_text(json.dumps({"format": "tandem-collector/1", "captures": captures}))
    paths = {path: {"operator": path.upper()} for path in ADDRESSES}
    told = {"format": "tandem-campaign/1", "probe": "probe-1", "paths": paths}
    (folder / "campaign.json").write_text(json.dumps(told))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Dip, Packets]:
    pq = pytest.importorskip("pyarrow.parquet", reason="no pyarrow; pip install -r requirements/lock.txt")
    folder, dip = tmp_path_factory.mktemp("dip"), Dip()
    traced = download(folder / "traced", protocol=MPTCP, seconds=11, before=second_path, meanwhile=dip.play)
    place = folder / "probe" / "probe-1" / "captures"
    place.mkdir(parents=True)
    traced.client.rename(place / "run-1.pcap")
    assert main(["analyse", str(place), "--out", str(folder / "traces"), "--workers", "1"]) == 0
    (part,) = (folder / "traces" / "connections").glob("*.parquet")
    (row,) = (row for row in pq.read_table(part, partitioning=None).to_pylist() if row["multipath"])
    campaign(folder, row["opener_token"], 1)
    e = evaluate(load(folder), "no database", set())
    e.clock = Clock(dip.start_ns - 5 * SECOND)
    e.recorded.events = [Event(5.0, "signal_drop", "a", "A", -12.0, None)]
    packets = of_campaign(e)
    assert packets is not None
    return dip, packets


def test_t_r_is_about_as_long_as_the_delay_was(found: tuple[Dip, Packets], record_property: Any) -> None:
    dip, packets = found
    (row,) = packets.joined.rows
    lasted = (dip.end_ns - dip.start_ns) / SECOND
    record_property("lasted_s", round(lasted, 2))
    record_property("t_r_s", row["t_r_s"])
    print(f"the delay was there for {lasted:.2f} s; t_R {row['t_r_s']} s ({row['why']}), {row}")
    assert (row["path"], row["other_path"], row["rtt_method"], row["why"]) == ("a", "b", "timestamp", "")
    # It lasted two seconds at least, and was over before the capture was: how near to its end is the machine's affair too.
    assert row["t_r_s"] > lasted - 1
    assert row["rtt_peak_ms"] >= row["rtt_before_ms"] + DELAY_MS / 2
    assert row["rtt_peak_normalised"] == pytest.approx(row["rtt_peak_ms"] / row["handshake_rtt_ms"])
    assert row["other_rtt_peak_ms"] < row["rtt_peak_ms"]


def test_the_figures_series_are_the_captures(found: tuple[Dip, Packets]) -> None:
    _, packets = found
    first, second = packets.series["run-1"]
    assert [(s.path, s.operator, s.end) for s in (first, second)] == [("a", "A", "capture"), ("b", "B", "capture")]
    dipped = first.rtt_ms[(first.t_s > 5.8) & (first.t_s < 6.5)]
    assert np.nanmedian(dipped) > np.nanmedian(first.rtt_ms[first.t_s < 4.9])
