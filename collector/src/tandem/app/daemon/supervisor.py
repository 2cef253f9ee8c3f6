"""A collector's life: everything set up, run, and taken down in order whatever happens."""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import asdict

from tandem.app.campaign.wiring import CampaignPart
from tandem.app.clock_watch import ClockWatch
from tandem.app.config import Config
from tandem.app.daemon.accounts import Account
from tandem.app.daemon.hardware import Hardware
from tandem.app.daemon.main_loop import MainLoop
from tandem.app.daemon.modems import STOP_S, Polling
from tandem.app.daemon.paths import PathWatch
from tandem.app.daemon.status import StatusModel, StatusService
from tandem.app.daemon.status_server import StatusServer
from tandem.app.daemon.status_socket import NAME, close, listen
from tandem.app.health.machine import cpu_seconds, peak_rss_bytes, versions
from tandem.app.round_trips import RoundTrips
from tandem.app.runs.captures import FOLDER as CAPTURES
from tandem.app.runs.captures import captures_on_disk, earlier_captures, salvaged_captures
from tandem.app.runs.context import RunContext
from tandem.app.runs.executor import RunScheduler, groups_so_far
from tandem.app.runs.manifest import Manifests, write_json
from tandem.app.runs.registry import Registry
from tandem.app.runs.steering import SteeringPart
from tandem.app.traces import TracesPart
from tandem.experiment.base import MissingRequirementError
from tandem.export import Exporter, GatewayAddress, PendingManifests
from tandem.export.clock import Clock
from tandem.position.receiver import Receiver
from tandem.spool import Spool, SpoolError, SpoolFullError
from tandem.stop_flag import StopFlag

log = logging.getLogger(__name__)

_RUN_END_S = 20.0
_RETRY_S = 10.0


