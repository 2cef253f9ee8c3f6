"""A campaign's file made ready for this probe: its steps, the paths for its roles, what stands in for what a kernel lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from tandem.app.campaign import requires
from tandem.app.campaign.check import Installed, fitted
from tandem.app.campaign.request import bound
from tandem.app.campaign.requires import Substitutes
from tandem.app.config import Config
from tandem.mptcp import kernels
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
    text: str, file: str, *, form: str, paths: Mapping[str, str], allow: bool, config: Config, installed: Installed
) -> Fitted:
    """Checked against experiments, paths and the kernels at both ends; CampaignError with the line. Starts processes that describe
    experiments, and asks the server when the campaign requires controllers of it: it may take seconds."""
    campaign, left_out = fitted(parse(text, file, form=form), installed)
    by_role = bound(campaign.roles, [p.name for p in config.paths], paths)
    substitutes = requires.settled(
        campaign,
        allow=allow,
        kernel=kernels.here(),
        there=partial(requires.controllers_there, config),
        sends=partial(requires.scheduler_there, config),
    )
    return Fitted(campaign, left_out, by_role, substitutes)
