"""``tandem experiment``: measure now, by the running collector or, when none runs, by this process."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tandem.cli import experiment_asked
from tandem.cli.run import CONFIG, ends_on_signals, log_to_stderr

if TYPE_CHECKING:
    from tandem.app.config import Config
    from tandem.app.runs.registry import Registry


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "experiment", help="measure now", description="Measure now, or say what can be measured."
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_saying(actions)
    run = actions.add_parser(
        "run",
        help="run an experiment",
        description="Hands over to the running collector, or measures itself when none runs. A download without --pairing and "
        "--kind is a sequential pair, that is MPTCP over all paths and TCP on each, in random order; any other experiment is one "
        "run over all paths. Ctrl-C ends it, and what was measured is kept. Exit status: "
        "0 measured, 1 the network failed (that is recorded), 2 wrong usage, 3 this machine lacks "
        "something.",
    )
    run.add_argument("name", metavar="EXPERIMENT", help="as tandem experiment list shows them")
    run.add_argument("--config", type=Path, default=CONFIG, metavar="FILE", help="default: %(default)s")
    what = run.add_mutually_exclusive_group()
    what.add_argument("--pairing", choices=["sequential", "simultaneous"], help="one after the other, or all at once")
    what.add_argument("--kind", choices=["mptcp", "tcp"], help="a single run of this kind")
    run.add_argument("--path", metavar="NAME", help="with --kind tcp: its path; with --kind mptcp: the primary one")
    size = run.add_mutually_exclusive_group()
    size.add_argument("--seconds", type=float, metavar="S", help="length of each run; default: the configuration's")
    size.add_argument("--bytes", type=int, metavar="N", help="what each run downloads, instead of --seconds")
    run.add_argument(
        "--subflows",
        type=int,
        choices=(1, 2, 4),
        help="of a download's MPTCP: the primary path alone, two paths, or two paths to two addresses of the server; "
        "default: one a path",
    )
    run.add_argument("--json", action="store_true", help="print the outcome as one JSON object")
    experiment_asked.options(run)
    run.set_defaults(func=_run)
    stop = actions.add_parser(
        "stop",
        help="end what is being measured",
        description="Ends what the running collector measures just now, whoever began it; what was measured until then is kept, as a "
        "run with the failure 'stopped'. Exit status: 0 ended, 1 nothing was being measured or no collector runs.",
    )
    stop.add_argument("--config", type=Path, default=CONFIG, metavar="FILE", help="default: %(default)s")
    stop.add_argument("--json", action="store_true", help="print the outcome as one JSON object")
    stop.set_defaults(func=_stop)


def _add_saying(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """What asks and measures nothing."""
    listing = actions.add_parser("list", help="the experiments there are")
    listing.set_defaults(func=_list)
    describe = actions.add_parser("describe", help="what an experiment takes, does and tells")
    describe.add_argument("name", metavar="EXPERIMENT", help="as tandem experiment list shows them")
    describe.set_defaults(func=_describe)
    for one in (listing, describe):
        one.add_argument("--json", action="store_true", help="as JSON")
        one.add_argument(
            "--config",
            type=Path,
            metavar="FILE",
            help=f"names the folder of your own; default: {CONFIG}, where there is one",
        )


def _registry(args: argparse.Namespace) -> Registry:
    """For ``list`` and ``describe``, which need no configuration; ConfigError when the one named is bad."""
    from tandem.app.config import load
    from tandem.app.runs.registry import Registry

    file = args.config if args.config is not None else CONFIG if CONFIG.exists() else None
    return Registry(None if file is None else load(file).experiments)


def _list(args: argparse.Namespace) -> int:
    from tandem.app.config import ConfigError
    from tandem.app.runs.registry import RegistryError

    try:
        registry = _registry(args)
        names = registry.names()
    except (ConfigError, RegistryError) as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 2
    status, told = 0, []
    for name in names:
        if not args.json:
            print(name)
            continue
        try:
            one = registry.describe(name)
            told.append({**one.raw, "folder": None if one.folder is None else str(one.folder)})
        except RegistryError as error:
            print(f"tandem: {error}", file=sys.stderr)
            status = 1
    if args.json:
        print(json.dumps(told))
    return status


def _describe(args: argparse.Namespace) -> int:
    from tandem.app.config import ConfigError
    from tandem.app.runs.registry import RegistryError
    from tandem.cli.view.described import described

    try:
        one = _registry(args).describe(args.name)
    except (ConfigError, RegistryError) as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 2
    parts = {"parameters": one.parameters, "phases": one.phases, "results": one.results}
    print(json.dumps(one.raw) if args.json else described(one.name, one.version, parts))
    return 0


def _run(args: argparse.Namespace) -> int:
    from tandem.app.config import ConfigError, load
    from tandem.app.daemon.status_socket import NAME, NoCollectorError, ask
    from tandem.app.errors import MissingRequirementError
    from tandem.app.runs.registry import Registry
    from tandem.app.runs.request import parse_request
    from tandem.export import SetupError

    try:
        config = load(args.config)
        registry = Registry(config.experiments)
        # A plain download is as ever: nobody has to be asked what it takes.
        own = args.name != "download" or args.set or args.parameters or args.subflows
        parameters = experiment_asked.request_of(args, registry.describe(args.name).parameters if own else ())
        parse_request(config, registry, args.name, parameters, "request")
    except (ConfigError, ValueError) as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 2
    request = {"op": "start", "experiment": args.name, "parameters": parameters}
    tell = partial(_tell, runs=config.folder / "runs", as_json=args.json)
    begun: list[str] = []
    try:
        return _follow(ask(config.folder / NAME, request), tell, begun, as_json=args.json)
    except NoCollectorError:
        pass  # none runs: measure here
    except KeyboardInterrupt:
        if begun:
            print("tandem: ending it; Ctrl-C again leaves that to the collector", file=sys.stderr)
            _follow(ask(config.folder / NAME, {"op": "cancel", "pair": begun[0]}), tell, [], as_json=args.json)
        raise
    try:
        return tell(_measure_here(config, args.name, parameters))
    except SetupError as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 2
    except MissingRequirementError as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 3


def _stop(args: argparse.Namespace) -> int:
    from tandem.app.config import ConfigError, load
    from tandem.app.daemon.status_socket import NAME, NoCollectorError, ask

    try:
        config = load(args.config)
    except ConfigError as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 2
    ended: list[dict[str, Any]] = []

    def tell(done: dict[str, Any]) -> int:
        ended.append(done)
        return _tell(done, config.folder / "runs", as_json=args.json)

    try:
        _follow(ask(config.folder / NAME, {"op": "cancel"}), tell, [], as_json=True)
    except NoCollectorError as error:
        print(f"tandem: no collector runs ({error}); what measures by itself is ended by Ctrl-C", file=sys.stderr)
    return 0 if ended else 1


def _follow(
    answers: Iterator[dict[str, Any]], tell: Callable[[dict[str, Any]], int], begun: list[str], *, as_json: bool
) -> int:
    """Tell what the running collector says; the exit status. ``begun`` gets the pair's id as soon as it is known."""
    before: list[str] = []
    for answer in answers:
        kind = answer.get("type")
        if kind in ("refused", "error"):
            print(f"tandem: the collector refused: {answer.get('reason')}", file=sys.stderr)
            return 3
        if kind == "accepted":
            begun.append(str(answer.get("pair")))
        if kind == "done":
            return tell(answer)
        run = answer.get("run") or {}
        if kind == "progress" and not as_json and run.get("runs"):
            now = _announced(run)
            for line in now:
                if line not in before:
                    print(line, file=sys.stderr, flush=True)
            before = now
    print("tandem: the collector ended before the measurement did", file=sys.stderr)
    return 1


