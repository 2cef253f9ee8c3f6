"""The bench alone: up, explained, ended by Ctrl-C, its truth written."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.rehearsals import end, processes_naming, wait_until

pytestmark = pytest.mark.system


def test_run_with_wifi_and_two_server_addresses(tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--scenario", "still", "--duration", "60", "--wifi", "--server-addresses", "2", "--out", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "tandem_bench", "run", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
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
