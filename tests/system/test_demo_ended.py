"""How a rehearsal, and the bench alone, end before their time. Ctrl-C and a disk that fills up keep what was measured; SIGKILL leaves
nothing behind. Two side by side do not meet; recorded drives are played."""

import contextlib
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from small_disk import SmallDisk, small_disk

from support.rehearsals import DEMO, demo, end, lines_of, processes_naming, started, wait_until
from support.shared_data import LACKING, shared_data

pytestmark = pytest.mark.system

DRIVES = shared_data("drives")


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


def test_ctrl_c_ends_the_bench_alone_which_explains_itself_and_writes_its_truth(tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--scenario", "still", "--duration", "60", "--wifi", "--server-addresses", "2", "--out", str(out)]
    argv = [sys.executable, "-m", "tandem_bench", "run", *options]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    explained = ""
    while "nsenter" not in explained:  # the last line, once all is up
        line = process.stdout.readline()
        assert line, f"it ended early: {explained}"
        explained += line
    wait_until(lambda: (out / "link-wifi.jsonl").stat().st_size > 0, 60, "the third link writes its log")
    status, printed, errors = end(process, signal.SIGINT)
    assert status == 130, printed + errors
    assert "path wifi: wlan0" in explained
    assert "Traceback" not in errors
    truth = [json.loads(line) for line in (out / "truth.jsonl").read_text().splitlines()]
    assert {line["operator"] for line in truth if line["type"] == "link_log"} >= {"A", "B"}
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
        pytest.skip(LACKING)
    a, b = (DRIVES / f"drive-download-{side}.csv" for side in "ab")
    done = demo("--replay", str(a), str(b), "--duration", "30", "--out", str(tmp_path / "out"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["records"]["lost"] == 0
    assert summary["runs"]
    assert summary["duration_s"] == 30


# --- a disk that fills up in the middle: it ends by itself, says so in one line -------------------------------------------


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
