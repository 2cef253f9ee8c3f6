"""Whether this probe carries out what the server pushed. What the server says is not trusted further than a person without rights here.

A pushed campaign is a campaign file like a person's, so it can do no more than such a file: run experiments that are installed, within
their parameters' ranges, shape paths for a run where the collector may, and set the few sysctls of ``campaign_keys.SYSCTLS`` for a run. It
names no other sysctl, no command and no server; and of the
probe's files only those below ``FOLDER/files``, where nothing of the collector lies: neither its token nor its configuration with the
home zones can be given out as a list of names to resolve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tandem import campaigns
from tandem.app.campaign.check import fit
from tandem.app.campaign.progress import Begun, Origin
from tandem.app.campaign.request import shaped
from tandem.app.campaign.state import Moment
from tandem.app.config import Config
from tandem.app.runs.conditions import Conditions
from tandem.app.runs.registry import Registry, RegistryError
from tandem.schema.campaign import Campaign, CampaignError, Draw, Step, arms
from tandem.schema.campaign_queue import Pushed
from tandem.shaping.kernel import ShapeError, shape_of

FILES = "files"
"""In the probe's folder: what pushed campaigns may read and write."""

MissingRequirement = Callable[[Conditions], str | None]
"""What the conditions of a run require and this machine has not, None when nothing is known to be missing."""


def admitted(
    one: Pushed,
    text: str | None,
    *,
    config: Config,
    installed: Registry,
    missing_requirement: MissingRequirement,
    now: Moment,
) -> Begun:
    """What is to be begun; CampaignError with the reason why not. May take seconds (``fitting``)."""
    if text is None:
        try:
            text = campaigns.text(one.name)
        except KeyError:
            known = ", ".join(campaigns.names())
            raise CampaignError(f"{one.name}: this probe has no campaign of that name; it has {known}") from None
    try:
        found = fit(
            text,
            one.file,
            form=one.form,
            paths=one.paths,
            allow=one.allow_substitutes,
            config=config,
            installed=installed,
            timezone=one.timezone,
        )
    except RegistryError as error:
        raise CampaignError(f"{one.file}: {error}") from error
    campaign = found.campaign
    if campaign.name != one.name:
        raise CampaignError(f"{one.file}: calls itself {campaign.name!r}, pushed as {one.name!r}")
    for step in campaign.steps:
        _files(campaign, step, installed, (config.folder / FILES).resolve())
    _shapes(campaign, missing_requirement)
    origin = Origin(one.id, one.priority)
    return Begun(text, campaign, found.paths, one.label, found.substitutes, now, {}, origin)


def _files(campaign: Campaign, step: Step, installed: Registry, folder: Path) -> None:
    """Refuse a parameter that names a file outside of ``folder``; one that is not declared as a file's name is still refused
    when it looks like one."""
    named = {p.name for p in installed.describe(step.experiment).parameters if p.file}
    for key, values in (("parameters", [step.parameters]), ("arms", list(step.arms))):
        for given in values:
            for name, value in given.items():
                for text in _texts(value):
                    looks = text.startswith(("/", "~")) or ".." in text.split("/")
                    if (name in named or looks) and not (Path.cwd() / text).resolve().is_relative_to(folder):
                        what = f"step {step.name}: {name} = {text[:200]!r} is no file that a pushed campaign may name"
                        where = campaign.where("step", step.name, key, name)
                        raise CampaignError(
                            f"{where}: {what}; hint: one below {folder}, or begin the campaign at the probe"
                        )


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 any JSON value, or what is drawn
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple) and not isinstance(value, Draw):
        for inner in value:
            yield from _texts(inner)


def _shapes(campaign: Campaign, missing_requirement: MissingRequirement) -> None:
    """Refuse links and sysctls that cannot be made here: each run would fail."""
    for step in campaign.steps:
        missing = missing_requirement(Conditions(sysctl=step.sysctl)) if step.sysctl else None
        if missing is not None:
            raise CampaignError(f"{campaign.where('step', step.name, 'sysctl')}: step {step.name}: {missing}")
        wanted = {}
        for arm in arms(campaign, step):
            for made in map(shaped, arm.shape.values()):
                if made:
                    try:
                        wanted[str(sorted(made.items()))] = shape_of(made, f"step {step.name}: shape")
                    except ShapeError as error:
                        raise CampaignError(f"{campaign.where('step', step.name, 'shape')}: {error}") from error
        missing = missing_requirement(Conditions(shape=wanted)) if wanted else None
        if missing is not None:
            raise CampaignError(f"{campaign.where('step', step.name, 'shape')}: step {step.name}: {missing}")
