"""Finds a campaign by name or file."""

from __future__ import annotations

from pathlib import Path

from tandem import campaigns
from tandem.schema.campaign import Campaign, CampaignError
from tandem.schema.campaign_reader import parse

LONGEST = 1_000_000
"""Bytes of a campaign's file."""


def source(wanted: str) -> tuple[str, str]:
    """Text and name (for messages) of a campaign: one of the package by its name, else a file; CampaignError when there is none."""
    if "/" not in wanted and not wanted.endswith(".toml"):
        try:
            return campaigns.text(wanted), f"{wanted}.toml"
        except KeyError:
            known = ", ".join(campaigns.names())
            raise CampaignError(
                f"{wanted}: there is no campaign of that name; mend: a file's path, or one of {known}"
            ) from None
    try:
        with Path(wanted).open("rb") as file:
            content = file.read(LONGEST + 1)
    except OSError as error:
        raise CampaignError(f"{wanted}: {error.strerror}; mend: name a campaign or its file") from error
    if len(content) > LONGEST:
        raise CampaignError(f"{wanted}: longer than {LONGEST} bytes; mend: fewer steps")
    try:
        return content.decode("utf-8"), wanted
    except UnicodeDecodeError as error:
        raise CampaignError(f"{wanted}: is not UTF-8 text (byte {error.start}); mend: save it as UTF-8") from error


def load(wanted: str, *, short: bool = False) -> Campaign:
    """The campaign, or its short form; CampaignError for the first thing that is wrong."""
    return parse(*source(wanted), short=short)
