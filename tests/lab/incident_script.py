"""What happens in the incident run: the runs one after the other, and beside them what goes wrong, at its time."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from incident_host import TOO_LOW, WELL, Machine, SmallDisk
from incident_results import IncidentRun, Span
from incident_second_probe import NAME, SecondProbe, second_probe

from support.running_kit import PROBE, RunningKit, awaited
from tandem.app.daemon.status_socket import ask
from tandem_bench.run.programs import READY_S
from tandem_server.registry import Registry

CAMPAIGN = """
format = "tandem-campaign-file/1"
name = "compressed"
title = "a download by Multipath TCP and by TCP, and a play"
roles = ["first", "second"]

[budget]
path_bytes = 40_000_000
day_bytes = 20_000_000

[[step]]
name = "downloads"
experiment = "download"
repetitions = 500
[step.parameters]
kind = ["mptcp", "tcp"]
path = "first"
bytes = 600_000

[form.pilot]
repetitions = 1
"""

STRIPS = "chain on { type filter hook forward priority -1; iifname ran0 tcp flags syn reset tcp option mptcp; }"
"""An operator whose middlebox takes Multipath TCP's options off."""
REFUSES = "chain on { type filter hook output priority 0; oifname wwan1 tcp dport 8480 reject with tcp reset; }"
"""Nobody listens where the measurement goes."""
CUT = "chain on { type filter hook output priority 0; tcp dport 8443 drop; }"
"""The gateway is not reached."""


GONE_S = 20.0
OF_FIRST_LIFE = {
    "handover", "mobility_start", "mobility_stop", "modem_back", "modem_lost", "recovered", "recovery_step", "service_back",
    "service_lost", "signal_drop", "undervoltage",
}  # fmt: skip
"""Events that the scenario and the faults lead to before the reboot."""

At = Callable[..., None]
"""When in the scenario, the span's name, what is done."""


class Faults:
    """What happens at times of the scenario, on a thread beside the runs; what it raises is raised at the end."""

    def __init__(self, epoch_monotonic_ns: int) -> None:
        self._epoch_ns, self._due = epoch_monotonic_ns, list[tuple[float, Callable[[], object]]]()
        self._error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._play, name="faults")

    def at(self, t_s: float, act: Callable[[], object]) -> None:
        """Before ``__enter__``."""
        self._due.append((t_s, act))

    def __enter__(self) -> Faults:
        self._due.sort(key=lambda one: one[0])
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._stop.set()
        self._thread.join()
        if self._error is not None and kind is None:
            raise self._error

    def _play(self) -> None:
        try:
            for t_s, act in self._due:
                if self._stop.wait(max(0.0, t_s - (time.monotonic_ns() - self._epoch_ns) / 1e9)):
                    return
                act()
        except BaseException as error:  # noqa: BLE001  raised again by the thread that waits
            self._error = error


