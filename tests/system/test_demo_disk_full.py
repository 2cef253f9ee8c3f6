"""A disk that fills up in the middle: the rehearsal ends by itself, says so in one line, and keeps what was measured."""

import json
import subprocess
from pathlib import Path

import pytest
from rehearsals import DEMO, lines_of, processes_naming, wait_until
from small_disk import small_disk

pytestmark = pytest.mark.system


def test_a_disk_that_fills_up_in_a_run(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "1100m") as disk:
        out = disk.seen / "out"
        argv = [*disk.enter, *DEMO, "--scenario", "still", "--duration", "40", "--out", str(disk.inside / "out")]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                wait_until(
                    lambda: any(file.stat().st_size for file in out.glob("probe/*/captures/*")),
                    60,
                    "a capture begins with the first run",
                )
                disk.fill()
                printed, errors = process.communicate(timeout=90)
            finally:
                process.kill()
        assert process.returncode not in (0, 130), printed + errors
        (told,) = lines_of(errors)
        assert "disk is full" in told
        assert "--out" in told
        logs = {log.name: log.read_text() for log in out.glob("logs/*.log")}
        assert not [name for name, log in logs.items() if "Traceback" in log or "Logging error" in log], logs
        assert "Traceback" not in printed
        summary = json.loads((out / "summary.json").read_text())
        assert "disk is full" in summary["interrupted"]
        assert summary["records"]["made"] == summary["records"]["in_database"] > 0
        (run,) = summary["runs"]
        assert run["bytes"] > 0
        assert [capture["packets"] > 0 for capture in summary["captures"]] == [True]
        assert (out / "report.html").exists()
        assert (out / "truth.jsonl").exists()
        assert not list(out.rglob("reserve"))
        assert processes_naming(str(disk.inside / "out")) == []
