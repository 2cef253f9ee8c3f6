"""``tandem-bench demo`` from its arguments to its exit status: check, go into namespaces of our own, rehearse, say what came of it."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

from tandem_bench.demo.folder import DemoFolder, FolderError
from tandem_bench.demo.outcome import rule, table, verdict
from tandem_bench.demo.plan import PlanError, plan
from tandem_bench.demo.rehearsal import Rehearsal, Setting, summary_of
from tandem_bench.demo.replaying import Replaying
from tandem_bench.demo.stopping import Stopped, StopSignals
from tandem_bench.link.backend import choose
from tandem_bench.link.build import LinkMissingError, find_binary
from tandem_bench.link.emulator import LinkError
from tandem_bench.replayed.folders import compare, said
from tandem_bench.rig.programs import ProgramError
from tandem_bench.rig.rig import Rig
from tandem_bench.rig.rights import Owner
from tandem_bench.scenario import Played, ScenarioError
from tandem_bench.scenario.played import Drive
from tandem_bench.scenario.recorded.exported import has_records
from tandem_bench.topology import private
from tandem_bench.topology.requirements import MachineError, require

OK, NEGATIVE, USAGE, LACKS, INTERRUPTED = 0, 1, 2, 3, 130
NOT_PLAYED = (FolderError, Stopped, ProgramError, LinkError, MachineError, OSError)
"""What may come in place of a rehearsal's end."""
PROMISED = "commute"
"""The scenario for whose scores a rehearsal answers; drives of the user's own may score as they will."""


def demo(played: Played, out: Path, *, keep: bool = False, wifi: bool = False, link: str = "auto") -> int:
    """Rehearse; the exit status as ``cli.main.ExitCode``. Everything that can be wrong is said before anything is started.

    ``link``: as ``link.backend.choose``.
    """
    try:
        first = next((phase for phase in played.phases), None)
        still_s = first["until_s"] if first is not None and first["activity"] == "still" else 0.0
        planned = plan(still_s, played.duration_s, len(played.operators) + wifi)
        influxd = find_influxd()
    except PlanError as error:
        print(f"tandem-bench demo: {error}", file=sys.stderr)
        return USAGE
    except MachineError as error:
        print(f"tandem-bench demo: {error}", file=sys.stderr)
        return LACKS
    owner = Owner.of_caller()
    folder = DemoFolder(out)
    try:
        require()
        program = find_binary() if choose(link) == "tun" else None
        setting = Setting(played.name, played.seed, played.duration_s, planned, keep, influxd, program)
        private.enter()
        return _inside(setting, Rig(played, folder.bench, owner, wifi=wifi, link=link), folder, owner, played)
    except (MachineError, LinkMissingError) as error:
        print(f"tandem-bench demo: {error}", file=sys.stderr)
        return LACKS


def find_influxd() -> Path:
    """The InfluxDB 1.x that ``kit`` found or unpacked, else one on PATH."""
    root = Path(__file__).parents[5]
    for candidate in (
        os.environ.get("TANDEM_INFLUXD"),
        str(root / "build/influxdb/usr/bin/influxd"),
        shutil.which("influxd"),
    ):
        if candidate and os.access(candidate, os.X_OK):
            return Path(candidate)
    raise MachineError("no influxd (InfluxDB 1.x); ./kit setup takes it out of the distribution's package")


def _inside(setting: Setting, rig: Rig, folder: DemoFolder, owner: Owner, played: Played) -> int:
    """Within namespaces of our own: the rehearsal, its table and its verdict."""
    signals = StopSignals()
    signals.install()
    try:
        folder.make(owner)
        print(
            f"rehearsing {setting.scenario} (seed {setting.seed}), {setting.duration_s:.0f} s from about "
            f"{time.strftime('%H:%M:%S', time.localtime(time.time() + 8))}; results in {folder.root}",
            flush=True,
        )
        parts = (setting, folder, owner, rig)
        rehearsal = Rehearsal(*parts) if played.drive is None else Replaying(*parts, played.drive)
        arrived = rehearsal.run()
    except NOT_PLAYED as error:
        return not_played("demo", error, folder)
    return _conclude(setting, folder, rehearsal, arrived, played)


def _conclude(setting: Setting, folder: DemoFolder, rehearsal: Rehearsal, arrived: int | None, played: Played) -> int:
    if arrived is None:
        print(f"tandem-bench demo: nothing was measured; logs in {folder.logs}", file=sys.stderr)
        return INTERRUPTED if rehearsal.by_user else LACKS
    summary = summary_of(folder)
    print(table(summary))
    scored = setting.scenario == PROMISED
    wrong = verdict(summary, scored=scored, paired=played.drive is None, right=rule(played) if scored else 0.0)
    if played.drive is not None:
        wrong += _beside(played.drive, folder)
    if arrived != OK and not wrong:
        wrong.append("not everything arrived; the report says what is missing")
    if not setting.keep and not wrong:
        folder.discard_working_files()
    for line in wrong:
        print(f"  not well: {line}", flush=True)
    print(f"  report: {folder.report}\n", flush=True)
    if rehearsal.by_user:
        return INTERRUPTED
    return NEGATIVE if wrong else OK


def _beside(drive: Drive, folder: DemoFolder) -> list[str]:
    """The replay held against its drive; why it could not be."""
    if not has_records(drive.folder, drive.probe):
        print(f"note: {drive.folder} has no records (no export): the replay is not compared with it", file=sys.stderr)
        return []
    try:
        print(said(compare(drive.folder, folder.root), folder.root / "replay"))
    except ScenarioError as error:
        return [f"the replay was not compared with its drive: {error}"]
    except OSError as error:
        return [f"the replay was not compared with its drive: {error.filename}: {error.strerror}"]
    return []


def not_played(command: str, error: Exception, folder: DemoFolder) -> int:
    """One of ``NOT_PLAYED`` as one line for whoever asked, and the exit status."""
    if isinstance(error, Stopped):
        print(f"tandem-bench {command}: stopped ({error}) before anything was measured", file=sys.stderr)
        return INTERRUPTED
    full = folder.full() if isinstance(error, OSError) else None
    print(f"tandem-bench {command}: {full or error}", file=sys.stderr)
    return USAGE if isinstance(error, FolderError) else LACKS
