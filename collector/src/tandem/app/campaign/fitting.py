"""A campaign's file made ready for this probe: its steps, the paths for its roles, what stands in for what a kernel lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from tandem.app.campaign import requires
from tandem.app.campaign.check import Installed, fitted
from tandem.app.campaign.request import bound
from tandem.app.campaign.requires import Substitutes
from tandem.app.config import Config
from tandem.mptcp import kernels
from tandem.schema import zones
from tandem.schema.campaign import Campaign
from tandem.schema.campaign_reader import parse


@dataclass(frozen=True, slots=True)
class Fitted:
    """``left_out``: one line for each optional step whose experiment is not installed; ``paths``: by role."""

    campaign: Campaign
    left_out: list[str]
    paths: dict[str, str]
    substitutes: Substitutes


def fit(
    text: str,
    file: str,
    *,
    form: str,
    paths: Mapping[str, str],
    allow: bool,
    config: Config,
    installed: Installed,
    timezone: str | None = None,
) -> Fitted:
    """Checked against experiments, paths and the kernels at both ends; CampaignError with the line. Starts processes that describe
    experiments, and asks the server when the campaign requires controllers of it: it may take seconds.
    ``timezone``: instead of the file's."""
    campaign, left_out = fitted(placed(parse(text, file, form=form), timezone), installed)
    by_role = bound(campaign.roles, [p.name for p in config.paths], paths)
    substitutes = requires.settled(
        campaign,
        allow=allow,
        kernel=kernels.here(),
        there=partial(requires.controllers_there, config),
        sends=partial(requires.scheduler_there, config),
    )
    return Fitted(campaign, left_out, by_role, substitutes)


def placed(campaign: Campaign, timezone: str | None) -> Campaign:
    """The campaign in another zone's local time, where one is named; CampaignError when there is none of that name."""
    if timezone is None:
        return campaign
    zones.zone(timezone)
    return replace(campaign, timezone=timezone)
