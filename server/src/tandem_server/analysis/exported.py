"""What an exported campaign folder (``tandem-server campaign export``) tells of itself; a bench's folder tells none of it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from tandem_server.analysis.reading import json_object, mapping, mappings, whole
from tandem_server.analysis.source import Source

LEDGER = "ledger.json"
_TABLES = {"waiting": "were not analysed yet", "failed": "could not be analysed"}
_OPEN = ("waiting", "missing", "expired", "under_way")


def is_export(campaign: dict[str, Any]) -> bool:
    """Whether ``campaign.json`` is an export's."""
    return bool(mapping(campaign, "export"))


def records_of(folder: Path, probe: str) -> Source | None:
    """The records that lie in the folder; None: it has none, and names a store. ImportError without pyarrow."""
    records = folder / "probe" / probe / "records"
    if not records.is_dir():
        return None
    found: Source = importlib.import_module("tandem_server.analysis.record_files").RecordFiles(records)
    return found


def ledger_lines(folder: Path, probe: str) -> list[str]:
    """What the server lacked when it was exported, a line each."""
    try:
        return lacking(json_object(folder / LEDGER), probe)
    except (OSError, ValueError) as error:
        return [f"{LEDGER} cannot be read: what the server lacked is not known ({error})"]


def lacking(ledger: dict[str, Any], probe: str) -> list[str]:
    """Of one probe."""
    told = mapping(mapping(ledger, "by_probe"), probe)
    states = mapping(told, "by_state")
    out = []
    if open_ones := [f"{count} {state}" for state in _OPEN if (count := whole(states, state))]:
        promised, arrived = whole(told, "records_promised") or 0, whole(told, "records_arrived") or 0
        line = f"{probe}: of {whole(told, 'runs')} runs {', '.join(open_ones)}; {arrived} of {promised} records"
        if files := whole(told, "files_promised"):
            line += f", {whole(told, 'files_received') or 0} of {files} files"
        out.append(f"{line} had arrived at the server")
    tables = mapping(told, "tables")
    if lacks := [f"{n} {words}" for key, words in _TABLES.items() if (n := whole(tables, key))]:
        out.append(f"{probe}: of {sum(n for n in tables.values() if isinstance(n, int))} captures {', '.join(lacks)}")
    for spool in mappings(ledger, "spools"):
        lacks = [f"{n} {key}" for key in ("waiting", "unexplained", "rejected", "dropped") if (n := whole(spool, key))]
        if spool.get("probe") == probe and lacks:
            out.append(f"{probe}: of the {whole(spool, 'made')} records of its spool {', '.join(lacks)}")
    out += [line for line in ledger.get("damaged") or [] if isinstance(line, str) and line.startswith(f"{probe}/")]
    return out
