"""What people ask a running collector through its status socket, and who of its parts knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tandem.app.account import Account
from tandem.app.campaign.wiring import CampaignPart
from tandem.app.live import Live
from tandem.app.pairs import Pairs


class Answering:
    """See ``status_server.Answers``. ``path_states``: the states of the paths now."""

    def __init__(
        self,
        live: Live,
        pairs: Pairs,
        campaigns: CampaignPart,
        account: Account,
        path_states: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._live, self._pairs, self._campaigns = live, pairs, campaigns
        self._account, self._path_states = account, path_states

    def status(self) -> dict[str, Any]:
        """The status object."""
        return {**self._live.status(), "paths": self._path_states(), "spent_today_bytes": self._account.today()}

    def request(self, experiment: str, parameters: dict[str, Any]) -> str:
        """Begin to measure."""
        return self._pairs.request(experiment, parameters)

    def cancel(self, pair: str | None) -> str:
        """End what is being measured."""
        return self._pairs.cancel(pair)

    def campaign(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what it says of the campaign."""
        return self._campaigns.asked(request)

    def done(self, pair: str) -> dict[str, Any] | None:
        """How a pair ended."""
        return self._live.done(pair)
