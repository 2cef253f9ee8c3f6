"""What people ask a running collector through its status socket, and who of its parts knows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from tandem.app.account import Account
from tandem.app.campaign.wiring import CampaignPart
from tandem.app.health.reports import Reports, all_that_is_wrong
from tandem.app.live import Live
from tandem.app.pair_start import PairStart
from tandem.app.pairs import Pairs
from tandem.app.traces.wiring import TracesPart


class Answering:
    """See ``status_server.Answers``. ``path_states``: the states of the paths now. ``look_at_sims``: has the modems' SIMs looked at, and
    says of which paths; what is found comes with the status. ``round_trips``: the newest of each path, None when they are off."""

    def __init__(
        self,
        live: Live,
        pairs: Pairs,
        campaigns: CampaignPart,
        traces: TracesPart,
        account: Account,
        reports: Reports,
        pair_start: PairStart,
        path_states: Callable[[], Mapping[str, Any]],
        look_at_sims: Callable[[], list[str]] = list,
        round_trips: Callable[[], dict[str, Any] | None] = lambda: None,
    ) -> None:
        self._live, self._pairs, self._campaigns = live, pairs, campaigns
        self._account, self._reports, self._path_states = account, reports, path_states
        self._round_trips = round_trips
        self._traces, self._look_at_sims, self._pair_start = traces, look_at_sims, pair_start
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
            "measuring": self._pairs.running,
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
            "day_limit_bytes": self._pair_start.limits,
            "radio_only": self._pair_start.held(),
            "traces": self._traces.status(),
            "campaign": self._campaigns.brief(),
            "round_trips": self._round_trips(),
            "indicator": self.indicator(),
        }
        return {**status, "wrong": all_that_is_wrong(status)}

    def request(self, experiment: str, parameters: dict[str, Any]) -> str:
        """Begin to measure."""
        return self._pairs.request(experiment, parameters)

    def cancel(self, pair: str | None) -> str:
        """End what is being measured."""
        return self._pairs.cancel(pair)

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
        """How a pair ended."""
        return self._live.done(pair)
