"""Finds what is to be pushed: a file, or one of the collector's own campaigns by its name; checks what can be checked here."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from tandem.schema import zones
from tandem.schema.campaign import Campaign, CampaignError
from tandem.schema.campaign_queue import MOST_PATHS, is_name
from tandem.schema.campaign_reader import forms, parse, text_of
from tandem_server.cli.stop import ConfigError

_SHIPPED = ("tandem", "campaigns")
"""Where the collector's package has its campaigns: read as files, none of its code is loaded."""


def shipped() -> list[str]:
    """Names of the campaigns that came with the collector's package; none where only its schema is installed."""
    folder = files(_SHIPPED[0]).joinpath(_SHIPPED[1])
    if not folder.is_dir():
        return []
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))


def source(wanted: str) -> tuple[str | None, str]:
    """Text and name (for messages) of a campaign; ConfigError. Text None: only the schema is installed here, and the probe has to
    find a campaign of that name in its own package."""
    if "/" not in wanted and not wanted.endswith(".toml"):
        names = shipped()
        if wanted in names:
            return files(_SHIPPED[0]).joinpath(*_SHIPPED[1:], f"{wanted}.toml").read_text("utf-8"), f"{wanted}.toml"
        if not names and is_name(wanted):
            return None, f"{wanted}.toml"
        known = ", ".join(names) or "the collector's on the probe"
        raise ConfigError(f"{wanted}: there is no campaign of that name; hint: a file's path, or one of {known}")
    try:
        return text_of(wanted), wanted
    except CampaignError as error:
        raise ConfigError(str(error)) from error


def checked(
    text: str | None, file: str, *, form: str, label: str | None, paths: Sequence[str], timezone: str | None
) -> tuple[str, dict[str, str]]:
    """The campaign's name, and path by role; ConfigError with FILE:LINE. Every form is read, as ``tandem campaign check`` does.
    Experiments, kernels and paths are the probe's to check; so is everything when only the probe has the file (``text`` None)."""
    try:
        zones.zone(timezone or "UTC")
    except zones.ZoneError as error:
        raise ConfigError(str(error)) from error
    if text is None:
        if not is_name(form):
            raise ConfigError(f"--form {form}: no name of a form; hint: pilot")
        return file.removesuffix(".toml"), _paths(paths, None)
    try:
        campaign = parse(text, file, form=form)
        zones.of(campaign)
        forms(text, file)
    except CampaignError as error:
        raise ConfigError(str(error)) from error
    given = _paths(paths, campaign)
    if label is not None:
        _label(campaign, label)
    return campaign.name, given


def _paths(pairs: Sequence[str], campaign: Campaign | None) -> dict[str, str]:
    given: dict[str, str] = {}
    for pair in pairs:
        role, sign, name = pair.partition("=")
        if not sign or not all(0 < len(word) <= 64 and word.isprintable() for word in (role, name)):
            raise ConfigError(f"--path {pair}: no ROLE=NAME; hint: as in --path wifi=wlan")
        if campaign is not None and role not in campaign.roles:
            roles = ", ".join(campaign.roles)
            raise ConfigError(f"{campaign.where('roles')}: {role!r} is no role of the campaign; hint: one of {roles}")
        if role in given or name in given.values():
            raise ConfigError(f"--path {pair}: a role or a path is named twice; hint: each once")
        given[role] = name
    if len(given) > MOST_PATHS:
        raise ConfigError(f"--path: {len(given)} paths; hint: at most {MOST_PATHS}")
    return given


def _label(campaign: Campaign, label: str) -> None:
    if not label or len(label) > 64 or not label.isprintable():
        raise ConfigError("--label: no text of 1 to 64 printable characters; hint: as in --label walking")
    taking = [s for s in campaign.steps if s.trigger.on == "hand"]
    if taking and not any(not s.trigger.labels or label in s.trigger.labels for s in taking):
        where = campaign.where("step", taking[0].name, "trigger")
        known = ", ".join(sorted({name for s in taking for name in s.trigger.labels}))
        raise ConfigError(f"{where}: no step takes the label {label!r}; hint: one of {known}")
