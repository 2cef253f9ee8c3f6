"""``tandem experiment``: measure now, by the running collector or, when none runs, by this process."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tandem.cli.run import CONFIG, ends_on_signals, log_to_stderr

if TYPE_CHECKING:
    from tandem.app.config import Config


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "experiment", help="measure now", description="Measure now, or say what can be measured."
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the experiments there are")
    listing.set_defaults(func=_list)
    run = actions.add_parser(
        "run",
        help="run an experiment",
        description="Hands over to the running collector, or measures itself when none runs. Without --pairing and --kind: a "
        "sequential pair, that is MPTCP over all paths and TCP on each, in random order. Exit status: 0 measured, 1 the "
        "network failed (that is recorded), 2 wrong usage, 3 this machine lacks something.",
    )
    run.add_argument("name", choices=["download"], metavar="EXPERIMENT", help="download")
    run.add_argument("--config", type=Path, default=CONFIG, metavar="FILE", help="default: %(default)s")
    what = run.add_mutually_exclusive_group()
    what.add_argument("--pairing", choices=["sequential", "simultaneous"], help="one after the other, or all at once")
    what.add_argument("--kind", choices=["mptcp", "tcp"], help="a single run of this kind")
    run.add_argument("--path", metavar="NAME", help="with --kind tcp: its path; with --kind mptcp: the primary one")
    size = run.add_mutually_exclusive_group()
    size.add_argument("--seconds", type=float, metavar="S", help="length of each run; default: the configuration's")
    size.add_argument("--bytes", type=int, metavar="N", help="what each run downloads, instead of --seconds")
    run.add_argument("--json", action="store_true", help="print the outcome as one JSON object")
    run.set_defaults(func=_run)


def _list(_args: argparse.Namespace) -> int:
    from tandem.experiment import names

    for name in names():
        print(name)
    return 0


def _run(args: argparse.Namespace) -> int:
    from tandem.app.config import ConfigError, load
    from tandem.app.parts import EnvironmentLackError
    from tandem.app.plan import WishError, wish_of_request
    from tandem.app.status_socket import NAME, NoCollectorError, ask
    from tandem.export import SetupError

    names = ("pairing", "kind", "path", "seconds", "bytes")
    parameters = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    try:
        config = load(args.config)
        wish_of_request(config, parameters)
    except (ConfigError, WishError) as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 2
    request = {"op": "start", "experiment": args.name, "parameters": parameters}
    try:
        return _follow(ask(config.folder / NAME, request), as_json=args.json)
    except NoCollectorError:
        pass  # none runs: measure here
    try:
        return _measure_here(config, args.name, parameters, as_json=args.json)
    except SetupError as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 2
    except EnvironmentLackError as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 3


def _follow(answers: Iterator[dict[str, Any]], *, as_json: bool) -> int:
    """Tell what the running collector says; the exit status."""
    number = 0
    for answer in answers:
        kind = answer.get("type")
        if kind in ("refused", "error"):
            print(f"tandem: the collector refused: {answer.get('reason')}", file=sys.stderr)
            return 3
        if kind == "done":
            return _tell(answer, as_json=as_json)
        run = answer.get("run") or {}
        if kind == "progress" and not as_json and run.get("runs") and run.get("number") != number:
            number = run["number"]
            _announce(run)
    print("tandem: the collector ended before the measurement did", file=sys.stderr)
    return 1


def _announce(run: dict[str, Any]) -> None:
    what = ", ".join(f"{r['kind']} over {r['path']}" for r in run["runs"])
    print(f"{run['number']}/{run['of']}: {what} …", file=sys.stderr, flush=True)


def _tell(done: dict[str, Any], *, as_json: bool) -> int:
    from tandem.cli.view.plain import finished_table

    ok = bool(done.get("ok"))
    if as_json:
        print(json.dumps({"runs": done.get("runs", []), "ok": ok, "results": done.get("results", [])}))
    else:
        print(finished_table(done.get("results", [])))
    return 0 if ok else 1


def _measure_here(config: Config, experiment: str, parameters: dict[str, Any], *, as_json: bool) -> int:
    from tandem.app.real_parts import real_parts
    from tandem.app.supervisor import Supervisor

    log_to_stderr()
    supervisor = Supervisor(config, real_parts(), modems=False)
    ends_on_signals(supervisor)
    supervisor.start()
    pair = None
    try:
        pair = supervisor.request(experiment, parameters)
        supervisor.run(until=lambda: not supervisor.pairs.running)
    finally:
        supervisor.close()
    done = supervisor.done(pair) or {"runs": [], "results": [], "ok": False}
    return _tell(done, as_json=as_json)
