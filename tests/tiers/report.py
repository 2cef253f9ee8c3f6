"""What the jobs of a run left, joined, and the words at its end."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tiers.plan import ROOT
from tiers.pool import NO_TESTS

SLOWEST = 10
TAIL_LINES = 12


@dataclass
class Report:
    """``tests``: by name, the last outcome of each; ``jobs``: by name, with ``status`` and ``seconds``."""

    folder: Path
    tests: dict[str, dict[str, Any]] = field(default_factory=dict)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    collected: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(cls, folder: Path) -> Report:
        """Of every ``*.jsonl`` in the folder, in the order in which they were begun."""
        report = cls(folder)
        for path in sorted(folder.glob("*.jsonl")):
            for line in path.read_text().splitlines():
                try:
                    told = json.loads(line)
                except ValueError:
                    continue  # half a line: its writer was killed, and its file counts as not run
                if "collected" in told:
                    report.collected.update(
                        {name: n for name, n in told["collected"].items() if name not in report.collected}
                    )
                elif "job" in told:
                    report.jobs[told["job"]] = told
                else:
                    report.tests[told["test"]] = told
        return report

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Not what fell over because its job was stopped in the midst of it."""
        ended = {name for job in self.jobs.values() for name in job["files"]} | self._whole().keys()
        return [
            one for one in self.tests.values() if one["outcome"] == "failed" and one["test"].partition("::")[0] in ended
        ]

    @property
    def broken(self) -> list[dict[str, Any]]:
        """Jobs that failed, and no test of theirs says why."""
        told = {one["test"].partition("::")[0] for one in self.failed}
        return [
            job
            for job in self.jobs.values()
            if job["status"] not in ((0, NO_TESTS) if job["files"] else (0,))
            and not (job["status"] == 1 and told & set(job["files"]))
        ]

    def files(self) -> dict[str, dict[str, Any]]:
        """File → seconds, tests, outcome, of those that ran to their end."""
        broken = {name for job in self.broken for name in job["files"] if len(job["files"]) == 1}
        return {name: of for name, of in self._whole().items() if name not in broken}

    def _whole(self) -> dict[str, dict[str, Any]]:
        files: dict[str, dict[str, Any]] = {}
        for name, one in self.tests.items():
            of = files.setdefault(name.partition("::")[0], {"seconds": 0.0, "tests": 0, "outcome": "passed"})
            of["seconds"] = round(of["seconds"] + one["seconds"], 2)
            of["tests"] += 1
            if one["outcome"] == "failed":
                of["outcome"] = "failed"
        return {name: of for name, of in files.items() if of["tests"] >= self.collected[name]}

    def passed(self) -> set[str]:
        """Files and jobs that need not run again for this tree."""
        files = {name for name, of in self.files().items() if of["outcome"] == "passed"}
        return files | {name for name, job in self.jobs.items() if job["status"] == 0 and not job["files"]}

    @property
    def green(self) -> bool:
        return not self.failed and not self.broken

    def counts(self) -> Counter[str]:
        return Counter(one["outcome"] for one in self.tests.values())

    def as_json(self, tier: str, seconds: float, digest: str | None) -> dict[str, Any]:
        """For machines: keys as in docs/contributing/tests.md."""
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
        counts = self.counts()
        return {
            "tier": tier,
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "commit": commit.stdout.strip() or None,
            "tree": digest,
            "machine": {"system": platform.platform(), "processors": len(os.sched_getaffinity(0))},
            "seconds": round(seconds, 1),
            "green": self.green,
            **{outcome: counts[outcome] for outcome in ("passed", "failed", "skipped")},
            "files": dict(sorted(self.files().items())),
            "jobs": {
                name: {"seconds": job["seconds"], "outcome": "passed" if job["status"] in (0, NO_TESTS) else "failed"}
                for name, job in sorted(self.jobs.items())
            },
            "failures": [{key: one[key] for key in ("test", "why", "where")} for one in self.failed],
            "skips": [
                {key: one[key] for key in ("test", "why")} for one in self.tests.values() if one["outcome"] == "skipped"
            ],
        }

    def words(self, seconds: float) -> str:
        """What a person reads at the end; the last line is what machines look for, too."""
        lines: list[str] = []
        slow = sorted(self.tests.values(), key=lambda one: -one["seconds"])[:SLOWEST]
        lines += ["", "slowest:", *(f"  {one['seconds']:6.1f} s  {one['test']}" for one in slow)] if slow else []
        skipped = Counter(
            (one["test"].partition("::")[0], one["why"]) for one in self.tests.values() if one["outcome"] == "skipped"
        )
        if skipped:
            lines += ["", "skipped:", *(f"  {n:3d}  {name}: {why}" for (name, why), n in sorted(skipped.items()))]
        for job in self.broken:
            log = (self.folder / job["log"]).read_text(errors="replace").rstrip().splitlines()
            lines += ["", f"FAILED {job['job']} (exit {job['status']}; whole: {self._where(job['log'])})"]
            lines += [f"  {line}" for line in log[-TAIL_LINES:]]
            lines += [f"  alone: {job['alone']}"]
        logs = {name: job["log"] for job in self.jobs.values() for name in job["files"]}
        for one in self.failed:
            file = one["test"].partition("::")[0]
            lines += ["", f"FAILED {one['test']}", f"  {one['why']}"]
            if one["where"]:
                lines.append(f"  at {one['where']}; whole: {self._where(logs.get(file, ''))}")
            lines.append(f"  alone: ./kit test '{one['test']}'")
        counts = self.counts()
        minutes, rest = divmod(seconds, 60)
        checks = sum(not job["files"] for job in self.jobs.values())
        lines += [
            "",
            f"{'green' if self.green else 'RED'}: {checks} checks, {len(self.files())} files of tests, {minutes:.0f} min {rest:.0f} s",
            f"{counts['passed']} passed, {counts['failed'] + len(self.broken)} failed, {counts['skipped']} skipped",
        ]
        return "\n".join(lines)

    def _where(self, log: str) -> str:
        return (
            str((self.folder / log).relative_to(ROOT)) if self.folder.is_relative_to(ROOT) else str(self.folder / log)
        )
