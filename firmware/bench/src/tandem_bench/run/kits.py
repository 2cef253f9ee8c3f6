"""Several probes at one server, as a fleet's are: each with links, modems and a collector of its own, a campaign pushed to all of them.

What the server then exports is reported, and so are the probes' own folders, with the database: the figures must have the same data.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tandem_bench.run import configuration
from tandem_bench.run.folder import DemoFolder, versions
from tandem_bench.run.programs import COLLECTOR, READY_S, confined
from tandem_bench.run.rehearsal import COLLECTOR_END_S, Rehearsal
from tandem_bench.run.rig import Rig
from tandem_bench.scenario import Played

CAMPAIGN = "kits"
SECONDS, PAUSE_S = 3, 0.5
PAIR_S = 3 * (SECONDS + PAUSE_S) + 12
"""A pair of three runs takes about as long, with its sessions and captures; the campaign is meant to end with the scenario."""
ARRIVE_S = 240.0
_CAMPAIGN = f"""\
format = "tandem-campaign-file/1"
name = "{CAMPAIGN}"
title = "downloads of several kits"
roles = ["a", "b"]
[[step]]
name = "pairs"
experiment = "download"
repetitions = {{repetitions}}
[step.parameters]
pairing = "sequential"
seconds = {SECONDS}
pause_s = {PAUSE_S}
primary = "random"
"""
_MORE = """
[campaigns]
ask_every_s = 2

[traces]
over = "any"
night = "off"
still_for_s = 0
"""


@dataclass(frozen=True, slots=True)
class Kit:
    """``folder``: a campaign folder of its own; ``namespace``: its place in the topology; ``paths``: the rig's by its own names."""

    name: str
    folder: Path
    namespace: str
    paths: Mapping[str, str]

    @property
    def probe(self) -> Path:
        """The probe's folder."""
        return self.folder / "probe" / self.name


class KitsFolder(DemoFolder):
    """``kit-1`` … beside ``server`` and ``logs``; ``exported``, ``published``."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.probe = self.root / "kit-1" / "probe" / "probe-1"
        self.campaign = self.root / "kit-1" / "campaign.json"
        self.summary = self.root / "exported" / "summary.json"


def together(plays: Sequence[Played]) -> Played:
    """What all kits' operators do, at the same time; those of the second kit are called A2, B2 …"""
    operators = {
        name if kit == 1 else f"{name}{kit}": replace(timeline, operator=name if kit == 1 else f"{name}{kit}")
        for kit, played in enumerate(plays, 1)
        for name, timeline in played.operators.items()
    }
    return replace(plays[0], operators=operators)


def kits_of(plays: Sequence[Played], root: Path) -> list[Kit]:
    """One for each play."""
    found = []
    for kit, played in enumerate(plays, 1):
        paths = {name.lower(): name.lower() if kit == 1 else f"{name.lower()}{kit}" for name in played.operators}
        found.append(Kit(f"probe-{kit}", root / f"kit-{kit}", "probe" if kit == 1 else f"probe-{kit}", paths))
    return found


