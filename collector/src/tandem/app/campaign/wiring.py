"""The campaign of a running collector: it sees what the collector sees."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tandem.app.campaign.check import admitted, placed
from tandem.app.campaign.driver import Campaigns, Runner
from tandem.app.campaign.progress import Begun, campaign_records
from tandem.app.campaign.queue import ProbeQueue, QueueWatch
from tandem.app.campaign.request import bound
from tandem.app.campaign.scheduler import Moment, ProbeState
from tandem.app.config import Config
from tandem.app.runs.context import RunContext
from tandem.app.runs.executor import RunScheduler
from tandem.export import AnyPath, GatewayAddress
from tandem.mobility.detectors import Detectors
from tandem.schema.campaign import PAPER, CampaignError
from tandem.schema.campaign_queue import Pushed
from tandem.schema.campaign_reader import parse
from tandem.schema.record import Record

FOLDER = "campaigns"
"""In the probe's folder."""

_STALE_S = 30.0
_REPORT_NS = 60 * 10**9
"""Records of a campaign under way are made so often, and whenever something of it changed."""


class CampaignPart:
    """A collector's campaigns."""

    def __init__(
        self, context: RunContext, detectors: Detectors, scheduler: RunScheduler, address: GatewayAddress
    ) -> None:
        config = context.config
        self._config, self._clock, self._paths, self._account = config, context.clock, context.paths, context.account
        self._detectors, self._scheduler = detectors, scheduler
        # A limit that nobody set holds back what the collector begins by itself: a campaign has its budget.
        self._limited = {p.name: p for p in config.paths if p.day_bytes is not None}
        self._position: tuple[float, tuple[float, float]] | None = None
        runner = Runner(config, context.registry, scheduler)
        self.campaigns = Campaigns(config.folder / FOLDER, runner, self.now, self._probe_state, self._usage)
        self._operators, self._emit = config.operators, context.emit
        self._reported_ns: int | None = None
        self.campaigns.on_change = self._changed
        self._gateway: AnyPath | None = None
        self._queue: QueueWatch | None = None
        if config.campaigns.from_server:
            self._listen_to(AnyPath(address, context.paths.interfaces), context)

    def _listen_to(self, gateway: AnyPath, context: RunContext) -> None:

        def admit(one: Pushed, text: str | None) -> Begun:
            return admitted(
                one,
                text,
                config=self._config,
                installed=context.registry,
                missing_requirement=context.missing_requirement,
                now=self.now(),
            )

        own, every_s = ProbeQueue(self._config.folder / FOLDER), self._config.campaigns.ask_every_s
        self._gateway = gateway
        self._queue = QueueWatch(own, self.campaigns, gateway, admit, every_s)

    def _probe_state(self, roles: Mapping[str, str]) -> ProbeState:
        """What a campaign sees of the probe now. ``roles``: the path of each."""
        states, position = self._paths.states, self._position
        fresh = position is not None and time.monotonic() - position[0] < _STALE_S
        return ProbeState(
            mobile=self._detectors.mobile,
            speed_class=self._detectors.speed_class if self._detectors.mobile else "still",
            position=position[1] if fresh and position is not None else None,
            paths_up=frozenset(role for role, path in roles.items() if states.get(path, {}).get("state") == "up"),
            busy=self._scheduler.running,
            left_bytes={
                role: self._account.left_of_day(self._limited[path]) or 0
                for role, path in roles.items()
                if path in self._limited
            },
        )

    def _usage(self) -> dict[str, int]:
        return {path: received + sent for path, (received, sent) in self._account.update().items()}

    def start(self) -> None:
        self.campaigns.resume(pushed=self._queue is not None)

    def tick_queue(self) -> None:
        """Once a second, by the collector's thread: ask the server when it is time."""
        if self._queue is not None:
            self._queue.tick()

    def stop(self) -> None:
        if self._queue is not None:
            self._queue.stop()

    def tick(self) -> None:
        self.campaigns.tick()
        due = self._reported_ns is None or time.monotonic_ns() - self._reported_ns >= _REPORT_NS
        if due and self.campaigns.under_way and (status := self.campaigns.status()) is not None:
            self._changed(status)

    def _changed(self, status: Mapping[str, Any]) -> None:
        """The campaign is as its status says now: records of it. From any thread."""
        self._reported_ns = time.monotonic_ns()
        self._emit(campaign_records(status, self._operators, self.now().utc_s, self._reported_ns))

    def control_bytes(self) -> dict[str, int]:
        """Bytes by path that asking took since the start."""
        return {} if self._gateway is None else self._gateway.payload_bytes()

    def brief(self) -> dict[str, Any] | None:
        """How far the campaign under way is, for the status object; None without one."""
        status = self.campaigns.status() if self.campaigns.under_way else None
        if status is None:
            return None
        made, of = (sum(step[name] for step in status["steps"].values()) for name in ("made", "of"))
        return {"name": status["name"], "state": status["state"], "said": status["said"], "made": made, "of": of}

    def held(self) -> str | None:
        """Why what is not urgent has to wait, None when it may go on."""
        if self.campaigns.holds_maintenance:
            status = self.campaigns.status() or {}
            return f"campaign {status.get('name')}: {status.get('said') or 'a run is due'}"
        if self._scheduler.running and not self.campaigns.measuring:
            return "a run is under way"
        return None

    def now(self) -> Moment:
        """On both clocks."""
        now_ns = time.monotonic_ns()
        utc_ns = self._clock.utc_ns(now_ns)
        return Moment(self._clock.boot, now_ns / 1e9, None if utc_ns is None else utc_ns / 1e9)

    def noted(self, record: Record) -> None:
        if record.measurement == "event":
            kind = str(record.tags.get("kind"))
            self.campaigns.noted(kind)
            if kind == "path_up" and self._queue is not None and self._queue.status()["trouble"] is not None:
                self._queue.soon()
        elif record.measurement == "position":
            latitude, longitude = record.fields.get("latitude_deg"), record.fields.get("longitude_deg")
            if isinstance(latitude, float) and isinstance(longitude, float):
                self._position = (time.monotonic(), (latitude, longitude))

    def requested(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """A request of the status socket: ``action`` begin, tell, stop, idle or status; CampaignError (a ValueError) with the reason."""
        action = request.get("action")
        label = request.get("label")
        if label is not None and not isinstance(label, str):
            raise CampaignError("label is no text")
        if action == "begin":
            begun = self._begun(request)
            now = self.campaigns.status() or {}
            if not (self.campaigns.under_way and label is not None and now.get("name") == begun.campaign.name):
                self.campaigns.begin(begun, anew=request.get("anew") is True)
            if label is not None and any(s.trigger.on == "hand" for s in begun.campaign.steps):
                self.campaigns.tell(label)
            return {"campaign": self.campaigns.status()}
        if action == "tell":
            step = request.get("step")
            self.campaigns.tell(label, step if isinstance(step, str) else None)
            return {"campaign": self.campaigns.status()}
        if action == "stop":
            return {"stopped": self.campaigns.stop()}
        if action == "idle":
            return {"held": self.held()}
        if action == "status":
            return {"campaign": self.campaigns.status(), "queue": None if self._queue is None else self._queue.status()}
        raise CampaignError("action is none of begin, tell, stop, idle, status")

    def _begun(self, request: Mapping[str, Any]) -> Begun:
        """What was asked for, read again here: who asks has checked it against what is installed."""
        text, file, steps = request.get("text"), request.get("file"), request.get("steps")
        paths, substitutes = request.get("paths", {}), request.get("substitutes", {})
        if not isinstance(text, str) or not isinstance(file, str) or not isinstance(steps, list):
            raise CampaignError("begin needs text, file and steps")
        if not isinstance(paths, dict) or not isinstance(substitutes, dict):
            raise CampaignError("paths and substitutes are objects")
        timezone = request.get("timezone")
        if not isinstance(timezone, str | None):
            raise CampaignError("timezone is no text")
        campaign = placed(parse(text, file, form=str(request.get("form", PAPER))), timezone)
        campaign = replace(campaign, steps=tuple(s for s in campaign.steps if s.name in steps))
        names = [p.name for p in self._config.paths]
        by_role = bound(campaign.roles, names, paths)
        return Begun(text, campaign, by_role, request.get("label"), substitutes, self.now(), {})


def folder(config: Config) -> Path:
    return config.folder / FOLDER
