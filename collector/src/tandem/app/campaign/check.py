"""Checks a campaign against what is installed, and makes it ready for this probe: experiments and their parameters, paths, kernels. And
whether this probe carries out what the server pushed, which is not trusted further than a person without rights here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tandem import campaigns
from tandem.app.campaign.progress import Begun, Origin
from tandem.app.campaign.request import (
    CAPTURE,
    OF_EVERY,
    PAIRED,
    STEERING,
    Substitutes,
    bound,
    controllers_there,
    scheduler_there,
    settled,
    shaped,
)
from tandem.app.campaign.scheduler import Moment
from tandem.app.config import Config
from tandem.app.config_schema import TABLES
from tandem.app.runs.conditions import Conditions
from tandem.app.runs.registry import Registry, RegistryError
from tandem.app.runs.request import OF_MPTCP, misfit
from tandem.experiment.parameters import COMMON, Parameter, ParameterError, check
from tandem.mptcp import kernels
from tandem.mptcp.steering import POLICIES
from tandem.schema import zones
from tandem.schema.campaign import Campaign, CampaignError, Draw, Step, arms
from tandem.schema.campaign_queue import Pushed
from tandem.schema.campaign_reader import parse
from tandem.schema.manifest import CAPTURE_ENDS
from tandem.shaping import ShapeError, shape_of

OURS = tuple(p.name for p in COMMON if p.name != "control_timeout_s")
"""The collector's to give."""


def fitted(campaign: Campaign, installed: Registry) -> tuple[Campaign, list[str]]:
    """The campaign without optional steps whose experiment is not installed, and one line for each of these; CampaignError with
    the line for a step that cannot be run, or a time zone that is not there."""
    zones.of(campaign)
    kept: list[Step] = []
    left: list[str] = []
    for step in campaign.steps:
        where = campaign.where("step", step.name, "experiment")
        known_names = installed.names()
        if step.experiment not in known_names:
            if step.optional:
                left.append(f"{where}: step {step.name} is left out: experiment {step.experiment!r} is not installed")
                continue
            hint = f"one of {', '.join(known_names)}, or optional = true"
            what = f"step {step.name}: experiment {step.experiment!r} is not installed"
            raise CampaignError(f"{where}: {what}; hint: {hint}")
        try:
            declared = installed.describe(step.experiment).parameters
        except RegistryError as error:
            raise CampaignError(f"{where}: step {step.name}: {error}; hint: the experiment's own --describe") from error
        _parameters(campaign, step, declared)
        kept.append(step)
    if not kept:
        raise CampaignError(f"{campaign.where('step')}: no step is left; hint: install an experiment that it names")
    return replace(campaign, steps=tuple(kept)), left


def _parameters(campaign: Campaign, step: Step, declared: Sequence[Parameter]) -> None:
    own = [replace(p, required=False) if step.experiment == PAIRED else p for p in declared if p.name not in OURS]
    of_download = (
        tuple(k.name for k in TABLES["runs"] if k.name in ("pause_s", "primary")) if step.experiment == PAIRED else ()
    )
    known = [p.name for p in own]
    paired = ("pairing", *of_download, *OF_EVERY) if step.experiment == PAIRED else OF_EVERY
    for arm in arms(campaign, step):
        given = dict(arm.parameters)
        for name in given:
            if name not in (*known, *paired):
                hint = f"known are {', '.join(dict.fromkeys((*known, *paired)))}"
                raise _wrong(campaign, step, name, f"{step.experiment} has no parameter {name!r}", hint)
        _steering(campaign, step, given)
        if (ends := given.get(CAPTURE, "probe")) not in CAPTURE_ENDS:
            raise _wrong(campaign, step, CAPTURE, f"capture: {ends!r}", f"one of {', '.join(CAPTURE_ENDS)}")
        if step.experiment == PAIRED:
            _pair(campaign, step, given)
        plain = {n: v for n, v in given.items() if n not in paired}
        for low in (True, False):
            _values(campaign, step, own, {n: _end(v, low=low) for n, v in plain.items() if n not in paired})


