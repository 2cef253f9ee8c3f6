"""Answers of real modems as people published them, which are not part of the repository, with what must come out: none is read wrongly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tandem.modem.decoding import UndecodableError, decode

RECORDED = Path(__file__).resolve().parents[4] / "shared" / "data" / "at" / "recorded.jsonl"
TOLERANCES = {"rsrp_dbm": 1, "rssi_dbm": 1, "rscp_dbm": 1, "rsrq_db": 0.5, "ecno_db": 0.5, "sinr_db": 0.5}


def agrees(name: str, expected: Any, found: Any) -> bool:
    """A list: any of these."""
    if isinstance(expected, list):
        return any(agrees(name, one, found) for one in expected)
    tolerance = TOLERANCES.get(name.removeprefix("nr_"))
    if tolerance is None or expected is None:
        return bool(found == expected)
    return bool(abs(found - expected) <= tolerance + 1e-9)


def test_no_recorded_answer_is_read_wrongly_and_those_not_understood_are_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    if not RECORDED.exists():
        pytest.skip("needs ../shared/data/at/recorded.jsonl, beside the repository")
    wrong, missed, rows = [], [], [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    for number, row in enumerate(rows, 1):
        expected = {name: value for name, value in row["expected"].items() if not name.startswith("_")}
        try:
            found = decode(row["command"], row["raw"].encode()).as_json()
        except UndecodableError as error:
            found = {"refused": str(error)}
        wrong += [
            (number, row["command"], name, value, found[name])
            for name, value in expected.items()
            if found.get(name) is not None and not agrees(name, value, found[name])
        ]
        if any(
            found.get(name) is None
            for name, value in expected.items()
            if value is not None and name not in row["may_be_withheld"]
        ):
            missed.append(f"{number}: {row['command']}: {row['firmware']}")
    with capsys.disabled():
        print(f"\n{len(missed)} of {len(rows)} recorded answers are not read whole:", *missed, sep="\n  ")
    assert wrong == []
