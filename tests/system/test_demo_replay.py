"""Recorded drives played as the two operators, through the whole kit."""

import json
import os
from pathlib import Path

import pytest
from rehearsals import demo

pytestmark = pytest.mark.system

SHARED = Path(os.environ.get("TANDEM_SHARED", Path(__file__).parents[3] / "shared")) / "data" / "drives"


@pytest.mark.parametrize("pair", ["drive-download", "static-download"])
def test_a_pair_of_drives(pair: str, tmp_path: Path) -> None:
    a, b = (SHARED / f"{pair}-{side}.csv" for side in "ab")
    if not (a.exists() and b.exists()):
        pytest.skip(f"the recorded drives are not in {SHARED} (TANDEM_SHARED names another folder)")
    done = demo("--replay", str(a), str(b), "--duration", "45", "--out", str(tmp_path / "out"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["records"]["lost"] == 0
    assert summary["runs"]
    assert summary["duration_s"] == 45
