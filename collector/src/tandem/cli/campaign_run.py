"""``tandem campaign run``, ``status`` and ``stop``: by the running collector or, when none runs, by this process."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from tandem.cli.run import ends_on_signals, log_to_stderr

if TYPE_CHECKING:
    from tandem.app.config import Config

_LOOK_S = 1.0


def refused(error: Exception, status: int = 2) -> int:
    """Say why not; the exit status."""
    print(f"tandem: {error}", file=sys.stderr)
    return status


def run(args: argparse.Namespace) -> int:
    """``tandem campaign run``."""
    from tandem.app.config import ConfigError, load
    from tandem.app.errors import MissingRequirementError
    from tandem.export import SetupError
    from tandem.schema.campaign import CampaignError

    try:
        config = load(args.config)
        request = _request(args, config)
        told = _ask(config, request)
        if told is not None:
            return _handed_over(args, config, told)
        return _run_here(args, config, request)
    except (ConfigError, CampaignError, SetupError) as error:
        return refused(error)
    except MissingRequirementError as error:
        return refused(error, 3)


def _request(args: argparse.Namespace, config: Config) -> dict[str, Any]:
    """What the collector is asked, checked against what is installed and what the kernels have."""
    from tandem.app.campaign.check import fit
    from tandem.app.campaign.files import source
    from tandem.app.runs.registry import Registry

    text, file = source(args.campaign)
    found = fit(
        text,
        file,
        form=args.form,
        paths=_roles(args.path, config),
        allow=args.allow_substitutes,
        config=config,
        installed=Registry(config.experiments),
        timezone=args.timezone,
    )
    for line in found.left_out:
        print(f"tandem: {line}", file=sys.stderr)
    return {
        "op": "campaign",
        "action": "begin",
        "text": text,
        "file": file,
        "form": args.form,
        "timezone": args.timezone,
        "steps": [s.name for s in found.campaign.steps],
        "paths": found.paths,
        "substitutes": found.substitutes,
        "label": args.label,
        "anew": args.anew,
    }


def _roles(pairs: list[str], config: Config) -> dict[str, str]:
    from tandem.schema.campaign import CampaignError

    given = {}
    for pair in pairs:
        role, sign, name = pair.partition("=")
        if not sign:
            raise CampaignError(f"--path {pair}: no ROLE=NAME; hint: as in --path wifi={config.paths[0].name}")
        given[role] = name
    return given


def _ask(config: Config, request: dict[str, Any]) -> dict[str, Any] | None:
    """The running collector's answer, None when none runs; CampaignError with the reason when it refuses."""
    from tandem.app.daemon.status_socket import NAME, NoCollectorError, ask
    from tandem.schema.campaign import CampaignError

    try:
        for answer in ask(config.folder / NAME, request, timeout_s=30.0):
            if answer.get("type") in ("refused", "error"):
                raise CampaignError(str(answer.get("reason")))
            return answer
    except NoCollectorError:
        return None
    except TimeoutError as error:
        raise CampaignError("the running collector does not answer; hint: look at its log") from error
    raise CampaignError("the running collector ended before it answered; hint: try again")


def _handed_over(args: argparse.Namespace, config: Config, told: dict[str, Any]) -> int:
    state = told.get("campaign")
    while args.wait and state is not None and state.get("state") in ("running", "waiting"):
        time.sleep(_LOOK_S)
        answer = _ask(config, {"op": "campaign", "action": "status"})
        if answer is None:
            return refused(RuntimeError("the collector ended before the campaign did; it goes on at its next start"), 1)
        state = answer.get("campaign")
    return _tell(state, as_json=args.json, ended=args.wait)


