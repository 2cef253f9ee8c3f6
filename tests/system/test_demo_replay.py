"""Recorded drives played as the two operators, through the whole kit."""

import json
import os
from pathlib import Path

import pytest
from rehearsals import demo

pytestmark = pytest.mark.system

NAMED = os.environ.get("TANDEM_SHARED")
PLACES = [Path(NAMED)] if NAMED else [folder / "shared" for folder in Path(__file__).resolve().parents]
DRIVES = next((place / "data/drives" for place in PLACES if (place / "data/drives").is_dir()), None)


def test_a_pair_of_drives(tmp_path: Path) -> None:
    if DRIVES is None:
        pytest.skip("no recorded drives beside the checkout (TANDEM_SHARED names the folder that holds data/drives)")
    a, b = (DRIVES / f"drive-download-{side}.csv" for side in "ab")
    done = demo("--replay", str(a), str(b), "--duration", "30", "--out", str(tmp_path / "out"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["records"]["lost"] == 0
    assert summary["runs"]
    assert summary["duration_s"] == 30