class Kits(Rehearsal):
    """``outcome``, once it has run: what was exported, and which figures and tables have other data than the kits' own."""

    def __init__(self, rig: Rig, folder: KitsFolder, influxd: Path, kits: Sequence[Kit]) -> None:
        super().__init__(rig, folder, influxd)
        self.kits = list(kits)
        self.outcome: dict[str, Any] = {}
        self._started_utc_ns = self._ended_utc_ns = 0

    def _probes(self) -> dict[str, Path]:
        return {kit.name: kit.probe for kit in self.kits}

    def _start_server(self) -> None:
        for kit in self.kits:
            for place in (kit.folder, kit.folder / "probe", kit.probe):
                if not place.exists():
                    place.mkdir()
                    self.owner.give(place)
        super()._start_server()

    def _start_collector(self) -> None:
        print("starting the collectors …", flush=True)
        self._started_utc_ns = (time.time_ns() - int(self.rig.now_s() * 1e9)) // 1000 * 1000
        there = {path.name: path for path in self.rig.probe_paths()}
        for kit in self.kits:
            # Both kits are of the same two operators, wherever they are.
            own = [replace(there[path], name=name, operator=name.upper()) for name, path in kit.paths.items()]
            config = kit.probe / "config.toml"
            text = configuration.collector_toml(
                kit.name, own, SECONDS, PAUSE_S, self.played.seed, on_mobility_start="off"
            )
            self._write(config, text + _MORE)
            argv = confined(self._tool("tandem", "run", "--config", str(config)), self.owner, COLLECTOR)
            self.collecting = self.programs.start(
                f"collector-{kit.name}", self.rig.command(kit.namespace, argv), READY_S
            )
        self._write_campaign()

    def _play(self) -> None:
        repetitions = max(1, int((self.duration_s - 5) / PAIR_S))
        file = self.folder.server / f"{CAMPAIGN}.toml"
        self._write(file, _CAMPAIGN.format(repetitions=repetitions))
        self._json("campaign", "push", str(file), "--probes", *(kit.name for kit in self.kits))
        until_s, said = self.duration_s + 120.0, ""
        while self.rig.now_s() < until_s:
            self._look()
            states = {row["probe"]: row for row in self._json("campaign", "status", CAMPAIGN)}
            line = ", ".join(f"{name} {row['state']}" for name, row in sorted(states.items()))
            if line != said:
                print(f"  {self.rig.now_s():6.0f} s  {line}", flush=True)
                said = line
            if all(row["state"] in ("done", "refused") for row in states.values()):
                return
            time.sleep(1.0)

    def _json(self, *words: str) -> Any:  # noqa: ANN401  JSON
        """What the server's program answers."""
        return json.loads(self._run_server(*words, "--config", str(self._server_toml), "--json").stdout)

    def _finish(self) -> int:
        print("waiting for what is left to arrive …", flush=True)
        self._ended_utc_ns = time.time_ns() // 1000 * 1000  # an export is asked for to the microsecond
        until = time.monotonic() + ARRIVE_S
        while not self._json("ledger")["complete"] and time.monotonic() < until:
            time.sleep(1.0)
        self._end("collector", COLLECTOR_END_S)
        self.rig.stop_radio()
        self._end("gateway")
        self._end("endpoint")
        self._write_campaign(ended=True)
        print("analysing the captures …", flush=True)
        analysed = self._json("traces", "analyse", "--all")
        for kit in self.kits:
            self._run_server("analyse", str(kit.probe), "--out", str(kit.folder / "traces"), "--json")
        print("exporting and writing the reports …", flush=True)
        root, config = self.folder.root, ["--config", str(self._server_toml)]
        span = ["--from", _iso(self._started_utc_ns), "--to", _iso(self._ended_utc_ns)]
        exported = self._json("campaign", "export", CAMPAIGN, "--out", str(root / "exported"), "--tables", *span)
        self._run_server("report", str(root / "exported"))
        self._run_server("report", *(str(kit.folder) for kit in self.kits), *config)
        licence = ["--licence", "CC0-1.0", "--no-home", "--key", str(self.folder.server / "publish.key")]
        self._run_server("campaign", "publish", str(root / "exported"), "--out", str(root / "published"), *licence)
        self.outcome = {
            "exported": exported,
            "analysed": analysed,
            "figures": compared(self.kits[0].folder / "figures", root / "exported" / "figures"),
            "tables": compared(self.kits[0].folder / "tables", root / "exported" / "tables"),
        }
        return 1 if exported["missing"] else 0

    def _write_campaign(self, *, ended: bool = False) -> None:
        for kit in self.kits:
            told = {
                "format": "tandem-campaign/1",
                "scenario": CAMPAIGN,
                "seed": self.played.seed,
                "duration_s": self.duration_s,
                "started_utc_ns": self._started_utc_ns,
                "ended_utc_ns": self._ended_utc_ns if ended else None,
                "stopped": self.stopped if ended else "it is still running, or was killed",
                "probe": kit.name,
                "paths": {name: {"operator": name.upper()} for name in kit.paths},
                "versions": versions(self._influxd),
                "store": {"url": f"http://127.0.0.1:{configuration.DATABASE_PORT}", "database": "tandem"},
            }
            file = kit.folder / "campaign.json"
            file.write_text(json.dumps(told, indent=1))
            self.owner.give(file)


def _iso(utc_ns: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=utc_ns // 1000)).isoformat()


def compared(own: Path, exported: Path) -> dict[str, Any]:
    """Files of data of two reports: how many are the same, which are not."""
    names = sorted({path.name for folder in (own, exported) for path in folder.glob("*.csv")})
    read = {
        name: [f.read_bytes() if (f := folder / name).is_file() else None for folder in (own, exported)]
        for name in names
    }
    different = [name for name, (a, b) in read.items() if a != b]
    return {"files": len(names), "same": len(names) - len(different), "different": different}
