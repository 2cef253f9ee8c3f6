"""The shortest rehearsal: everything arrives, and what it leaves is what the spec says. What cannot be rehearsed is refused with one clear
line that says what helps, before anything is started."""

import json
import os
import re
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.rehearsals import DEMO, demo, lines_of, processes_naming
from tandem_bench.run.programs import Owner

pytestmark = pytest.mark.system

KEYS = {
    "scenario", "seed", "duration_s", "radio_records", "polls_late", "handovers", "signal_drops", "mobility", "runs",
    "records", "captures", "cpu_seconds", "versions",
}  # fmt: skip
RUN_KEYS = {
    "id", "kind", "pairing", "bytes", "duration_s", "goodput_bit_per_s", "sum_of_singles_bit_per_s", "fallback", "subflows",
}  # fmt: skip


@dataclass
class Rehearsed:
    root: Path
    done: subprocess.CompletedProcess[str]
    summary: dict[str, Any]


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> Rehearsed:
    root = tmp_path_factory.mktemp("short")
    Owner.of_caller().give(root)
    done = demo("--duration", "30", "--seed", "3", "--out", str(root / "out"), "--keep", cwd=root)
    assert (root / "out" / "summary.json").exists(), done.stdout + done.stderr
    return Rehearsed(root / "out", done, json.loads((root / "out" / "summary.json").read_text()))


def test_everything_arrived(rehearsed: Rehearsed) -> None:
    records = rehearsed.summary["records"]
    assert rehearsed.done.returncode == 0, rehearsed.done.stdout + rehearsed.done.stderr
    assert records["sent"] == records["in_database"] == records["made"] > rehearsed.summary["radio_records"] > 0
    assert records["lost"] == 0


def test_summary_has_the_keys_that_others_read(rehearsed: Rehearsed) -> None:
    summary = rehearsed.summary
    assert set(summary) >= KEYS
    assert set(summary["handovers"]) >= {"true", "detected", "false"}
    assert set(summary["mobility"]) >= {"accuracy", "false_starts", "missed_starts"}
    for run in summary["runs"]:
        assert set(run) >= RUN_KEYS
        for subflow in run["subflows"]:
            assert set(subflow) >= {"operator", "bytes", "share", "rtt_ms_median"}
    for capture in summary["captures"]:
        assert set(capture) >= {"file", "bytes", "packets"}


def test_first_pair_compares_both_paths_with_each_alone(rehearsed: Rehearsed) -> None:
    first = [run for run in rehearsed.summary["runs"] if run["pairing"] == "sequential"]
    assert sorted((run["kind"], run["path"]) for run in first if run["kind"] == "tcp") == [("tcp", "a"), ("tcp", "b")]
    (mptcp,) = [run for run in first if run["kind"] == "mptcp"]
    assert {subflow["operator"] for subflow in mptcp["subflows"]} == {"A", "B"}
    assert sum(subflow["share"] for subflow in mptcp["subflows"]) == pytest.approx(1.0, abs=1e-6)
    assert not mptcp["fallback"]
    singles = [run["goodput_bit_per_s"] for run in first if run["kind"] == "tcp"]
    assert mptcp["sum_of_singles_bit_per_s"] == pytest.approx(sum(singles))
    # Twice: a link that is late on a busy machine catches up. What the check finds is a wrong unit.
    for run in first:
        assert 0 < run["goodput_bit_per_s"] <= 2 * run["capacity_bit_per_s"]


def packets_in(capture: Path) -> int:
    """Packets of a pcap file, counted by its record headers."""
    content = capture.read_bytes()
    assert content[:4] == b"\xd4\xc3\xb2\xa1"
    at, count = 24, 0
    while at < len(content):
        (length,) = struct.unpack("<I", content[at + 8 : at + 12])
        at += 16 + length
        count += 1
    assert at == len(content), "the last packet is cut"
    return count


def test_captures_hold_the_packets_they_claim(rehearsed: Rehearsed) -> None:
    captures = rehearsed.summary["captures"]
    assert captures
    for capture in captures:
        (file,) = rehearsed.root.glob(f"probe/*/{capture['file']}")
        assert file.stat().st_size == capture["bytes"]
        assert packets_in(file) == capture["packets"]


def test_report_is_one_page_that_needs_nothing_else(rehearsed: Rehearsed) -> None:
    page = (rehearsed.root / "report.html").read_text()
    assert "<svg" in page
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", page)


def test_report_can_be_made_again_from_what_was_kept(rehearsed: Rehearsed) -> None:
    argv = [sys.executable, "-m", "tandem_server", "report", str(rehearsed.root)]
    again = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert json.loads((rehearsed.root / "summary.json").read_text())["records"] == rehearsed.summary["records"]


def test_output_ends_with_the_reports_path(rehearsed: Rehearsed) -> None:
    assert rehearsed.done.stdout.strip().splitlines()[-1].strip() == f"report: {rehearsed.root / 'report.html'}"


def test_nothing_is_left_running(rehearsed: Rehearsed) -> None:
    assert processes_naming(str(rehearsed.root)) == []
    assert not Path("/run/netns/probe").exists()


def assert_refused(done: subprocess.CompletedProcess[str], status: int, *words: str) -> None:
    """One line on standard error with every word, no traceback, the right exit status."""
    lines = lines_of(done.stderr)
    assert done.returncode == status, done.stdout + done.stderr
    assert len(lines) == 1, done.stderr
    for word in words:
        assert word in lines[0]


def test_what_was_asked_for_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text('name = "x"\nduration_s = = 3\n')
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "thesis.tex").write_text("precious")
    # What else can be wrong with a scenario or a log: unit/bench/scenario.
    for args, words in (
        (("--scenario", "moonwalk"), ("moonwalk", "commute")),
        (("--scenario", "broken.toml"), ("broken.toml:2",)),
        (("--replay", "nowhere.csv", "nowhere.csv"), ("nowhere.csv",)),
        (("--duration", "29"), ("--duration", "30 to 7200")),
        (("--duration", "nan"), ("--duration", "30 to 7200")),
        (("--duration", "60", "--out", "used"), ("not empty", "--out")),
    ):
        assert_refused(demo(*args, cwd=tmp_path), 2, *words)


def test_kernel_without_multipath_tcp(tmp_path: Path) -> None:
    script = 'mount -t tmpfs none /proc/sys/net && exec "$@"'  # which only it sees
    argv = ["unshare", "--mount", "sh", "-c", script, "sh", *DEMO, "--duration", "60", "--out", "out"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert_refused(done, 3, "Multipath TCP")


def test_not_root(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", *DEMO, "--duration", "60"]
    if (
        not os.access(sys.executable, os.X_OK)
        or subprocess.run([*argv[:5], sys.executable, "-c", ""], check=False, capture_output=True).returncode
    ):
        pytest.skip("this checkout's Python cannot be run by another user (a folder above it is closed)")
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert_refused(done, 3, "root", "sudo")
