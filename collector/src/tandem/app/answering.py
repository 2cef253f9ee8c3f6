"""What people ask a running collector through its status socket, and who of its parts knows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from tandem.app.account import Account
from tandem.app.campaign.wiring import CampaignPart
from tandem.app.health.reports import Reports, all_that_is_wrong
from tandem.app.live import Live
from tandem.app.runs.scheduler import MobilityTrigger, RunScheduler
from tandem.app.traces.wiring import TracesPart


class Answering:
    """See ``status_server.Answers``. ``path_states``: the states of the paths now. ``look_at_sims``: has the modems' SIMs looked at, and
    says of which paths; what is found comes with the status. ``round_trips``: the newest of each path, None when they are off."""

    def __init__(
        self,
        live: Live,
        scheduler: RunScheduler,
        campaigns: CampaignPart,
        traces: TracesPart,
        account: Account,
        reports: Reports,
        trigger: MobilityTrigger,
        path_states: Callable[[], Mapping[str, Any]],
        look_at_sims: Callable[[], list[str]] = list,
        round_trips: Callable[[], dict[str, Any] | None] = lambda: None,
    ) -> None:
        self._live, self._scheduler, self._campaigns = live, scheduler, campaigns
        self._account, self._reports, self._path_states = account, reports, path_states
        self._round_trips = round_trips
        self._traces, self._look_at_sims, self._trigger = traces, look_at_sims, trigger
        self.indicator: Callable[[], dict[str, Any] | None] = lambda: None
        """What the kit shows to whoever carries it; None: nothing."""

    def brief(self) -> dict[str, Any]:
        """What the indicator chooses by, at little cost, once a second."""
        reports = self._reports.status
        return {
            "alarms": reports.get("alarms", []),
            "modem_health": reports["modem_health"],
            "health": reports["health"],
            "paths": self._path_states(),
            "measuring": self._scheduler.running,
            "sent": self._live.spool["sent"],
            "utc_ns": self._live.utc_ns(time.monotonic_ns()),
        }

    def status(self) -> dict[str, Any]:
        """The status object."""
        status = {
            **self._live.status(),
            **self._reports.status,
            "paths": self._path_states(),
            "spent_today_bytes": self._account.today(),
            "day_limit_bytes": self._trigger.limits,
            "radio_only": self._trigger.held(),
            "traces": self._traces.status(),
            "campaign": self._campaigns.brief(),
            "round_trips": self._round_trips(),
            "indicator": self.indicator(),
        }
        return {**status, "wrong": all_that_is_wrong(status)}

    def request(self, experiment: str, parameters: dict[str, Any]) -> str:
        """Begin to measure."""
        return self._scheduler.request(experiment, parameters).plan.pair

    def cancel(self, pair: str | None) -> str:
        """End what is being measured."""
        return self._scheduler.cancel(pair)

    def campaign(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what it says of the campaign."""
        return self._campaigns.asked(request)

    def traces(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what it says of traces."""
        return self._traces.asked(request)

    def sims(self) -> dict[str, Any]:
        """Have the SIMs looked at."""
        return {"asked": self._look_at_sims()}

    def done(self, pair: str) -> dict[str, Any] | None:
        """How a group of runs ended."""
        return self._scheduler.outcome(pair)
