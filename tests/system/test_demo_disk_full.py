"""A disk that fills up in the middle: the rehearsal ends by itself, says so in one line, and keeps what was measured."""

import json
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from small_disk import SmallDisk, small_disk

from support.rehearsals import DEMO, lines_of, processes_naming, wait_until

pytestmark = pytest.mark.system


def rehearsed_while_it_fills(disk: SmallDisk, fill: Callable[[], None]) -> tuple[int, str, list[str]]:
    """A rehearsal whose disk is filled in its first run: status, standard output, lines of standard error."""
    out = disk.seen / "out"
    argv = [*disk.enter, *DEMO, "--scenario", "still", "--duration", "30", "--out", str(disk.inside / "out")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(
                lambda: any(file.stat().st_size for file in out.glob("probe/*/captures/*")),
                120,
                "a capture begins with the first run",
            )
            fill()
            printed, errors = process.communicate(timeout=240)
        finally:
            process.kill()
    assert processes_naming(str(disk.inside / "out")) == []
    logs = {log.name: log.read_text() for log in out.glob("logs/*.log")} | {"stdout": printed, "stderr": errors}
    assert not [name for name, log in logs.items() if "Traceback" in log or "Logging error" in log], logs
    # On a busy machine it also says how late the collector was.
    told = [line for line in lines_of(errors) if "the collector was ready" not in line]
    return process.returncode, printed, told


def test_a_disk_that_fills_up_in_a_run(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "1100m") as disk:
        out = disk.seen / "out"
        status, printed, (told,) = rehearsed_while_it_fills(disk, disk.fill)
        assert status == 1, printed
        assert "disk is full" in told
        assert "--out" in told
        summary = json.loads((out / "summary.json").read_text())
        assert "disk is full" in summary["interrupted"]
        assert summary["records"]["made"] == summary["records"]["in_database"] > 0
        (run,) = summary["runs"]
        assert run["bytes"] > 0
        assert [capture["packets"] > 0 for capture in summary["captures"]] == [True]
        assert (out / "report.html").exists()
        assert (out / "truth.jsonl").exists()
        assert not list(out.rglob("reserve"))


def test_a_disk_that_somebody_goes_on_filling(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "1100m") as disk:
        out, enough = disk.seen / "out", threading.Event()
        filler = threading.Thread(target=lambda: disk.keep_full(enough))
        try:
            status, printed, said = rehearsed_while_it_fills(disk, filler.start)
        finally:
            enough.set()
            filler.join()
        assert (status, len(said)) == (3, 2), (printed, said)
        told, where = said
        assert "disk is full" in told
        assert "--out" in told
        assert str(disk.inside / "out") in where
        assert not (out / "summary.json").exists()
        assert any(file.stat().st_size for file in out.glob("probe/*/captures/*.pcap"))
        assert list(out.glob("probe/*/spool/*.sqlite"))
