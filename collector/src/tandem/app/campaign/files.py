"""Finds a campaign by name or file."""

from __future__ import annotations

from tandem import campaigns
from tandem.schema.campaign import PAPER, Campaign, CampaignError
from tandem.schema.campaign_reader import parse, text_of


def source(wanted: str) -> tuple[str, str]:
    """Text and name (for messages) of a campaign: one of the package by its name, else a file; CampaignError when there is none."""
    if "/" not in wanted and not wanted.endswith(".toml"):
        try:
            return campaigns.text(wanted), f"{wanted}.toml"
        except KeyError:
            known = ", ".join(campaigns.names())
            raise CampaignError(
                f"{wanted}: there is no campaign of that name; hint: a file's path, or one of {known}"
            ) from None
    return text_of(wanted), wanted


def load(wanted: str, *, form: str = PAPER) -> Campaign:
    """The campaign, in one of its forms; CampaignError for the first thing that is wrong."""
    return parse(*source(wanted), form=form)
