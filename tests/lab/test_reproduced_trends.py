"""The reproductions of the papers' trends work to their end in their short forms: tables and JSON. Whether a trend shows is theirs to tell
from their full forms, and no test's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.emulated_links import no_link
from support.two_paths import REPOSITORY, lab_with

pytestmark = lab_with(lack=no_link())
SCRIPTS = {
    # rows of the table; what its heading names
    "reproduce_shares": (4, ("MPTCP from 1: % on 2", "never joined")),
    "reproduce_loss": (2, ("TCP over 1", "TCP over 2", "T1>M1")),
    "reproduce_bandwidth": (2, ("C_total", "benefit", "most loaded")),
    "reproduce_delay": (4, ("p10", "p50", "positive")),
    "explain_bandwidth": (2, ("send buffer kB", "held kB")),
    "reproduce_mobility": (2, ("over best", "TCP A", "MPTCP")),
}
SOURCES = os.pathsep.join(str(REPOSITORY / part) for part in ("collector/src", "server/src", "firmware/bench/src"))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, subprocess.Popen[str]]]]:
    """All of them at once: each waits most of its time for its own links."""
    folder = tmp_path_factory.mktemp("trends")
    started = {}
    for name in SCRIPTS:
        argv = [sys.executable, str(REPOSITORY / f"tests/bench/{name}.py"), "--quick", "--seed", "3"]
        argv += ["--json", str(folder / f"{name}.json")]
        environment = {**os.environ, "PYTHONPATH": SOURCES}
        started[name] = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
    try:
        yield folder, started
    finally:
        for process in started.values():
            process.terminate()
            process.communicate()


@pytest.mark.parametrize("name", SCRIPTS)
def test_short_form(running: tuple[Path, dict[str, subprocess.Popen[str]]], name: str) -> None:
    folder, started = running
    printed, errors = started[name].communicate(timeout=280)
    assert started[name].returncode == 0, printed + errors
    assert " left (last: " in errors  # it says how far it is
    rows, headings = SCRIPTS[name]
    lines = printed.splitlines()
    assert lines[0].startswith("kernel ")
    assert "scheduler " in lines[0]
    assert "controller cubic" in lines[0]
    (head,) = [line for line in lines if all(heading in line for heading in headings)]
    table = lines[lines.index(head) + 1 : lines.index(head) + 1 + rows]
    assert len({len(line) for line in (head, *table)}) == 1
    told: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    assert len(told["table"]) == rows
    assert told["measured"]
    assert (told["setting"]["seed"], told["setting"]["quick"]) == (3, True)
