"""Two kits at one server, by one command: what the server exports of them is reported as their own folders are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.rehearsals import processes_naming
from tandem_bench.run.programs import Owner

pytest.importorskip("pyarrow", reason="pip install -r requirements/lock.txt")

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(1750)]


def test_exported_and_reported_as_their_own_folders_are(tmp_path: Path) -> None:
    out = tmp_path / "kits"
    Owner.of_caller().give(tmp_path)
    command = [sys.executable, "-m", "tandem_bench", "kits", "--duration", "60", "--out", str(out), "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=1700, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["exported"]["missing"] == []
    for what in ("figures", "tables"):
        assert told[what]["different"] == []
        assert told[what]["same"] == told[what]["files"] > 0
    assert told["analysed"]["failed"] == []
    exported = out / "exported"
    assert set(told["exported"]["probes"]) == {"probe-1", "probe-2"}
    assert not list(exported.glob("probe/*/captures"))  # its figures of packets are of tables alone
    assert list(exported.glob("traces/bins/*.parquet"))
    summary = json.loads((exported / "summary.json").read_text())
    assert [(one["probe"], one["operators"]) for one in summary["probes"]] == [
        ("probe-1", ["A", "B"]),
        ("probe-2", ["A", "B"]),
    ]
    assert all(one["runs"] >= 3 and one["radio_records"] > 60 for one in summary["probes"])
    figures = json.loads((exported / "figures" / "figures.json").read_text())
    assert {"mohan-4"} <= {one["name"] for one in figures if one["drawn"]}
    assert (out / "published" / "ro-crate-metadata.json").is_file()
    assert not [f for f in (out / "published").rglob("*.json") if "server.tandem.test" in f.read_text()]
    assert processes_naming(str(out)) == []
