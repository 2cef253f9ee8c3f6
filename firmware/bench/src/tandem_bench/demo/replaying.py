"""A rehearsal that repeats a drive: its downloads at their times."""

from __future__ import annotations

from tandem_bench.demo import configuration
from tandem_bench.demo.folder import PROBE, DemoFolder
from tandem_bench.demo.rehearsal import FIRST_PAIR_LATE_S, Rehearsal, Setting
from tandem_bench.rig.rig import Rig
from tandem_bench.rig.rights import Owner
from tandem_bench.scenario.played import Drive, Repeat


class Replaying(Rehearsal):
    """Plays ``drive``: nothing begins by movement, and what the drive downloaded is downloaded when it was."""

    report_words = ("--records",)

    def __init__(self, setting: Setting, folder: DemoFolder, owner: Owner, rig: Rig, drive: Drive) -> None:
        super().__init__(setting, folder, owner, rig)
        self._drive = drive

    def _collector_text(self) -> str:
        plan = self.setting.plan
        return configuration.collector_toml(
            PROBE, self.rig.probe_paths(), plan.run_seconds, 0.5, self.setting.seed, on_mobility_start="off"
        )

    def _told(self) -> dict[str, object]:
        one = self._drive
        return {"replayed": {"probe": one.probe, "started_utc_ns": one.started_utc_ns, "paths": dict(one.paths)}}

    def _play(self) -> None:
        socket = self.folder.probe / "status.sock"
        view = self.programs.start("watch", self._watching(socket), terminal=True)
        for one in self._drive.repeats:
            # One that is due while another goes on begins after it.
            self._until(max(one.t_s, self._played_s()), view)
            while self._tend_first_pair():
                self._until(self._played_s() + 0.2, view)
            self._words = _words(one, self.setting.plan.run_seconds)
            self._start_first_pair()
        self._until(self.setting.duration_s, view)
        self._until(self.setting.duration_s + FIRST_PAIR_LATE_S, view, pair=True)
        self.programs.end(view, 3)


def _words(one: Repeat, otherwise_s: float) -> list[str]:
    """Of ``tandem experiment run download``."""
    words = ["--pairing", one.pairing] if one.pairing else ["--kind", one.kind]
    if one.path is not None and not one.pairing:
        words += ["--path", one.path]
    if one.bytes is not None:
        return [*words, "--bytes", str(one.bytes)]
    return [*words, "--seconds", f"{one.seconds or otherwise_s:g}"]
