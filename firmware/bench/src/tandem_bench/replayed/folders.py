"""A replay's folder held against the campaign folder of its drive."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tandem_bench.replayed import picture
from tandem_bench.replayed.compared import Row, as_csv, as_json, as_text, compared
from tandem_bench.replayed.heard import heard
from tandem_bench.scenario import ScenarioError
from tandem_bench.scenario.plot import PlotError

FORMAT = "tandem-replay/1"


def compare(drive: Path, replay: Path, into: Path | None = None) -> list[Row]:
    """A replay's folder held against the ``drive``'s campaign folder: the table, and ``into`` (``replay/`` of the replay) what shows it.
    ScenarioError where one of them cannot be read; OSError. Without matplotlib there is no picture, which is said."""
    told = _replayed(replay)
    of = told["replayed"]
    seconds = float(told["duration_s"])
    ours = {name: one["operator"] for name, one in told["paths"].items()}
    theirs = {path: operator for operator, path in of["paths"].items()}
    one = heard(drive, of["probe"], of["started_utc_ns"], seconds, theirs)
    other = heard(replay, told["probe"], told["started_utc_ns"], seconds, ours)
    table = compared(one, other)
    into = into or replay / "replay"
    into.mkdir(parents=True, exist_ok=True)
    (into / "comparison.csv").write_text(as_csv(table))
    content = {"format": FORMAT, "drive": {**of, "folder": drive.name}, "seconds": seconds, "rows": as_json(table)}
    (into / "comparison.json").write_text(json.dumps(content, indent=1))
    try:
        picture.save(one, other, into / "comparison.svg")
    except PlotError as error:
        print(f"note: {error}", file=sys.stderr)
    return table


def said(table: list[Row], into: Path) -> str:
    """For people."""
    return f"\n{as_text(table)}\n\n  in {into}: comparison.csv, comparison.json, comparison.svg"


def _replayed(folder: Path) -> dict[str, Any]:
    file = folder / "campaign.json"
    try:
        told: dict[str, Any] = json.loads(file.read_bytes())
        if not {"probe", "paths", "started_utc_ns"} <= set(told["replayed"]):
            raise KeyError
    except OSError as error:
        raise ScenarioError(file, None, f"cannot be read: {error.strerror}", "hint: a replay's folder") from None
    except (ValueError, KeyError, TypeError):
        hint = "hint: a folder that tandem-bench demo --from-run wrote"
        raise ScenarioError(file, None, "it is of no replay", hint) from None
    return told
