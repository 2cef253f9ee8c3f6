"""Captures from the run that made them to the server: kept, queued, sent, and told of."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from tandem.app.campaign.wiring import CampaignPart
from tandem.app.config_schema import PathConfig, TracesConfig
from tandem.app.daemon.accounts import day_of
from tandem.app.runs.captures import Captures
from tandem.app.runs.context import RunContext
from tandem.app.traces.policy import Spent, UploadPath, UploadState, decide, intended, left_today
from tandem.export import AnyPath, GatewayAddress, Kept, Permit, TraceQueue, TraceUploader
from tandem.mobility.detectors import Detectors
from tandem.schema.record import Record, Value

log = logging.getLogger(__name__)

_FULL = 0.8
"""Of the captures' budget: there is to be room for what is captured until the next look."""
_EVERY_S = 10.0


class Keeping:
    """Deletes what the server has, in a thread of its own: a large file may take an SD card a while. ``free``: bytes free on the disk."""

    def __init__(
        self,
        rules: TracesConfig,
        queue: TraceQueue,
        captures: Captures | None,
        free: Callable[[], int] | None = None,
    ) -> None:
        self._rules, self._queue, self._captures = rules, queue, captures
        self._free = free or (lambda: shutil.disk_usage(queue.folder).free)
        self._due_s = 0.0
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Something was received."""
        self._due_s = 0.0

    def tick(self) -> None:
        """Once a second: see whether anything is to go, now and then."""
        now_s = time.monotonic()
        if now_s >= self._due_s and (self._thread is None or not self._thread.is_alive()) and self._queue.kept():
            self._due_s = now_s + _EVERY_S
            self._thread = threading.Thread(target=self._tidy, name="traces kept", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """``tick`` is called no more."""
        if self._thread is not None:
            self._thread.join()

    def tidy(self) -> list[str]:
        """Delete what is to go now, what was received first before all others; the names."""
        gone = []
        for one in self._queue.kept():
            if self._rules.keep == "while_room" and not self._in_the_way(one):
                continue
            if self._queue.delete(one):
                gone.append(one.name)
                if self._captures is not None and one.name.startswith("captures/"):
                    self._captures.give_back(one.bytes)
        return gone

    def _in_the_way(self, one: Kept) -> bool:
        if self._free() < self._rules.free_bytes:
            return True
        captures = self._captures
        return (
            captures is not None
            and one.name.startswith("captures/")
            and captures.used_bytes > _FULL * captures.limit_bytes
        )

    def _tidy(self) -> None:
        try:
            gone = self.tidy()
            if gone:
                log.info("the server has them, and they made room here: %s", ", ".join(gone))
        except OSError as error:
            log.error("%s: %s", error.filename, error.strerror)


# ---------------------------------------------------------------------------------------------------------------------
# The traces of a running collector: who asks whom whether they may go, and what people see of it.


CHANGES = ("mobility_start", "mobility_stop", "signal_drop", "handover", "service_lost", "service_back")
"""Events that say that the radio changed."""


def _local_minute(utc_s: float) -> float:
    local = datetime.fromtimestamp(utc_s).astimezone()
    return local.hour * 60 + local.minute + local.second / 60


class TracesPart:
    """A collector's traces, and whether they may go to the server now (``tandem.export.Policy``). ``campaigns`` says what is being measured
    or about to be."""

    def __init__(
        self, context: RunContext, detectors: Detectors, campaigns: CampaignPart, address: GatewayAddress
    ) -> None:
        config = self._config = context.config
        rules = config.traces
        self._clock, self._paths, self._account = context.clock, context.paths, context.account
        self._detectors, self._campaigns = detectors, campaigns
        self._spent = Spent(config.folder / "traces" / "spent.json")
        self._changed_ns = time.monotonic_ns()
        self._requested: set[str] | None = set()
        self._lock = threading.Lock()
        self.queue = TraceQueue(config.folder)
        self._intended = intended(rules, config.paths)[1]
        self._gateway = AnyPath(address, context.paths.interfaces, rate_bit_per_s=rules.rate_bit_per_s)
        self._uploader = TraceUploader(self.queue, self._gateway, self, context.event, config.probe, rules.encoding)
        self._keeping = Keeping(rules, self.queue, context.captures)
        self._uploader.on_received = self._keeping.wake

    def start(self) -> None:
        """Begin."""
        self._uploader.start()

    def stop(self) -> None:
        """End at once; the next start goes on."""
        self._uploader.stop()
        self._keeping.stop()

    def tick(self) -> None:
        """Once a second, by the collector's thread."""
        self._keeping.tick()
        self._uploader.tick()

    def held(self) -> bool:
        """Whether something is being measured, or about to be."""
        return self._campaigns.held() is not None

    def permit(self) -> Permit:
        """Over which paths files may go now, or why none."""
        now_ns = time.monotonic_ns()
        utc_ns = self._clock.utc_ns(now_ns)
        state = UploadState(
            held=self._campaigns.held(),
            local_minute=None if utc_ns is None else _local_minute(utc_ns / 1e9),
            mobile=self._detectors.mobile,
            still_s=(now_ns - self._changed_ns) / 1e9,
            requested=self._is_requested(),
            paths=[self._path(path, utc_ns) for path in self._config.paths],
        )
        return decide(self._config.traces, state)

    def _path(self, path: PathConfig, utc_ns: int | None) -> UploadPath:
        up = self._paths.states.get(path.name, {}).get("state") == "up"
        if not path.is_metered or self._config.traces.over != "any":
            return UploadPath(path.name, path.is_metered, up)
        uploaded = self._spent.of(path.name, day_of(utc_ns) or "")
        days, utc_s = self._account.days(path.name), None if utc_ns is None else utc_ns / 1e9
        sim_left = self._account.left_today(path)
        left = left_today(self._config.traces, path.plan, days, uploaded, utc_s, sim_left)
        return UploadPath(path.name, True, up, left)

    def reserve(self, path: str, count: int) -> None:
        """So many bytes are about to go over ``path``. OSError when that cannot be noted: then nothing may go."""
        day = day_of(self._clock.utc_ns(time.monotonic_ns()))
        if day is None:
            raise OSError("the clock is not set")
        self._spent.reserve(path, day, count)

    def settle(self, path: str, used: int) -> None:
        """So many went."""
        self._spent.settle(path, used)
        self._account.update()  # the plan's forecast is to know it before more is asked for

    def noted(self, record: Record) -> None:
        """A record of the collector."""
        if record.measurement == "event" and record.tags.get("kind") in CHANGES:
            self._changed_ns = record.monotonic_ns

    def made(self, run: str) -> None:
        """The manifest of ``run`` is on the disk."""
        self.queue.note(run)
        self._uploader.wake()

    def health(self) -> dict[str, Value | None]:
        """Of the health record."""
        counts = self.queue.counts()
        return {"traces_waiting": counts["waiting"], "traces_waiting_bytes": counts["waiting_bytes"]}

    def sent_bytes(self) -> dict[str, int]:
        """By path, TCP payload of uploads since the start, both ways."""
        return {path: counts.payload_bytes for path, counts in self._gateway.moved().items()}

    def status(self) -> dict[str, Any]:
        """For people, and for the health record."""
        counts, permit = self.queue.counts(), self.permit()
        said = permit.reason
        if not counts["waiting"]:
            said = "nothing waits"
        elif permit.paths and self._uploader.trouble is not None:
            said = f"waits: {self._uploader.trouble}"
        sent = {path: moved.sent_bytes for path, moved in self._gateway.moved().items()}
        return {
            **counts,
            "said": said,
            "intended": self._intended,
            "now": self._uploader.now if permit.paths else None,
            "sent_bytes": sent,
        }

    def requested(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """A request of the status socket: ``action`` status, list or upload (``names``, ``now``); ValueError with the reason."""
        action = request.get("action")
        if action == "status":
            return {"traces": self.status()}
        if action == "list":
            return {"traces": self.status(), "files": self.queue.rows()}
        if action == "upload":
            names = request.get("names", [])
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise ValueError("names is no list of texts")
            unknown = self.queue.ask_for(names)
            if unknown:
                raise ValueError(f"{unknown[0]} does not wait here; hint: tandem traces list")
            if request.get("now") is True:
                with self._lock:
                    self._requested = None if not names or self._requested is None else {*self._requested, *names}
            self._uploader.wake()
            return {"traces": self.status()}
        raise ValueError("action is none of status, list, upload")

    def _is_requested(self) -> bool:
        """Whether what is next was requested by a person; a request ends when nothing waits any more."""
        following = self.queue.next()
        with self._lock:
            if following is None:
                self._requested = set() if self.queue.scanned else self._requested
                return False
            return self._requested is None or following.name in self._requested
