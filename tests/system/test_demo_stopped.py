"""Ctrl-C keeps what was measured; SIGKILL leaves nothing behind; two rehearsals side by side do not meet; recorded drives are played."""

import contextlib
import json
import os
import signal
from pathlib import Path

import pytest

from support.rehearsals import demo, end, processes_naming, started, wait_until

pytestmark = pytest.mark.system

NAMED = os.environ.get("TANDEM_SHARED")
PLACES = [Path(NAMED)] if NAMED else [folder / "shared" for folder in Path(__file__).resolve().parents]
DRIVES = next((place / "data/drives" for place in PLACES if (place / "data/drives").is_dir()), None)


def test_ctrl_c_in_a_run_keeps_what_was_measured(tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = started("--duration", "30", "--out", str(out), cwd=tmp_path)
    wait_until(lambda: bool(list(out.glob("probe/*/captures/*"))), 120, "a capture begins with the first run")
    status, printed, errors = end(process, signal.SIGINT)
    assert status == 130, printed + errors
    assert "Traceback" not in printed + errors
    summary = json.loads((out / "summary.json").read_text())
    assert summary["interrupted"]
    assert summary["records"]["made"] == summary["records"]["in_database"] > 0
    assert (out / "report.html").exists()
    assert processes_naming(str(out)) == []


def test_ctrl_c_before_anything_was_measured(tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = started("--duration", "30", "--out", str(out), cwd=tmp_path)
    wait_until(lambda: (out / "server" / "server.toml").exists(), 120, "the server is being started")
    status, printed, errors = end(process, signal.SIGINT)
    assert status == 130, printed + errors
    assert "Traceback" not in printed + errors
    assert processes_naming(str(out)) == []


def test_kill_9_leaves_no_process_and_no_namespace(tmp_path: Path) -> None:
    out, before = tmp_path / "out", network_namespaces()
    process = started("--duration", "30", "--out", str(out), cwd=tmp_path)
    wait_until(lambda: any("tandem run" in p for p in processes_naming(str(out))), 120, "the collector runs")
    assert network_namespaces() > before
    process.kill()
    process.wait(60)
    wait_until(lambda: processes_naming(str(out)) == [], 60, "everything has died with it")
    wait_until(lambda: network_namespaces() == before, 60, "its namespaces have gone with it")
    process.communicate()


def network_namespaces() -> set[str]:
    """Those in which a process runs: the bench gives them no names."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended while we looked
            found.add(str((process / "ns/net").readlink()))
    return found


def test_two_side_by_side(tmp_path: Path) -> None:
    outs = [tmp_path / name for name in ("one", "two")]
    processes = [
        started("--scenario", "still", "--duration", "30", "--seed", str(n), "--out", str(out), cwd=tmp_path)
        for n, out in enumerate(outs)
    ]
    for process, out in zip(processes, outs, strict=True):
        printed, errors = process.communicate(timeout=600)
        assert process.returncode == 0, printed + errors
        assert json.loads((out / "summary.json").read_text())["records"]["lost"] == 0


def test_recorded_drives_are_played_as_the_two_operators(tmp_path: Path) -> None:
    if DRIVES is None:
        pytest.skip("no recorded drives beside the checkout (TANDEM_SHARED names the folder that holds data/drives)")
    a, b = (DRIVES / f"drive-download-{side}.csv" for side in "ab")
    done = demo("--replay", str(a), str(b), "--duration", "30", "--out", str(tmp_path / "out"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["records"]["lost"] == 0
    assert summary["runs"]
    assert summary["duration_s"] == 30
