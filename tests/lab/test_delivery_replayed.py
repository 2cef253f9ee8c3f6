"""Light and heavy delivery traces: recorded with two paths by the example experiment, and played by a link."""

from __future__ import annotations

import json
from pathlib import Path

from support.recorded_delivery import LIGHT_SHARE, experiment, hidden, link, recorded, traces
from support.two_paths import lab_with
from tandem_bench.scenario.recorded.traces import read

pytestmark = lab_with()

SECONDS = 6.0


def test_a_recording_becomes_a_link_that_carries(tmp_path: Path) -> None:
    options = hidden(tmp_path)
    manifest = recorded(options, tmp_path, SECONDS)
    result = json.loads(manifest.read_text())["result"]
    assert (result["light"]["path"], result["loaded"]["path"]) == ("a", "b")
    assert result["light"]["rtt_ms"] >= 50.0
    assert result["light"]["failed"] == 0
    assert result["bytes_by_path"]["a"]["received"] == 14_000 * len(result["light"]["trains"])
    loaded, light = traces(manifest, tmp_path / "traces")
    offered = read(options[options.index("--down-trace") + 1])
    made = read(loaded)
    # No reader, however late, gets more than the link gave, and what waited in its queue when the recording began.
    most = (made[-1] // offered[-1] + 1) * len(offered)
    assert 0 < len(made) <= most + 600_000 // 1500
    assert len(read(light)) < (SECONDS + 1) * 30e6 / 12_000 * LIGHT_SHARE * 2
    replayed = experiment(
        link(loaded, light, result["light"]["rtt_ms"]), "download", kind="tcp", path="a", bytes=1_000_000
    )
    assert replayed["failure"] is None
    assert replayed["result"]["bytes"] == 1_000_000
