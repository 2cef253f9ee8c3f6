"""A pytest plugin (``-p tiers.record``): every test's outcome as a line of JSON in the file that ``TANDEM_RESULTS`` names, as it ends.

Lines: ``{"collected": {file: tests}}``, then ``{"test", "outcome": passed|failed|skipped, "seconds", "why", "where"}``. ``why`` is the
first assertion of what failed or the reason of a skip. With xdist the controller alone writes, for all its workers.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

WHY_LENGTH = 300


class Recorder:
    """Joins the phases of each test (set-up, call, teardown) to one line."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)
        self._seconds: Counter[str] = Counter()
        self._worst: dict[str, tuple[str, str, str]] = {}
        self._collected = False

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")

    def collected(self, tests: list[str]) -> None:
        """Once, though each worker of xdist says it."""
        if not self._collected:
            self._collected = True
            self._write({"collected": Counter(file_of(test) for test in tests)})

    @pytest.hookimpl
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self.collected([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self.collected(ids)

    @pytest.hookimpl
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed or report.skipped:
            why, where = reason(report)
            self._write({"test": report.nodeid, "outcome": report.outcome, "seconds": 0.0, "why": why, "where": where})

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = report.nodeid
        self._seconds[test] += report.duration
        if report.failed or (report.skipped and test not in self._worst):
            self._worst[test] = (report.outcome, *reason(report))
        # A worker that died reports no teardown.
        if report.when == "teardown" or report.when not in ("setup", "call"):
            outcome, why, where = self._worst.pop(test, ("passed", "", ""))
            seconds = round(self._seconds.pop(test), 3)
            self._write({"test": test, "outcome": outcome, "seconds": seconds, "why": why, "where": where})


def file_of(test: str) -> str:
    """``tests/a/test_b.py::test_c[d]`` → ``tests/a/test_b.py``."""
    return test.partition("::")[0]


def reason(report: pytest.TestReport | pytest.CollectReport) -> tuple[str, str]:
    """What failed, or why it was skipped, in one line; where."""
    told = report.longrepr
    if isinstance(told, tuple):
        path, line, words = told
        return words.removeprefix("Skipped: ")[:WHY_LENGTH], f"{path}:{line}"
    crash = getattr(told, "reprcrash", None)
    if crash is None:
        lines = [line for line in str(told).splitlines() if line.strip()]
        return (lines[-1].removeprefix("E").strip() if lines else "")[:WHY_LENGTH], ""
    return " ".join(crash.message.split())[:WHY_LENGTH], f"{crash.path}:{crash.lineno}"


def pytest_configure(config: pytest.Config) -> None:
    path = os.environ.get("TANDEM_RESULTS")
    if path and "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(Recorder(Path(path)))