class Supervisor:
    """One collector. ``modems`` False: no polling, for a single experiment from the command line.

    ``start`` raises MissingRequirementError or ``tandem.export.SetupError`` with nothing left behind; ``close`` undoes it all.
    """

    def __init__(self, config: Config, hardware: Hardware | None = None, *, modems: bool = True) -> None:
        self.config, self._hardware, self._modems = config, hardware or Hardware(), modems
        self._undo: list[tuple[str, Callable[[], object]]] = []
        self._stop = StopFlag()
        self._polling: Polling | None = None
        self._beside: list[RoundTrips | Receiver] = []
        self._server: StatusServer | None = None
        self._retried_s = 0.0
        self._main_loop: MainLoop | None = None

    # --- up ------------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Set everything up; when this returns, polling goes on."""
        try:
            self._start()
        except BaseException:
            self._take_down()
            raise

    def _start(self) -> None:
        config, hardware = self.config, self._hardware
        self._started_ns = time.monotonic_ns()
        self._cpu_at_start = cpu_seconds()
        address = GatewayAddress.of(config.server.gateway, config.server.ca_file, config.server.token_file)
        try:
            for name in ("runs", CAPTURES, "spool"):
                (config.folder / name).mkdir(parents=True, exist_ok=True)
            listening = self._listen()
            clock = self.clock = Clock(config.folder / "spool" / "boots.json")
            spool = self._spool = Spool(config.folder / "spool", clock.boot, config.spool_limit_bytes)
            self._undo.append(("spool", spool.close))
            clock.began(spool.counts().made + 1)
            watch = ClockWatch(clock, config.clock)
            watch.look()  # a clock that is right gives times from the beginning
            self._undo.append(("clock", watch.stop))
            pending = PendingManifests(config.folder / "spool" / "pending-runs", config.folder / "runs")
        except SpoolError as error:
            raise MissingRequirementError(str(error)) from error
        except OSError as error:
            raise MissingRequirementError(
                f"{config.folder}: {error.strerror or error}; hint: a writable folder with room"
            ) from error
        for line in hardware.undo_earlier(config.folder / "spool", clock.boot):
            log.warning("undone of an earlier life's run: %s", line)
        settings = hardware.set_sysctls(config.sysctl)
        for name, setting in settings.items():
            if setting.get("error"):
                log.warning("sysctl %s stays at %s: %s", name, setting.get("now"), setting["error"])
        paths = hardware.paths(config)
        changes = paths.apply()
        self._undo.append(("paths", paths.remove))
        salvaged = salvaged_captures(config.folder)
        captures = None
        if config.capture.enabled:
            captures = hardware.captures(config.capture, captures_on_disk(config.folder / CAPTURES))
        self.exporter = Exporter(spool, pending, address, paths.interfaces, config.probe, clock)
        model = self.model = StatusModel(config, clock.utc_ns, self._changed)
        detectors = hardware.detectors(config)
        account = self._account = Account(config.folder, paths.interfaces, clock.boot, clock.now_ns)
        account.update()
        main_loop = self.main_loop = self._main_loop = MainLoop(
            config, clock, spool, detectors, model, self.exporter, captures, account, hardware.roots
        )
        main_loop.reports.polling = self._modems
        main_loop.each_second.append(watch.tick)
        self.environment = {**hardware.environment(), "versions": versions(), "settings": settings}
        self.environment |= {} if config.city is None else {"city": config.city}
        self._manifests = Manifests(config.folder / "runs", pending, lambda run: self.traces.made(run))
        context = RunContext(
            config=config,
            clock=clock,
            paths=paths,
            account=account,
            captures=captures,
            emit=main_loop.put,
            event=main_loop.event,
            save=self._manifests.save,
            modems=model.modems,
            environment=self.environment,
            registry=Registry(config.experiments, hardware.experiment),
            conditions=hardware.conditions,
            missing_requirement=hardware.missing_requirement,
            steering=SteeringPart(config, paths, main_loop.put),
            observers=[main_loop.trigger, main_loop, model],
        )
        main_loop.steering = context.steering
        scheduler = self.scheduler = main_loop.scheduler = RunScheduler(context, groups_so_far(config.folder / "runs"))
        campaigns = self.campaigns = main_loop.campaigns = CampaignPart(context, detectors, scheduler, address)
        self.exporter.held = lambda: campaigns.campaigns.holds_maintenance
        traces = self.traces = main_loop.traces = TracesPart(context, detectors, campaigns, address)
        for one in salvaged:
            main_loop.salvaged(one)
        path_watch = PathWatch(paths, main_loop.put)
        if self._modems:
            main_loop.event("collector_start", f"version {self.environment['versions']['tandem']}")
            for change in changes:
                main_loop.put(change)
        path_watch.start()
        self._undo.append(("path watch", path_watch.stop))
        service = self.service = StatusService(
            model, scheduler, main_loop.trigger, campaigns, traces, account, main_loop.reports, paths
        )
        self._server = StatusServer(listening, service)
        self._undo.append(("status server", self._server.stop))
        self._server.start()
        self._undo.append(("exporter", lambda: self.exporter.stop(0.0)))
        self.exporter.start()
        if self._modems:
            if config.round_trip.enabled:
                service.round_trips = RoundTrips(config, paths, account, main_loop.put)
                context.observers.insert(0, service.round_trips)
                self._beside.append(service.round_trips)
            if config.position is not None or config.clock == "gpsd":
                to = main_loop.put, main_loop.put_speed, model.position_is, watch.heard
                self._beside.append(hardware.position(config, clock.utc_ns, *to))
            polling = Polling(config, hardware.poller, hardware.actions, main_loop.put, scheduler)
            self._polling = service.polling = polling
            main_loop.recovery = polling.recovery
            for each in (*self._beside, polling):
                each.start()
            self._undo.append(("campaign queue", campaigns.stop))
            campaigns.start()
            self._undo.append(("traces", traces.stop))
            traces.start()
            main_loop.each_second += [campaigns.tick_queue, traces.tick]
            if polling.recovery is not None:
                main_loop.each_second.append(polling.recovery.tick)

    def _listen(self) -> socket.socket:
        file = self.config.folder / NAME
        try:
            listening = listen(file)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise MissingRequirementError(f"{file}: another collector runs here; hint: stop it first") from error
            raise
        self._undo.append(("status socket", lambda: close(listening, file)))
        return listening

    def _changed(self) -> None:
        if self._server is not None:
            self._server.wake()

    # --- running -----------------------------------------------------------------------------------------------------------

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Measure until ``stop`` is called or ``until`` says so. The calling thread writes the spool."""
        while not self._stop.is_set() and not until():
            self.main_loop.turn()
            if time.monotonic() - self._retried_s > _RETRY_S:
                self._retried_s = time.monotonic()
                self._manifests.retry()

    def stop(self) -> None:
        """End ``run`` soon. Safe in a signal handler."""
        self._stop.set()
        if self._main_loop is not None:
            self._main_loop.put(None)

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
            self.main_loop.take_all()
            self.main_loop.buffer.commit()  # kill -9 must not lose more now than at any other time
            self.scheduler.join(0.5)
        if self._polling is not None:
            self._polling.stop()
        for one in self._beside:
            try:
                one.stop(STOP_S)
            except TimeoutError as error:
                log.warning("%s", error)
        self.main_loop.take_all()
        if self._modems:
            self.main_loop.event("collector_stop")
        self.main_loop.report(time.monotonic_ns(), last=True)
        self.main_loop.take_all()
        self.main_loop.buffer.commit()
        self._manifests.retry()
        if self._server is not None:
            self._server.stop()
        sent = self.exporter.stop(self.config.drain_s)
        with contextlib.suppress(SpoolFullError):  # reported already; what was acknowledged is sent once more
            self._spool.flush()
        self._write_account()
        return sent

    def _write_account(self) -> None:
        """``collector.json`` (docs/reference/campaign-folder.md)."""
        file = self.config.folder / "collector.json"
        if not self._modems and file.exists():
            return  # the account of a collector that polled is worth more than that of one experiment
        counts = self._spool.counts()
        control, uploads = self.main_loop.control_bytes(), self.traces.sent_bytes()
        usage = {
            path: {
                "received_bytes": received,
                "sent_bytes": sent,
                "control_bytes": control.get(path, 0),
                "upload_bytes": uploads.get(path, 0),
            }
            for path, (received, sent) in self._account.update().items()
        }
        account = {
            "format": "tandem-collector/1",
            "probe": self.config.probe,
            "boot": self.clock.boot,
            "started_utc_ns": self.clock.utc_ns(self._started_ns),
            "ended_utc_ns": self.clock.now_ns(),
            "clock": self.clock.state(),
            "records": {**asdict(counts), "pending": counts.pending},
            "polls": self.main_loop.polls.as_json(),
            "captures": earlier_captures(file, self.main_loop.captured, self.config.folder) + self.main_loop.captured,
            "usage": usage,
            "resources": {
                "cpu_seconds": round(cpu_seconds() - self._cpu_at_start, 3),
                "max_rss_bytes": peak_rss_bytes(),
                "wall_seconds": round((time.monotonic_ns() - self._started_ns) / 1e9, 3),
            },
            "versions": self.environment["versions"],
            "environment": {k: v for k, v in self.environment.items() if k != "versions"},
        }
        try:
            write_json(file, account)
        except OSError as error:
            log.error("%s: %s; hint: free disk space", file, error.strerror)

    def _take_down(self) -> None:
        while self._undo:
            name, action = self._undo.pop()
            try:
                action()
            except (OSError, SpoolError, MissingRequirementError) as error:
                log.warning("%s: %s", name, error)