def _run_here(args: argparse.Namespace, config: Config, request: dict[str, Any]) -> int:
    from dataclasses import replace

    from tandem.app.campaign.files import load
    from tandem.app.daemon.supervisor import Supervisor

    log_to_stderr()
    # A person's one campaign: what the server has for this probe waits for the collector.
    config = replace(config, campaigns=replace(config.campaigns, from_server=False))
    campaign = load(args.campaign, form=args.form)
    needs_modems = any(
        s.trigger.on in ("mobility_start", "event", "speed_class", "place")
        or (s.conditions.mobile, s.conditions.speed_class) != (None, None)
        for s in campaign.steps
    )
    supervisor = Supervisor(config, modems=needs_modems)
    ends_on_signals(supervisor)
    supervisor.start()
    try:
        supervisor.service.campaign(request)
        part = supervisor.campaigns.campaigns
        supervisor.run(until=lambda: not part.under_way or part.waits_for_a_hand)
        state = part.status()
    finally:
        supervisor.close()
    return _tell(state, as_json=args.json, ended=True)


def _tell(state: dict[str, Any] | None, *, as_json: bool, ended: bool, queue: dict[str, Any] | None = None) -> int:
    from tandem.cli.view.campaign_text import queue_lines, status_lines

    if as_json:
        print(json.dumps(state if queue is None else {**(state or {"state": "none"}), "queue": queue}))
    else:
        print("\n".join([*status_lines(state), *queue_lines(queue)]))
    failed = 0 if state is None else state["runs"].get("failed", 0)
    return 1 if ended and failed else 0


def status(args: argparse.Namespace) -> int:
    """``tandem campaign status``."""
    from tandem.app.campaign import progress
    from tandem.app.campaign.queue import read
    from tandem.app.campaign.report import stored
    from tandem.app.campaign.state import Moment
    from tandem.app.campaign.wiring import folder
    from tandem.app.config import ConfigError, load
    from tandem.schema.campaign import CampaignError

    try:
        config = load(args.config)
        answer = None if args.campaign else _ask(config, {"op": "campaign", "action": "status"})
        state = None if answer is None else answer.get("campaign")
        name = args.campaign or progress.active(folder(config)) or progress.latest(folder(config))
        if state is None and name is not None:
            state = stored(folder(config), name, Moment("", 0.0, time.time()))
        queue = None if answer is None else answer.get("queue")
        if answer is None and (lying := read(folder(config))):
            queue = {"campaigns": [one.as_json() for one in sorted(lying, key=lambda one: one.pushed.turn)]}
    except (ConfigError, CampaignError) as error:
        return refused(error)
    return _tell(state, as_json=args.json, ended=False, queue=queue)


def stop(args: argparse.Namespace) -> int:
    """``tandem campaign stop``."""
    from tandem.app.campaign import progress
    from tandem.app.campaign.wiring import folder
    from tandem.app.config import ConfigError, load
    from tandem.schema.campaign import CampaignError

    try:
        config = load(args.config)
        answer = _ask(config, {"op": "campaign", "action": "stop"})
    except (ConfigError, CampaignError) as error:
        return refused(error)
    name = progress.active(folder(config)) if answer is None else answer.get("stopped")
    if answer is None and name is not None:
        progress.set_active(folder(config), None)
    if args.json:
        print(json.dumps({"stopped": name}))
    else:
        print("no campaign is under way" if name is None else f"{name}: begins no more runs")
    return 0


def idle(args: argparse.Namespace) -> int:
    """``tandem campaign idle``."""
    from tandem.app.config import ConfigError, load
    from tandem.schema.campaign import CampaignError

    until = time.monotonic() + args.wait
    try:
        config = load(args.config)
        while True:
            answer = _ask(config, {"op": "campaign", "action": "idle"})
            held = None if answer is None else answer.get("held")
            left_s = until - time.monotonic()
            if held is None or left_s <= 0:
                break
            time.sleep(min(_LOOK_S, left_s))
    except (ConfigError, CampaignError) as error:
        return refused(error)
    if args.json:
        print(json.dumps({"held": held, "collector": answer is not None}))
    else:
        print("idle" if held is None else f"held: {held}")
    return 0 if held is None else 1
