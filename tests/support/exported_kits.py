"""An export of several made-up kits: the folder that ``tandem-server campaign export`` writes, from the bench's material."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.sample_export import write_records
from support.synthetic_campaign import Synthetic
from support.synthetic_scenario import START_UTC_NS
from tandem_server.analysis.record_files import TIME

OPERATORS = {"probe-1": {"a": "A", "b": "B"}, "probe-2": {"a": "B", "b": "C"}}
"""The same name of a path, another operator."""


def kit(made: Synthetic, probe: str, more: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    """The runs of a made-up campaign as this probe's: ids of their own, its operators."""
    found = copy.deepcopy([*made.manifests, *(more or [])])
    for manifest in found:
        manifest |= {
            "id": f"{probe}-{manifest['id']}",
            "pair": f"{probe}-{manifest['pair']}",
            "probe": probe,
            "files": [],
        }
        manifest.setdefault("campaign", {"name": "commute", "form": "paper", "step": "pairs"})
        for flow in (manifest["result"] or {}).get("subflows", []):
            flow["operator"] = OPERATORS.get(probe, {}).get(flow["path"])
    return found


def write_export(folder: Path, kits: Mapping[str, tuple[Synthetic, list[dict[str, Any]]]], **told: Any) -> Path:
    """By probe what it recorded, and its manifests. ``told``: further keys of campaign.json."""
    ended = START_UTC_NS + round(max(made.seconds for made, _ in kits.values()) * 1e9)
    for probe, (made, manifests) in kits.items():
        own = folder / "probe" / probe
        (own / "runs").mkdir(parents=True)
        for manifest in manifests:
            (own / "runs" / f"{manifest['id']}.json").write_text(json.dumps(manifest))
        _write_records(own, made, probe)
    there = {"format": "tandem-campaign/1", "scenario": "commute", "export": {"name": "commute"}, "stopped": None}
    there |= {"started_utc_ns": START_UTC_NS, "ended_utc_ns": ended, "duration_s": (ended - START_UTC_NS) / 1e9}
    there["probe"] = next(iter(kits))
    there["probes"] = {
        probe: {"paths": {path: {"operator": name} for path, name in OPERATORS.get(probe, {}).items()}}
        for probe in kits
    }
    (folder / "campaign.json").write_text(json.dumps(there | told))
    (folder / "ledger.json").write_text(json.dumps({"by_probe": {}, "spools": [], "damaged": []}))
    return folder


def _write_records(own: Path, made: Synthetic, probe: str) -> None:
    runs = {manifest["id"] for manifest in made.manifests}
    rows: dict[str, list[dict[str, Any]]] = {}
    for measurement, _, row in made.source.points:
        tags = {**row.tags, "probe": probe}
        if "operator" in tags:
            tags["operator"] = OPERATORS.get(probe, {}).get(tags.get("path", ""), "")
        if tags.get("run") in runs:
            tags["run"] = f"{probe}-{tags['run']}"
        told = {TIME: row.utc_ns, **tags, **row.fields}
        rows.setdefault(measurement, []).append({name: None if value == "" else value for name, value in told.items()})
    for measurement, found in rows.items():
        write_records(own, measurement, found)
