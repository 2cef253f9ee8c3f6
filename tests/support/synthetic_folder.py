"""The folder of a made-up campaign."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.synthetic_campaign import BOOT, PROBE, Synthetic
from support.synthetic_scenario import START_MONOTONIC_NS, START_UTC_NS
from tandem_server.registry import Registry
from tandem_server.store import PrivateInflux

if TYPE_CHECKING:
    from tandem_server.analysis.evaluate import Evaluation
    from tandem_server.report.figures.figure import Drawn


def write(made: Synthetic, folder: Path) -> Path:
    """Write the campaign's folder as a demo leaves it; returns ``folder``."""
    own = folder / "probe" / PROBE
    (own / "runs").mkdir(parents=True)
    (own / "captures").mkdir()
    for name, content, _ in made.captures:
        (own / name).write_bytes(content)
    for manifest in made.manifests:
        (own / "runs" / f"{manifest['id']}.json").write_text(json.dumps(manifest))
    (folder / "truth.jsonl").write_text("".join(json.dumps(line) + "\n" for line in made.truth))
    (folder / "campaign.json").write_text(json.dumps(campaign(made)))
    (own / "collector.json").write_text(json.dumps(collector(made)))
    return folder


def with_database(made: Synthetic, folder: Path, influx_binary: Path, skipped: Sequence[int] = ()) -> Path:
    """The folder with its database and ledger; the lines ``skipped`` never reach the database."""
    write(made, folder)
    with (
        PrivateInflux(influx_binary, folder / "server" / "influxdb", 0) as private,
        closing(private.client()) as client,
    ):
        assert client.write([line for n, line in enumerate(made.lines()) if n not in skipped]) == []
        there = {**campaign(made), "store": {"url": private.url, "database": "tandem"}}
    (folder / "campaign.json").write_text(json.dumps(there))
    with Registry(folder / "server" / "registry.sqlite") as registry:
        registry.probes.add(PROBE)
        for manifest in made.manifests:
            registry.runs.put(manifest["id"], PROBE, manifest)
    return folder


def campaign(made: Synthetic) -> dict[str, Any]:
    return {
        "format": "tandem-campaign/1",
        "scenario": "commute",
        "seed": 1,
        "duration_s": made.seconds,
        "started_utc_ns": START_UTC_NS,
        "started_monotonic_ns": START_MONOTONIC_NS,
        "ended_utc_ns": START_UTC_NS + round((made.seconds + 6) * 1e9),
        "stopped": None,
        "probe": PROBE,
        "paths": {p: {"operator": o, "interface": f"wwan{i}"} for i, (p, o) in enumerate(made.paths.items())},
        "processes": [
            {"name": n, "cpu_seconds": c, "max_rss_bytes": r, "exit": 0}
            for n, c, r in (
                ("collector", 9.4, 61_000_000),
                ("endpoint", 14.2, 70_000_000),
                ("gateway", 3.1, 66_000_000),
            )
        ],
        "versions": {"tandem": "0.1.0", "kernel": "6.1.0-25-amd64"},
        "store": {"url": "http://127.0.0.1:8086", "database": "tandem"},
    }


def collector(made: Synthetic) -> dict[str, Any]:
    records = {"made": made.seq, "sent": made.seq, "pending": 0, "rejected": 0, "dropped": 0}
    polls = {"made": int(made.seconds), "late": int(made.seconds > 97), "failed": 3}
    polls |= {"late_ms_p50": 0.4, "late_ms_p99": 9.8, "late_ms_max": 120.4}
    return {
        "format": "tandem-collector/1",
        "probe": PROBE,
        "boot": BOOT,
        "started_utc_ns": START_UTC_NS,
        "ended_utc_ns": START_UTC_NS + round((made.seconds + 5) * 1e9),
        "records": {**records, "by_measurement": made.by_measurement},
        "polls": dict.fromkeys(made.paths, polls),
        "captures": [
            {"file": f, "bytes": len(c), "packets": len(c) // 64, "run": r, "path": f[-6], "cut": False}
            for f, c, r in made.captures
        ],
        "usage": {
            p: {"received_bytes": 120_000_000, "sent_bytes": 4_100_000, "control_bytes": 380_000} for p in made.paths
        },
        "resources": {"cpu_seconds": 9.4, "max_rss_bytes": 61_000_000, "wall_seconds": made.seconds + 4},
        "versions": {"tandem": "0.1.0"},
        "environment": {"net.mptcp.scheduler": "default", "congestion_control": "cubic"},
    }


def page_of(e: Evaluation, drawn: Sequence[Drawn] | None = None) -> str:
    """One kit's, as a report writes it; ``drawn``: its figures where they are drawn already."""
    from tandem_server.analysis.pool import Kit, pool
    from tandem_server.report.figures.figure import draw
    from tandem_server.report.page import render

    of = pool([Kit(e)])
    return render(of, draw(of.material, pdf=False) if drawn is None else drawn)
