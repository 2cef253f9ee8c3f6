"""A collector's life: everything set up, run, and taken down in order whatever happens."""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import time
from collections.abc import Callable

from tandem.app import machine
from tandem.app.account import Account
from tandem.app.answering import Answering
from tandem.app.campaign.wiring import CampaignPart
from tandem.app.clock import Clock
from tandem.app.clock.watch import ClockWatch
from tandem.app.collector import Collector
from tandem.app.config import Config
from tandem.app.live import Live
from tandem.app.machine import UsageAccount
from tandem.app.parts import EnvironmentLackError, Parts, PathChange, PollerLike
from tandem.app.path_watch import PathWatch
from tandem.app.polling import Polling
from tandem.app.round_trip.round_trips import RoundTrips
from tandem.app.runs.captures import FOLDER as CAPTURES
from tandem.app.runs.captures import captures_on_disk, earlier_captures, salvaged_captures
from tandem.app.runs.context import RunContext
from tandem.app.runs.manifest import Manifests, write_json
from tandem.app.runs.registry import Registry
from tandem.app.runs.scheduler import RunScheduler, groups_so_far
from tandem.app.runs.steering import SteeringPart
from tandem.app.status_server import StatusServer
from tandem.app.status_socket import NAME, close, listen
from tandem.app.traces.wiring import TracesPart
from tandem.export import Exporter, GatewayAddress, PendingManifests
from tandem.spool import Spool, SpoolError, SpoolFullError
from tandem.stop_flag import StopFlag

log = logging.getLogger(__name__)

_RUN_END_S = 20.0
_RETRY_S = 10.0