@dataclass
class Story:
    kit: RunningKit
    left: IncidentRun
    machine: Machine
    disk: SmallDisk

    def tell(self) -> None:
        """The runs one after the other, the faults at their times."""
        self.kit.server("probe", "add", "probe-3", "--token-file", str(self.kit.folder / "unused"))
        self.left.spans["clock_unset"] = Span(time.time_ns())
        second = second_probe(self.kit)
        with self._faults_of_the_second(second), self._faults_of_the_server(second), self._faults_of_the_probe():
            self._runs()
            self._campaign()
            # What the alarms call gone it is only after a while.
            awaited("the second probe is silent", lambda: self._lasted("second_silent", GONE_S), 120)
            self._cut()
            self._reboot()
        self._arrived()

    def _faults_of_the_probe(self) -> Faults:
        """These, as those below, have a thread of their own: each lasts until somebody has noticed it, however slow the machine."""
        faults, begin, end = self._scheduled()

        def supply_well() -> None:
            self._stored('SELECT count("seq") FROM "health" WHERE "undervoltage" = true')
            self.machine.supply(WELL)

        hang = {"fault": "hang", "seconds": 3600, "cured_by": "AT+CFUN"}
        begin(3, "undervoltage", lambda: self.machine.supply(TOO_LOW))
        end(4, "undervoltage", supply_well)
        begin(48, "modem_hangs", lambda: self.kit.play("a", hang))
        return faults

    def _faults_of_the_server(self, second: SecondProbe) -> Faults:
        faults, begin, end = self._scheduled()

        def disk_cleared() -> None:
            since = self.left.spans["disk_full"].begin_utc_ns  # a point of while it was filling is none of the span
            full = f""""place" = 'traces' AND "free_bytes" < 2000000 AND time >= {since}"""
            self._stored(f'SELECT count("free_bytes") FROM "server_disk" WHERE {full}')  # noqa: S608
            self.disk.clear()

        begin(20, "refused", second.sends_what_is_refused)
        end(21, "refused", lambda: self._stored('SELECT sum("lines_rejected") FROM "gateway"', 3))
        begin(30, "disk_full", lambda: self.disk.fill(1_000_000))
        end(31, "disk_full", disk_cleared)
        return faults

    def _faults_of_the_second(self, second: SecondProbe) -> Faults:
        faults, begin, end = self._scheduled()

        def clock_set() -> None:
            self._noticed(NAME, "not_uploading", "clock_unset")
            second.clock_set()

        def silent() -> None:
            self._noticed(NAME, "online_not_measuring", "second_online")
            second.silent()

        end(28, "clock_unset", clock_set)
        begin(28.1, "second_online", bool)
        end(45, "second_online", silent)
        begin(45, "second_silent", bool)
        return faults

    def _lasted(self, span: str, seconds: float) -> bool:
        return span in self.left.spans and time.time_ns() > self.left.spans[span].begin_utc_ns + seconds * 1e9

    def _stored(self, select: str, least: int = 1) -> None:
        """The database counts as much."""

        def stored() -> bool:
            return sum(int(series["rows"][0][1]) for series in self.kit.query(select)) >= least

        awaited(select, stored, 120)

    def _noticed(self, probe: str, state: str, span: str) -> None:
        """The server has told of this state since the span began."""
        told = 'SELECT last("state_code") FROM "probe_state" WHERE "state" = $state AND "probe" = $probe AND time >= '
        told += str(self.left.spans[span].begin_utc_ns)
        awaited(f"{probe} is {state}", lambda: self.kit.query(told, probe=probe, state=state), 120)

    def _scheduled(self) -> tuple[Faults, At, At]:
        """What happens beside the runs, and what begins and ends a span there."""
        faults = Faults(self.kit.rig.epoch_monotonic_ns)

        def begin(t_s: float, name: str, act: Callable[[], object]) -> None:
            def acted() -> None:
                act()
                self.left.spans[name] = Span(time.time_ns())

            faults.at(t_s, acted)

        def end(t_s: float, name: str, act: Callable[[], object] = bool) -> None:
            def acted() -> None:
                act()
                self.left.spans[name].end_utc_ns = time.time_ns()

            faults.at(t_s, acted)

        return faults, begin, end

    def _asked(self, **request: Any) -> Iterator[dict[str, Any]]:
        """Answers of the collector's status socket, which ``tandem experiment`` and ``tandem status`` ask."""
        return ask(self.kit.probe / "status.sock", request, 180.0)

    def _ran(self, what: str, experiment: str = "download", *, ok: bool = True, **asked: Any) -> None:
        answers: list[dict[str, Any]] = []

        def begun() -> bool:
            """A modem's recovery keeps runs off."""
            answers[:] = self._asked(op="start", experiment=experiment, parameters={"paths": ["a", "b"], **asked})
            return answers[-1]["type"] != "refused" or "try again" not in answers[-1]["reason"]

        awaited(f"{what} may begin", begun, 180)
        last = answers[-1]
        assert (last["type"], last.get("ok")) == ("done", ok), answers
        self.left.runs[what] = last["runs"]

    def _runs(self) -> None:
        self._ran("sequential", pairing="sequential", seconds=1)
        self._ran("simultaneous", pairing="simultaneous", seconds=3)
        self._ran("bandwidth", "bandwidth", parameters={"seconds": 1})
        self._ran("delay", "delay", parameters={"min_bytes": 100_000, "max_bytes": 100_000})
        with self.kit.ruled("op-b", STRIPS):
            self._ran("verdict", "verdict", parameters={"bytes": 100_000, "join_wait_s": 2, "asks": 2})
        played = {"kind": "mptcp", "path": "a", "content": "synthetic", "mpd": "1s-number.mpd", "seconds": 8}
        self._ran("dash", "dash", parameters=played)
        with self.kit.ruled("probe", REFUSES):
            self._ran("refused", ok=False, kind="tcp", path="b", seconds=1)

    def _campaign(self) -> None:
        file = self.kit.folder / "compressed.toml"
        file.write_text(CAMPAIGN)
        pushed = self.kit.server("campaign", "push", str(file), "--form", "pilot", "--probes", PROBE, "--json")
        (row,) = json.loads(pushed)
        with Registry(self.kit.folder / "server" / "registry.sqlite") as registry:

            def done() -> bool:
                (told,) = (one for one in registry.campaigns.all(PROBE) if one.pushed.id == row["id"])
                assert told.state in ("queued", "taken", "running", "done"), told
                return told.state == "done"

            awaited("the campaign is done", done, 180)
        told = """SELECT last("made") FROM "campaign" WHERE "state" = 'done'"""
        awaited("the database has its end", lambda: self.kit.query(told), 120)

    def _cut(self) -> None:
        """The gateway is not reached while pairs are measured, and starts anew meanwhile: the spool reaches its cap."""
        with self.left.span("gateway_cut"), self.kit.ruled("probe", CUT):
            (gateway,) = (program for program in self.kit.programs.started if program.name == "gateway")
            self.kit.programs.end(gateway, 60)
            self.kit.programs.start("gateway", gateway.argv, READY_S)
            while not next(self._asked(op="status"))["spool"]["dropped"]:
                self._ran("cut", pairing="simultaneous", seconds=9)
            full = self._polls()
            # Health is told every ten seconds: in so many polls of two modems once.
            awaited("the probe tells of its full spool", lambda: self._polls() >= full + 24, 180)
        # The next life sees nothing of these any more.
        awaited("the first life's events are in the database", self._first_life_told, 180)

    def _first_life_told(self) -> bool:
        told = self.kit.query('SELECT count("seq") FROM "event" WHERE "probe" = $probe GROUP BY "kind"', probe=PROBE)
        return {series["tags"]["kind"] for series in told} >= OF_FIRST_LIFE

    def _missing(self) -> bool:
        """By its last word: a run that was refused at first counts as missing until the ledger looks at it again, a minute later."""
        told = self.kit.query(
            'SELECT last("runs_missing") FROM "ledger" WHERE "probe" = $probe GROUP BY "campaign"', probe=PROBE
        )
        missing = {series["tags"]["campaign"]: series["rows"][-1][-1] for series in told}
        return missing.get("", 0) > 0 and missing.get("compressed") == 0

    def _polls(self) -> int:
        return int(next(self._asked(op="status"))["polls"]["made"])

    def _reboot(self) -> None:
        self.machine.booted()
        self.kit.collector_cut()

    def _arrived(self) -> None:
        """The next life has measured, all that waits is sent, and the ledger has seen what will not come."""

        def sent() -> bool:
            told = next(self._asked(op="status"))
            return bool(told["polls"]["made"] >= 8 and told["spool"]["pending"] < 60)

        awaited("nothing waits to be sent", sent, 180)
        self._noticed(NAME, "silent", "second_silent")
        awaited("the ledger says what is missing", self._missing, 180)

        def analysed() -> bool:
            try:
                self.kit.server("traces", "analyse")
            except AssertionError as error:
                if "another run writes there" in str(error):  # the server is at it
                    return False
                if "captures analysed" not in str(error):  # some, and a capture that was cut failed
                    raise
            return True

        awaited("the captures are analysed, by the server itself or here", analysed, 600)
        hour = datetime.fromtimestamp(self.left.spans["all"].begin_utc_ns / 1e9, UTC).isoformat(timespec="seconds")
        self.kit.server("series", "recompute", "--from", hour)
