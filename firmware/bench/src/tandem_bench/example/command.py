"""``tandem-bench campaign`` from its arguments to its exit status."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from pathlib import Path

from tandem_bench.demo.command import INTERRUPTED, LACKS, NEGATIVE, NOT_PLAYED, OK, find_influxd, not_played
from tandem_bench.demo.folder import DemoFolder
from tandem_bench.demo.plan import Plan
from tandem_bench.demo.rehearsal import Setting, summary_of
from tandem_bench.demo.stopping import StopSignals
from tandem_bench.example.compared import Compared, Comparison
from tandem_bench.example.outcome import arms_table, arms_told, table, told
from tandem_bench.example.stage import SITES, Example, figures_of
from tandem_bench.link.backend import choose
from tandem_bench.link.build import LinkMissingError, find_binary
from tandem_bench.rig.rig import Rig
from tandem_bench.rig.rights import Owner
from tandem_bench.scenario import Played
from tandem_bench.topology import private
from tandem_bench.topology.requirements import MachineError, require

EXPECTED_LACKING = ("chen-8", "chen-11", "trips-tail", "trips-quantiles", "trips-impaired")
"""Chen's simultaneous SYN was a patch to a kernel, and his endless backlog takes minutes at these rates; round trips all the time are no
campaign's, and off unless asked for."""


def campaign(
    played: Played, out: Path, *, as_json: bool = False, link: str = "auto", comparison: Comparison | None = None
) -> int:
    """Play it, analyse, report; the exit status as ``cli.main.ExitCode``. With ``as_json`` what is said meanwhile goes to stderr.
    ``comparison``: the campaign file whose arms are compared, in place of the example."""
    owner, folder = Owner.of_caller(), DemoFolder(out)
    try:
        influxd = find_influxd()
        require()
        program = find_binary() if choose(link) == "tun" else None
        setting = Setting(played.name, played.seed, played.duration_s, Plan(0.0, 0.0, 0.0, 0.0), True, influxd, program)
        private.enter()
        alone = comparison is not None
        wifi = comparison is None or comparison.paths > len(played.operators)
        rig = Rig(played, folder.bench, owner, wifi=wifi, server_addresses=1 if alone else 2, sites=SITES, link=link)
    except (MachineError, LinkMissingError) as error:
        print(f"tandem-bench campaign: {error}", file=sys.stderr)
        return LACKS
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        status, example = _played(setting, rig, folder, owner, comparison)
    if example is None:
        return status
    if isinstance(example, Compared):
        return _compared(example, folder, status, as_json=as_json)
    summary, figures = summary_of(folder), figures_of(folder)
    if as_json:
        print(json.dumps({**told(summary, figures, example.failed_acts), "folder": str(folder.root)}, indent=1))
    else:
        print(table(figures))
        print(f"\n  report: {folder.report}\n", flush=True)
    if example.stopped is not None:
        return INTERRUPTED if example.by_user else LACKS
    lacking = [f["name"] for f in figures if not f["drawn"] and f["name"] not in EXPECTED_LACKING]
    return NEGATIVE if status != OK or lacking or example.failed_acts else OK


def _compared(example: Compared, folder: DemoFolder, status: int, *, as_json: bool) -> int:
    summary = summary_of(folder)
    outcome = arms_told(summary, example.comparison.name, example.starts_s(), example.misplaced)
    if as_json:
        print(json.dumps({**outcome, "folder": str(folder.root)}, indent=1))
    else:
        print(arms_table(outcome))
        print(f"\n  report: {folder.report}\n", flush=True)
    if example.stopped is not None:
        return INTERRUPTED if example.by_user else LACKS
    return NEGATIVE if status != OK or outcome["failed"] or outcome["misplaced"] else OK


def _played(
    setting: Setting, rig: Rig, folder: DemoFolder, owner: Owner, comparison: Comparison | None
) -> tuple[int, Example | None]:
    """The report's status and what was played; None, with the command's status, when there is no report."""
    StopSignals().install()
    try:
        folder.make(owner)
        what = "the example campaign" if comparison is None else f"{comparison.name}, {comparison.blocks} blocks,"
        print(f"playing {what} (seed {setting.seed}, {setting.duration_s / 60:.0f} min) into {folder.root}", flush=True)
        parts = (setting, folder, owner, rig)
        example = Example(*parts) if comparison is None else Compared(*parts, comparison)
        arrived = example.run()
    except NOT_PLAYED as error:
        return not_played("campaign", error, folder), None
    if arrived is None:
        print(f"tandem-bench campaign: nothing was measured; logs in {folder.logs}", file=sys.stderr)
        return (INTERRUPTED if example.by_user else LACKS), None
    shutil.rmtree(folder.bench)  # timelines of the scenario, which its seed gives again
    return arrived, example