class Supervisor:
    """One collector. ``modems`` False: no polling, for a single experiment from the command line.

    ``start`` raises EnvironmentLackError or ``tandem.export.SetupError`` with nothing left behind; ``close`` undoes it all.
    """

    def __init__(self, config: Config, parts: Parts, *, modems: bool = True) -> None:
        self.config, self._parts, self._modems = config, parts, modems
        self._undo: list[tuple[str, Callable[[], None]]] = []
        self._stop = StopFlag()
        self._polling: Polling | None = None
        self._server: StatusServer | None = None
        self._retried_s = 0.0
        self._collector: Collector | None = None

    # --- up ------------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Set everything up; when this returns, polling goes on."""
        try:
            self._start()
        except BaseException:
            self._take_down()
            raise

    def _start(self) -> None:
        config, parts = self.config, self._parts
        self._started_ns = time.monotonic_ns()
        self._cpu_at_start = machine.cpu_seconds()
        address = GatewayAddress.of(config.server.gateway, config.server.ca_file, config.server.token_file)
        try:
            for name in ("runs", CAPTURES, "spool"):
                (config.folder / name).mkdir(parents=True, exist_ok=True)
            listening = self._listen()
            self.clock = Clock(config.folder / "spool" / "boots.json")
            spool = self._spool = Spool(
                config.folder / "spool", self.clock.boot, config.spool_limit_bytes, self.clock.shown_ns
            )
            self._undo.append(("spool", spool.close))
            self.clock.began(spool.counts().made + 1)
            watch = self._clock_watch = ClockWatch(self.clock, config.clock)
            watch.start()
            self._undo.append(("clock", watch.stop))
            pending = PendingManifests(config.folder / "spool" / "pending-runs", config.folder / "runs")
        except SpoolError as error:
            raise EnvironmentLackError(str(error)) from error
        except OSError as error:
            raise EnvironmentLackError(
                f"{config.folder}: {error.strerror or error}; mend: a writable folder with room"
            ) from error
        for line in parts.undo_earlier(config.folder / "spool", self.clock.boot):
            log.warning("undone of an earlier life's run: %s", line)
        self.settings = parts.set_sysctls(config.sysctl)
        for name, setting in self.settings.items():
            if setting.get("error"):
                log.warning("sysctl %s stays at %s: %s", name, setting.get("now"), setting["error"])
        paths = parts.paths(config)
        changes = paths.apply()
        self._undo.append(("paths", paths.remove))
        salvaged = salvaged_captures(config.folder)
        captures = (
            parts.captures(config.capture, captures_on_disk(config.folder / CAPTURES))
            if config.capture.enabled
            else None
        )
        self._paths = paths
        self.exporter = Exporter(spool, pending, address, paths.interfaces, config.probe, self.clock)
        self.live = Live(config, self.clock.utc_ns, self._changed)
        detectors = parts.detectors(config)
        account = self.account = Account(
            config.folder, paths.interfaces, self.clock.boot, lambda: self.clock.utc_ns(time.monotonic_ns())
        )
        clock, live, usage = self.clock, self.live, UsageAccount(paths.interfaces)
        self.collector = self._collector = Collector(
            config, clock, spool, detectors, live, self.exporter, captures, usage, account, parts.roots
        )
        self.collector.reports.polling = self._modems
        self.environment = {**parts.environment(), "versions": machine.versions(), "settings": self.settings}
        self.environment |= {} if config.city is None else {"city": config.city}
        self._manifests = Manifests(config.folder / "runs", pending, lambda run: self.traces.made(run))
        context = RunContext(
            config=config,
            parts=parts,
            clock=self.clock,
            paths=paths,
            usage=usage,
            captures=captures,
            emit=self.collector.put,
            save=self._manifests.save,
            modems=self.live.modems,
            environment=self.environment,
            registry=Registry(config.experiments, parts.experiment),
            steering=SteeringPart(config, self.clock, paths, self.collector.put),
        )
        context.observers.extend([self.collector.trigger, self.collector, self.live])
        self.collector.steering = context.steering
        scheduler = self.scheduler = self.collector.scheduler = RunScheduler(
            context, groups_so_far(config.folder / "runs")
        )
        self.campaigns = self.collector.campaigns = CampaignPart(context, detectors, scheduler, address, account)
        self.exporter.held = lambda: self.campaigns.campaigns.holds_maintenance
        traces = self.traces = self.collector.traces = TracesPart(context, detectors, self.campaigns, account, address)
        for one in salvaged:
            self.collector.salvaged(one)
        path_watch = PathWatch(paths, self._paths_changed)
        if self._modems:
            self.collector.event("collector_start", f"version {self.environment['versions']['tandem']}")
            for change in changes:
                self.collector.put(change)
        path_watch.start()
        self._undo.append(("path watch", path_watch.stop))
        answers = self.answers = Answering(
            self.live,
            scheduler,
            self.campaigns,
            traces,
            account,
            self.collector.reports,
            self.collector.trigger,
            lambda: paths.states,
            lambda: [] if self._polling is None else self._polling.cards(self.live.card),
            lambda: None if self.collector.round_trips is None else self.collector.round_trips.status(),
        )
        self._server = StatusServer(listening, answers)
        self._undo.append(("status server", self._server.stop))
        self._server.start()
        self._undo.append(("exporter", self._abandon_export))
        self.exporter.start()
        if self._modems:
            beside: list[PollerLike] = []
            if config.round_trip.enabled:
                self.collector.round_trips = RoundTrips(config, paths, account, self.collector.put)
                context.observers.insert(0, self.collector.round_trips)
                beside.append(self.collector.round_trips)
            if (config.position is not None or config.clock == "gpsd") and parts.position is not None:
                to = self.collector.put, self.live.position_is, self._clock_watch.heard
                beside.append(parts.position(config, self.clock.utc_ns, *to))
            self._polling = Polling(config, parts, self.collector.put, beside, scheduler)
            self._polling.start()
            self._undo.append(("campaign queue", self.campaigns.stop))
            self.campaigns.start()
            self._undo.append(("traces", traces.stop))
            traces.start()

    def _listen(self) -> socket.socket:
        file = self.config.folder / NAME
        try:
            listening = listen(file)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise EnvironmentLackError(f"{file}: another collector runs here; mend: stop it first") from error
            raise
        self._undo.append(("status socket", lambda: close(listening, file)))
        return listening

    def _paths_changed(self, changes: list[PathChange]) -> None:
        for change in changes:
            self.collector.put(change)

    def _changed(self) -> None:
        if self._server is not None:
            self._server.wake()

    # --- running -----------------------------------------------------------------------------------------------------------

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Measure until ``stop`` is called or ``until`` says so. The calling thread writes the spool."""
        while not self._stop.is_set() and not until():
            self.collector.turn()
            if time.monotonic() - self._retried_s > _RETRY_S:
                self._retried_s = time.monotonic()
                self._manifests.retry()

    def stop(self) -> None:
        """End ``run`` soon. Safe in a signal handler."""
        self._stop.set()
        if self._collector is not None:
            self._collector.put(None)

    # --- down --------------------------------------------------------------------------------------------------------------

    def close(self) -> bool:
        """End the run in progress, keep what it measured, send what is left, write collector.json, undo the rest. True when
        nothing is left unsent."""
        try:
            return self._close()
        finally:
            self._take_down()

    def _close(self) -> bool:
        self.traces.stop()
        self.scheduler.stop()
        deadline_s = time.monotonic() + _RUN_END_S
        while self.scheduler.running and time.monotonic() < deadline_s:
            self.collector.take_all()
            self.collector.journal.commit()  # kill -9 must not lose more now than at any other time
            self.scheduler.join(0.5)
        if self._polling is not None:
            self._polling.stop()
        self.collector.take_all()
        if self._modems:
            self.collector.event("collector_stop")
        self.collector.report(time.monotonic_ns(), last=True)
        self.collector.take_all()
        self.collector.journal.commit()
        self._manifests.retry()
        if self._server is not None:
            self._server.stop()
        sent = self.exporter.stop(self.config.drain_s)
        with contextlib.suppress(SpoolFullError):  # told already; what was acknowledged is sent once more
            self._spool.flush()
        self._write_account()
        return sent

    def _write_account(self) -> None:
        """``collector.json`` (server/spec/campaign-folder.md)."""
        file = self.config.folder / "collector.json"
        if not self._modems and file.exists():
            return  # the account of a collector that polled is worth more than that of one experiment
        counts = self._spool.counts()
        control, uploads = self.collector.control_bytes(), self.collector.upload_bytes()
        usage = {
            path: {
                "received_bytes": received,
                "sent_bytes": sent,
                "control_bytes": control.get(path, 0),
                "upload_bytes": uploads.get(path, 0),
            }
            for path, (received, sent) in self.collector.usage.update().items()
        }
        account = {
            "format": "tandem-collector/1",
            "probe": self.config.probe,
            "boot": self.clock.boot,
            "started_utc_ns": self.clock.utc_ns(self._started_ns),
            "ended_utc_ns": self.clock.now_ns(),
            "clock": self.clock.state(),
            "records": {
                "made": counts.made,
                "sent": counts.sent,
                "pending": counts.pending,
                "rejected": counts.rejected,
                "dropped": counts.dropped,
                "by_measurement": counts.by_measurement,
            },
            "polls": self.collector.polls.as_json(),
            "captures": earlier_captures(file, self.collector.captured, self.config.folder) + self.collector.captured,
            "usage": usage,
            "resources": {
                "cpu_seconds": round(machine.cpu_seconds() - self._cpu_at_start, 3),
                "max_rss_bytes": machine.peak_rss_bytes(),
                "wall_seconds": round((time.monotonic_ns() - self._started_ns) / 1e9, 3),
            },
            "versions": self.environment["versions"],
            "environment": {k: v for k, v in self.environment.items() if k != "versions"},
        }
        try:
            write_json(file, account)
        except OSError as error:
            log.error("%s: %s; mend: free disk space", file, error.strerror)

    def _abandon_export(self) -> None:
        self.exporter.stop(0.0)

    def _take_down(self) -> None:
        while self._undo:
            name, action = self._undo.pop()
            try:
                action()
            except (OSError, SpoolError, EnvironmentLackError) as error:
                log.warning("%s: %s", name, error)
