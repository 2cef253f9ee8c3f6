"""``tandem-bench kits`` from its arguments to its exit status."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tandem_bench.demo.command import INTERRUPTED, LACKS, NEGATIVE, NOT_PLAYED, OK, find_influxd, not_played
from tandem_bench.demo.plan import Plan
from tandem_bench.demo.rehearsal import Setting
from tandem_bench.demo.stopping import StopSignals
from tandem_bench.kits.kits import Kits, KitsFolder, kits_of, together
from tandem_bench.link.backend import choose
from tandem_bench.link.build import LinkMissingError, find_binary
from tandem_bench.rig.rig import Rig
from tandem_bench.rig.rights import Owner
from tandem_bench.scenario import Played
from tandem_bench.topology import private
from tandem_bench.topology.requirements import MachineError, require


def kits(plays: Sequence[Played], out: Path, *, as_json: bool = False, link: str = "auto") -> int:
    """Play them at once; the exit status as ``cli.main.ExitCode``. With ``as_json`` what is said meanwhile goes to stderr."""
    owner, folder = Owner.of_caller(), KitsFolder(out)
    own = kits_of(plays, folder.root)
    try:
        influxd = find_influxd()
        require()
        program = find_binary() if choose(link) == "tun" else None
        first = plays[0]
        setting = Setting(first.name, first.seed, first.duration_s, Plan(0.0, 0.0, 0.0, 0.0), True, influxd, program)
        private.enter()
        near = {path: kit.namespace for kit in own for path in kit.paths.values()}
        rig = Rig(together(plays), folder.bench, owner, link=link, near=near)
    except (MachineError, LinkMissingError) as error:
        print(f"tandem-bench kits: {error}", file=sys.stderr)
        return LACKS
    playing = Kits(setting, folder, owner, rig, own)
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        status = _played(playing, folder, owner)
    if status is not None:
        return status
    outcome = playing.outcome
    if as_json:
        print(json.dumps({**outcome, "folder": str(folder.root)}, indent=1))
    else:
        for what in ("figures", "tables"):
            told = outcome[what]
            other = f"; other data: {', '.join(told['different'])}" if told["different"] else ""
            print(f"  {what}: {told['same']} of {told['files']} have the same data, exported and the kits' own{other}")
        print(
            f"  report: {folder.root / 'exported' / 'report.html'}, beside {own[0].folder / 'report.html'}\n",
            flush=True,
        )
    # Nothing compared is nothing shown.
    same = all(outcome[what]["files"] and not outcome[what]["different"] for what in ("figures", "tables"))
    good = same and not outcome["exported"]["missing"]
    if playing.stopped is not None:
        return INTERRUPTED if playing.by_user else LACKS
    return OK if good else NEGATIVE


def _played(playing: Kits, folder: KitsFolder, owner: Owner) -> int | None:
    """None: played and compared; else the command's status."""
    StopSignals().install()
    try:
        folder.make(owner)
        minutes = playing.setting.duration_s / 60
        print(f"playing {len(playing.kits)} kits ({minutes:.1f} min) into {folder.root}", flush=True)
        arrived = playing.run()
    except NOT_PLAYED as error:
        return not_played("kits", error, folder)
    if arrived is None or not playing.outcome:
        print(f"tandem-bench kits: nothing was measured; logs in {folder.logs}", file=sys.stderr)
        return INTERRUPTED if playing.by_user else LACKS
    return None