def _values(campaign: Campaign, step: Step, own: Sequence[Parameter], given: Mapping[str, Any]) -> None:
    try:
        check(own, given)
    except ParameterError as error:
        text = str(error)
        name = next((n for n in given if f"'{n}'" in text or f"'{n}[" in text), "")
        parameter = next((p for p in own if p.name == name), None)
        hint = f"tandem experiment describe {step.experiment}" if parameter is None else _range(parameter)
        raise _wrong(campaign, step, name, text, hint) from None


def _pair(campaign: Campaign, step: Step, given: Mapping[str, Any]) -> None:
    """What ``runs.request.parse_download`` would refuse at the time of the run."""
    if (fault := misfit(given)) is not None:
        raise _wrong(campaign, step, *fault)
    for name in OF_MPTCP:
        if given.get("kind") == "tcp" and name in given:
            raise _wrong(campaign, step, name, f"{name} is of MPTCP; a TCP run has one connection", "take it out")
    if ("bytes" in given) == ("seconds" in given):
        raise _wrong(campaign, step, "bytes", "a download has either 'bytes' or 'seconds'", "give one of them")


def _steering(campaign: Campaign, step: Step, given: Mapping[str, Any]) -> None:
    """What ``runs.request`` would refuse at the time of the run."""
    policy = given.get(STEERING, "off")
    if policy not in POLICIES:
        raise _wrong(campaign, step, STEERING, f"steering: {policy!r}", f"one of {', '.join(POLICIES)}")
    if policy != "off" and (given.get("kind") == "tcp" or given.get("pairing") == "simultaneous"):
        what = "steering is of runs by MPTCP that have the paths to themselves"
        raise _wrong(campaign, step, STEERING, what, 'take it out, or kind = "mptcp"')


def _end(value: Any, *, low: bool) -> Any:  # noqa: ANN401 any JSON value
    """A drawn value's bound, so that all that can be drawn is checked."""
    return (value.low if low else value.high) if isinstance(value, Draw) else value


def _range(parameter: Parameter) -> str:
    unit = f" {parameter.unit}" if parameter.unit else ""
    if parameter.choices:
        return f"one of {', '.join(map(str, parameter.choices))}"
    if parameter.minimum is not None and parameter.maximum is not None:
        return f"{parameter.minimum:g} to {parameter.maximum:g}{unit}"
    return f"{parameter.kind}: {parameter.purpose}"


def _wrong(campaign: Campaign, step: Step, name: str, what: str, hint: str) -> CampaignError:
    key = "arms" if any(name in arm for arm in step.arms) else "parameters"
    return CampaignError(f"{campaign.where('step', step.name, key, name)}: step {step.name}: {what}; hint: {hint}")


# ---------------------------------------------------------------------------------------------------------------------
# A campaign's file made ready for this probe: its steps, the paths for its roles, what stands in for what a kernel lacks.


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
    installed: Registry,
    timezone: str | None = None,
) -> Fitted:
    """Checked against experiments, paths and the kernels at both ends; CampaignError with the line. Starts processes that describe
    experiments, and asks the server when the campaign requires controllers of it: it may take seconds.
    ``timezone``: instead of the file's."""
    campaign, left_out = fitted(placed(parse(text, file, form=form), timezone), installed)
    by_role = bound(campaign.roles, [p.name for p in config.paths], paths)
    substitutes = settled(
        campaign,
        allow=allow,
        kernel=kernels.here(),
        there=partial(controllers_there, config),
        sends=partial(scheduler_there, config),
    )
    return Fitted(campaign, left_out, by_role, substitutes)


def placed(campaign: Campaign, timezone: str | None) -> Campaign:
    """The campaign in another zone's local time, where one is named; CampaignError when there is none of that name."""
    if timezone is None:
        return campaign
    zones.zone(timezone)
    return replace(campaign, timezone=timezone)


# ---------------------------------------------------------------------------------------------------------------------
# What the server pushed. It is a campaign file like a person's, so it can do no more than such a file: run experiments that
# are installed, within their parameters' ranges, shape paths for a run where the collector may, and set the few sysctls of
# ``campaign_keys.SYSCTLS`` for a run. It names no other sysctl, no command and no server; and of the probe's files only those
# below ``FOLDER/files``, where nothing of the collector lies: neither its token nor its configuration with the home zones can
# be given out as a list of names to resolve.


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
    """What is to be begun; CampaignError with the reason why not. May take seconds (``fit``)."""
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
