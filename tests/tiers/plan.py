"""Which files a tier has, and the jobs that run them. ``tests/tiers.toml`` says what no code shows."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from random import randrange
from typing import Literal

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests/tiers.toml"
KEPT = ROOT / "tests/all.json"
"""The last whole ``--all``, committed: seconds a file order the jobs and part the shards."""

# How many jobs of a kind run side by side. Those that wait hardly use a processor; an emulated machine uses a whole one.
Kind = Literal["unit", "check", "wait", "machine", "alone"]
UNKNOWN_S, UNKNOWN_SYSTEM_S = 15.0, 300.0
"""A file that nobody has timed. One of ``tests/system`` begins early: at the end it would run alone."""


class TableError(Exception):
    """``tests/tiers.toml`` and the files disagree, or an option means nothing."""


@dataclass(frozen=True)
class Job:
    """One process: ``argv`` in the repository's folder, with root's rights in namespaces of its own where ``root``."""

    name: str
    kind: Kind
    argv: tuple[str, ...]
    files: tuple[str, ...] = ()
    root: bool = False
    limit_s: float = 1800.0
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def alone(self) -> str:
        """The command that runs it by itself."""
        return f"./kit test {' '.join(self.files)}" if self.files else f"./kit run {shlex.join(self.argv)}"


class Table:
    """``tests/tiers.toml``, held against the files that are there."""

    def __init__(self, path: Path = TABLE, root: Path = ROOT) -> None:
        told = tomllib.loads(path.read_text())
        self.covers = {"tests/" + name: tuple(of) for tier in ("test", "all") for name, of in told[tier].items()}
        self.later = frozenset("tests/" + name for name in (*told["all"], *told["run"]["later"]))
        self.together = [tuple("tests/" + name for name in names) for names in told["together"].values()]
        self.machines = frozenset("tests/" + name for name in told["run"]["machine"])
        self.alone = frozenset("tests/" + name for name in told["run"]["alone"])
        self.touches: dict[str, list[str]] = told["touches"]
        there = {
            str(file.relative_to(root))
            for part in ("lab", "system")
            for file in (root / "tests" / part).glob("test_*.py")
        }
        if there != set(self.covers):
            wrong = ", ".join(sorted(there ^ set(self.covers)))
            raise TableError(f"tests/tiers.toml: {wrong}: in the table or in the folder, not in both")
        twice = set(told["test"]) & set(told["all"])
        if twice:
            raise TableError(f"tests/tiers.toml: {', '.join(sorted(twice))}: in two tiers")


def unit_files(root: Path = ROOT) -> list[str]:
    return sorted(
        str(file.relative_to(root))
        for part in ("unit", "contract")
        for file in (root / "tests" / part).rglob("test_*.py")
    )


def seconds_kept() -> dict[str, float]:
    """Seconds a file or job in the last whole ``--all``; a file that moved since keeps its own, since no two have one name."""
    if not KEPT.exists():
        return {}
    kept = json.loads(KEPT.read_text())
    files = {PurePath(name).name: one["seconds"] for name, one in kept["files"].items()}
    of_files = {path: files[PurePath(path).name] for path in unit_files() if PurePath(path).name in files}
    return of_files | {name: one["seconds"] for name, one in kept["jobs"].items()}


def pytest_argv(*more: str) -> tuple[str, ...]:
    # A cache would be written by many at a time, as root.
    return (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tiers.record", "-q", *more)


def unit_job(files: list[str], workers: int, environment: dict[str, str]) -> Job:
    """Its name shows in the results of each file; xdist hands out files in the order given."""
    # Many examples of one property take many times as long, beside all else the more.
    patience, limit_s = (("--timeout", "1800"), 7200.0) if environment else ((), 3600.0)
    argv = pytest_argv("-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder", *patience, *files)
    return Job("unit and contract tests", "unit", argv, tuple(files), limit_s=limit_s, environment=environment)


def lab_jobs(files: list[str], table: Table) -> list[Job]:
    """A job a file; those that share one long run share one."""
    jobs = []
    left = dict.fromkeys(files)
    for names in table.together:
        if shared := [name for name in names if name in left]:
            jobs.append(lab_job(shared, table))
            for name in shared:
                del left[name]
    return jobs + [lab_job([name], table) for name in left]


def lab_job(files: list[str], table: Table) -> Job:
    kind: Kind = "machine" if table.machines & set(files) else "alone" if table.alone & set(files) else "wait"
    # An emulated machine beside other work takes several times as long.
    limit_s = 7200.0 if kind == "machine" else 1800.0
    return Job(" ".join(files), kind, pytest_argv(*files), tuple(files), root=True, limit_s=limit_s)


def check_jobs(*, everything: bool) -> list[Job]:
    """What is read, not run. ``everything``: the roles are linted though they are as they were when they passed."""
    lint = "cd ansible && exec ansible-lint --offline -q --nocolor"
    scripts = [file for part in ("requirements", "tests", "tests/tiers") for file in sorted((ROOT / part).glob("*.sh"))]
    shell = ("kit", ".ci/run", *(str(file.relative_to(ROOT)) for file in scripts))
    cargo = {"RUSTFLAGS": "-D warnings"}

    def tested(crate: str) -> tuple[str, ...]:
        target = ROOT / "build" / f"{PurePath(crate).name}-test"
        return "cargo", "test", "--quiet", "--manifest-path", f"{crate}/Cargo.toml", "--target-dir", str(target)

    return [
        Job("mypy --strict", "check", ("mypy", "--no-error-summary")),
        Job("ruff check", "check", ("ruff", "check", "--quiet", ".")),
        Job("ruff format", "check", ("ruff", "format", "--check", "--quiet", ".")),
        Job("import arrows", "check", ("lint-imports", "--no-cache")),
        Job("cargo test, link", "check", tested("firmware/bench/link"), environment=cargo),
        Job(
            "cargo test, trace-core",
            "check",
            (*tested("server/trace-core"), "--no-default-features"),
            environment=cargo,
        ),
        Job("shellcheck", "check", ("shellcheck", "-x", "-P", ".", *shell)),
        Job("yamllint", "check", ("sh", "-c", "cd ansible && exec yamllint --strict .")),
        Job("ansible-lint", "check", ("sh", "-c", lint) if everything else ("sh", "tests/tiers/ansible_lint.sh")),
        Job("boards and alarms", "check", ("python", "-m", "tandem_dashboards", "generate", "--check")),
        Job("hardware", "check", ("make", "-s", "-C", "hardware", "check")),
    ]


def fuzz_jobs(seconds: int = 60) -> list[Job]:
    """Each fuzzer for a while, from another seed each time: the command that runs it alone names it."""
    return [
        Job(
            f"fuzz {file.stem.removeprefix('fuzz_')}",
            "check",
            ("python", str(file.relative_to(ROOT)), "--seconds", str(seconds), "--seed", str(randrange(10**6))),
        )
        for file in sorted((ROOT / "tests/bench").glob("fuzz_*.py"))
    ]


def shard(jobs: list[Job], part: str, seconds: dict[str, float]) -> list[Job]:
    """``part`` is ``I/N``: the same parts on every machine that has the same ``tests/all.json``."""
    try:
        number, of = (int(word) for word in part.split("/"))
    except ValueError:
        number = of = 0
    if not 1 <= number <= of:
        raise TableError(f"--shard {part}: not I/N with 1 <= I <= N")
    loads = [0.0] * of
    mine = []
    for job in sorted(jobs, key=lambda job: (-job_seconds(job, seconds), job.name)):
        least = loads.index(min(loads))
        loads[least] += job_seconds(job, seconds)
        if least == number - 1:
            mine.append(job)
    return mine


def job_seconds(job: Job, seconds: dict[str, float]) -> float:
    """What it took the last time."""
    if job.name in seconds:
        return seconds[job.name]
    return sum(file_seconds(file, seconds) for file in job.files) or UNKNOWN_S


def file_seconds(file: str, seconds: dict[str, float]) -> float:
    """As ``job_seconds``, of one file of tests."""
    return seconds.get(file, UNKNOWN_SYSTEM_S if file.startswith("tests/system/") else UNKNOWN_S)


def tree_digest() -> str:
    """Of every file that git knows or would take, but for the kept times: what passed for one digest has passed for good."""
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    digest = hashlib.sha256()
    for name in sorted(set(listed.split(b"\0")) - {b""}):
        path = ROOT / os.fsdecode(name)
        if path == KEPT or not (path.is_file() or path.is_symlink()):
            continue
        content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        digest.update(b"%d %s %d\n" % (path.lstat().st_mode & 0o111 != 0, name, len(content)))
        digest.update(content)
    return digest.hexdigest()[:16]
