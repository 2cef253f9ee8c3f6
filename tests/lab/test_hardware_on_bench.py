"""The hardware tests meet the bench's modems: what they find there they would find on a table."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.modem_on_fake_clock import write_timeline
from support.running_kit import RunningKit, play_fault

pytestmark = pytest.mark.lab
HARDWARE = Path(__file__).resolve().parents[1] / "hardware"


@contextmanager
def hardware(folder: Path, *args: str, enter: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[str]]:
    """``pytest tests/hardware``, under way in ``folder``."""
    argv = [*enter, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(HARDWARE)]
    argv += ["--sys", str(folder / "no-usb"), "--report", str(folder / "hardware-report.json"), *args]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def outcome(folder: Path, *args: str, enter: tuple[str, ...] = ()) -> tuple[int, str, dict[str, Any]]:
    with hardware(folder, *args, enter=enter) as running:
        printed, _ = running.communicate(timeout=300)
    return running.returncode, printed, json.loads((folder / "hardware-report.json").read_text())


@dataclass
class BenchModem:
    """One emulated modem. ``port``: the link to its terminal."""

    port: Path
    control: Path

    def play(self, fault: dict[str, Any]) -> None:
        play_fault(self.control, fault)


@pytest.fixture
def modem(tmp_path: Path) -> Iterator[BenchModem]:
    """It stands still in LTE coverage, and answers."""
    folder = tmp_path / "modem"
    folder.mkdir()
    timeline = write_timeline(folder / "timeline.jsonl", [{}] * 600, tick_s=1.0)
    made = BenchModem(folder / "port", folder / "control.sock")
    argv = [sys.executable, "-m", "tandem_bench", "modem", "--family", "quectel", "--seed", "1"]
    argv += ["--timeline", str(timeline), "--epoch-ns", str(time.monotonic_ns())]
    argv += ["--link", str(made.port), "--control", str(made.control)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("ready")
            yield made
        finally:
            process.terminate()


def test_a_good_modem_passes_and_its_report_holds_a_transcript(modem: BenchModem, tmp_path: Path) -> None:
    status, printed, report = outcome(tmp_path, "--port", f"a={modem.port}", "--polls", "3")
    assert status == 0, printed
    told = report["modems"]["a"]
    assert told["driver"] == "quectel"
    assert told["model"]
    assert (told["cadence"]["polls"], told["cadence"]["failed"]) == (3, 0)
    assert told["radio"]["rat"] == "LTE"
    assert told["transcript"]["dialogue"]
    assert re.search(r"[0-9]{14,20}", json.dumps(told)) is None, "a serial number is in the report"
    kind, reason = report["tests"]["test_data_on_each_path[none]"]
    assert (kind, "--config" in reason) == ("skipped", True)
    assert f"model: {told['model']}" in printed


def test_a_modem_that_hangs_fails_and_says_where(modem: BenchModem, tmp_path: Path) -> None:
    modem.play({"fault": "hang", "seconds": 60})
    status, printed, report = outcome(
        tmp_path, "--port", f"a={modem.port}", "--polls", "2", "-k", "dialogue or cadence"
    )
    assert status == 1, printed
    assert report["modems"]["a"]["cadence"]["failed"] == 2
    assert "Traceback (most recent call last)" not in printed


def test_a_pulled_plug_is_noticed_and_its_return_too(modem: BenchModem, tmp_path: Path) -> None:
    args = ("--port", f"a={modem.port}", "--unplug", "--patience", "60", "-k", "unplugged")
    with hardware(tmp_path, *args) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if "unplug it now" in line:
                modem.play({"fault": "disappear", "seconds": 4})
        assert running.wait(180) == 0
    report = json.loads((tmp_path / "hardware-report.json").read_text())
    assert 0 < report["modems"]["a"]["away_s"] < 60


def test_data_goes_over_each_path_by_itself(kit: RunningKit, tmp_path: Path) -> None:
    enter = tuple(kit.rig.command("probe", []))
    args = (*kit.probe_config, "-k", "data_on_each_path")
    status, printed, report = outcome(tmp_path, *args, enter=enter)
    assert status == 0, printed
    assert set(report["paths"]) == {path.name for path in kit.rig.probe_paths()}
    assert {name: facts["behind_nat"] for name, facts in report["paths"].items() if name in ("a", "b")} == {
        "a": True,
        "b": True,
    }