def _announced(run: dict[str, Any]) -> list[str]:
    """What is under way: the runs, and their phases."""
    from tandem.cli.view.figures import phase_words

    what = ", ".join(f"{_kind(run, r)} over {r['path']}" for r in run["runs"])
    phases = [words for r in run["runs"] if (words := phase_words(r.get("phase")))]
    return [f"{run['number']}/{run['of']}: {what} …", *phases]


def _kind(run: dict[str, Any], one: dict[str, Any]) -> str:
    return str(run.get("experiment") if one["kind"] == "any" else one["kind"])


def _tell(done: dict[str, Any], runs: Path, *, as_json: bool) -> int:
    """Print the outcome; of experiments other than the download also the result, from the manifest in ``runs``."""
    from tandem.cli.view.described import result_lines
    from tandem.cli.view.plain import finished_table

    ok = bool(done.get("ok"))
    rows = [{**r, "result": _result(runs, r)} if r.get("kind") == "any" else r for r in done.get("results", [])]
    if as_json:
        print(json.dumps({"runs": done.get("runs", []), "ok": ok, "results": rows}))
    else:
        print(finished_table(rows))
        for row in rows:
            for line in result_lines(row.get("result")):
                print(line)
    return 0 if ok else 1


def _result(runs: Path, row: dict[str, Any]) -> dict[str, Any] | None:
    file = runs / f"{row.get('id')}.json"
    try:
        result = json.loads(file.read_bytes())["result"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"tandem: {file}: {error}", file=sys.stderr)
        return None
    return result if isinstance(result, dict) else None


def _measure_here(config: Config, experiment: str, parameters: dict[str, Any]) -> dict[str, Any]:
    from tandem.app.daemon.supervisor import Supervisor

    log_to_stderr()
    supervisor = Supervisor(config, modems=False)
    ends_on_signals(supervisor)
    supervisor.start()
    pair = None
    try:
        pair = supervisor.service.request(experiment, parameters)
        supervisor.run(until=lambda: not supervisor.scheduler.running)
    finally:
        supervisor.close()
    return supervisor.service.outcome(pair) or {"runs": [], "results": [], "ok": False}
