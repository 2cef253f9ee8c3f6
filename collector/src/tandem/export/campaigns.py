"""Asks the gateway for the probe's queue of campaigns, and tells what became of them (docs/reference/probe-api.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tandem.export.gateway import Ask, not_now
from tandem.schema.campaign_queue import Pushed, QueueError, Report, read_queue, read_text

_JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Settled:
    """What the server says to a report. ``known`` False: it does not take it, for ``reason``; ``withdraw``: end the campaign."""

    known: bool
    withdraw: bool
    reason: str = ""


class CampaignQueueClient:
    """Each call raises ``Later`` when no answer comes now, QueueError when it is none that can be used."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def queue(self) -> list[Pushed]:
        """The probe's queue, in its turn."""
        answer = self._ask("GET", "/v1/campaigns", b"", {})
        if answer.status != 200:
            raise not_now(answer)
        return read_queue(answer.content)

    def text(self, campaign: str) -> str | None:
        """The file of one; None: a campaign of the probe's own package."""
        answer = self._ask("GET", f"/v1/campaigns/{campaign}", b"", {})
        if answer.status != 200:
            raise not_now(answer)
        return read_text(answer.content)

    def report(self, campaign: str, report: Report) -> Settled:
        """Tell how far one is."""
        content = json.dumps(report.to_dict()).encode()
        answer = self._ask("PUT", f"/v1/campaigns/{campaign}/state", content, _JSON)
        if answer.status in (400, 404, 413):
            return Settled(known=False, withdraw=False, reason=answer.error)
        if answer.status != 200:
            raise not_now(answer)
        told = answer.content
        if not isinstance(told, dict) or not isinstance(told.get("withdraw"), bool):
            raise QueueError("an answer that does not settle a report")
        return Settled(known=True, withdraw=told["withdraw"])
