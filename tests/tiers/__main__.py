"""``python -m tiers``, called by ``./kit test``: see ``./kit test --help``."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from tiers.changed import changed_files, chosen
from tiers.plan import (
    KEPT,
    ROOT,
    Job,
    Kind,
    Table,
    TableError,
    check_jobs,
    file_seconds,
    fuzz_jobs,
    job_seconds,
    lab_jobs,
    seconds_kept,
    shard,
    tree_digest,
    unit_files,
    unit_job,
)
from tiers.pool import Pool
from tiers.report import Report


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="./kit test", add_help=False, allow_abbrev=False)
    tier = top.add_mutually_exclusive_group()
    tier.add_argument("--all", action="store_true")
    tier.add_argument("--changed", nargs="?", const="", metavar="BASE")
    top.add_argument("--shard", metavar="I/N")
    top.add_argument("--fresh", action="store_true")
    top.add_argument("--reversed", action="store_true")
    top.add_argument("--list", action="store_true")
    top.add_argument("--json", type=Path, metavar="FILE")
    return top


def main(argv: Sequence[str]) -> int:
    """Exit status: 0 green, 1 a test or a check failed, 2 a wrong option, 3 another one runs here or there is no sudo, 130 stopped."""
    top = parser()
    args = top.parse_args(argv)
    if (args.shard or args.fresh) and not args.all:
        top.error("--shard and --fresh go with --all")
    began = time.monotonic()
    tier = "all" if args.all else "test" if args.changed is None else "changed"
    digest = tree_digest() if args.all else None
    folder = ROOT / "build" / "tests" / (tier if digest is None else f"{tier}-{digest}")
    seconds = seconds_kept()
    jobs = selected(args, seconds, set() if digest is None or args.fresh else Report.read(folder).passed())
    if args.list:
        for job in jobs:
            for name in job.files or (job.name,):
                print(f"{job.kind:8} {file_seconds(name, seconds):6.0f} s  {name}")
        return 0
    if any(job.root for job in jobs) and os.geteuid() != 0:
        by_sudo(argv)
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = (folder.parent / ".lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("./kit test: another one runs in this checkout; hint: wait for its end")
        return 3
    if digest is None or args.fresh:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    owner = (int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"])) if "SUDO_UID" in os.environ else None
    stopped = False
    try:
        Pool(folder, capacities(), owner, sure=processors() + 1).run(jobs)
    except KeyboardInterrupt:
        stopped = True
    report = Report.read(folder)
    took = time.monotonic() - began
    print(report.words(took))
    summary = report.as_json(tier, took, digest)
    written = [args.json or folder.with_name(f"{tier}.json")]
    if args.all and not args.shard and not stopped and report.green:
        written.append(KEPT)
    for path in written:
        path.write_text(_in_lines(summary))
    if owner is not None:
        for path in (folder.parent, Path(lock.name), folder, *folder.iterdir(), *written):
            os.chown(path, *owner)
    say(f"summary: {written[-1]}")
    if tier == "test":
        say(age())
    if stopped:
        say("stopped; ./kit test --all goes on where it was" if args.all else "stopped")
        return 130
    return 0 if report.green else 1


def _in_lines(summary: dict[str, object]) -> str:
    """JSON, a line for each file, job, failure and skip."""
    text = json.dumps(summary, indent=1)
    return re.sub(r"\n {3,}|\n {2}(?=[}\]])", lambda found: " " if "   " in found[0] else "", text) + "\n"


def selected(args: argparse.Namespace, seconds: dict[str, float], passed: set[str]) -> list[Job]:
    """The tier's jobs, the longest first, without what passed before."""
    table = Table()
    unit, lab, later = unit_files(), sorted(table.covers), set() if args.all else set(table.later)
    checks = check_jobs(everything=args.all) + (fuzz_jobs() if args.all else [])
    if args.changed is not None:
        base, changed = changed_files(args.changed or None)
        why = chosen(changed, table)
        later = {name for name in later if why.get(name) != "changed itself"}
        of = len(unit) + len(table.covers)
        say(f"{len(changed)} files differ from {base[:12]}; they can touch {len(why)} of {of} files of tests:")
        for name, reason in why.items():
            say(f"  {'(in --all) ' if name in later else ''}{name}: {reason}")
        unit, lab = [name for name in unit if name in why], [name for name in lab if name in why]
        checks = checks if changed else []
    unit, lab = [name for name in unit if name not in later], [name for name in lab if name not in later]
    if passed:
        unit, lab = [name for name in unit if name not in passed], [name for name in lab if name not in passed]
        checks = [job for job in checks if job.name not in passed]
        say(
            f"{len(passed)} files and checks passed before for this very tree and are not run again (--fresh runs them)"
        )
    unit.sort(key=lambda name: (-seconds.get(name, 1.0), name))
    if args.shard:
        singles = [Job(name, "unit", (), (name,)) for name in unit]
        mine = shard([*singles, *lab_jobs(lab, table), *checks], args.shard, seconds)
        unit = [job.name for job in mine if job.kind == "unit"]
        lab = [name for job in mine if job.root for name in job.files]
        checks = [job for job in mine if job.kind == "check"]
    jobs = sorted(lab_jobs(lab, table), key=lambda job: -job_seconds(job, seconds))
    if args.reversed:
        unit.reverse()
        jobs.reverse()
    # Many examples, and new ones, where there is time for them. Some unit tests wait: a worker more for every two processors.
    environment = {"TANDEM_HYPOTHESIS": "all"} if args.all else {}
    workers = min(len(unit), processors() * 3 // 2)
    return [*([unit_job(unit, workers, environment)] if unit else []), *checks, *jobs]


def processors() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0))


def capacities() -> dict[Kind, int]:
    """How many side by side at most; what waits leaves the processors idle."""
    return {"unit": 1, "check": 1, "wait": max(6, 3 * processors()), "machine": processors(), "alone": 1}


def by_sudo(argv: Sequence[str]) -> NoReturn:
    """This again with root's rights, for network namespaces; what needs none goes on as who called."""
    if shutil.which("sudo") is None:
        say("./kit test: the lab needs root (network namespaces) and there is no sudo; hint: run it as root")
        sys.exit(3)
    kept = ("PATH", "PYTHONPATH", "CI")
    words = [f"{name}={value}" for name, value in os.environ.items() if name.startswith("TANDEM_") or name in kept]
    # An argument list; and this process has nothing left to do. No byte code (-B): a user's checkout must not fill with root's files.
    os.execvp("sudo", ["sudo", "--", "env", *words, sys.executable, "-B", "-m", "tiers", *argv])  # noqa: S606


def say(words: str) -> None:
    """To the person, beside what a machine reads."""
    print(words, file=sys.stderr, flush=True)


def age() -> str:
    """When ``--all`` passed last."""
    if not KEPT.exists():
        return "--all has not passed yet (./kit test --help)"
    told = json.loads(KEPT.read_text())
    return f"--all passed last on {told['date']}, commit {str(told['commit'])[:12]}, in {told['seconds'] / 60:.0f} min"


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except TableError as error:
        say(f"./kit test: {error}")
        sys.exit(2)
