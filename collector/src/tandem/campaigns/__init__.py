"""The papers' campaigns as files, found by name. To add one: a file ``NAME.toml`` here (docs/campaigns/campaigns.md has its keys)."""

from __future__ import annotations

from importlib.resources import files

from tandem.schema.campaign import PAPER, Campaign, CampaignError
from tandem.schema.campaign_reader import parse, text_of


def names() -> list[str]:
    """The campaigns there are."""
    return sorted(f.name.removesuffix(".toml") for f in files(__name__).iterdir() if f.name.endswith(".toml"))


def text(name: str) -> str:
    """The file of a campaign; KeyError when there is none."""
    if name not in names():
        raise KeyError(name)
    return files(__name__).joinpath(f"{name}.toml").read_text("utf-8")


def source(wanted: str) -> tuple[str, str]:
    """Text and name (for messages) of a campaign: one of the package by its name, else a file; CampaignError when there is none."""
    if "/" in wanted or wanted.endswith(".toml"):
        return text_of(wanted), wanted
    try:
        return text(wanted), f"{wanted}.toml"
    except KeyError:
        known = ", ".join(names())
        raise CampaignError(
            f"{wanted}: there is no campaign of that name; hint: a file's path, or one of {known}"
        ) from None


def load(wanted: str, *, form: str = PAPER) -> Campaign:
    """The campaign, in one of its forms; CampaignError for the first thing that is wrong."""
    return parse(*source(wanted), form=form)
