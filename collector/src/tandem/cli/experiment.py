"""``tandem experiment``: measure now, by the running collector or, when none runs, by this process."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tandem.cli.command import (
    CONFIG,
    Actions,
    CommandError,
    ExitCode,
    columns,
    command,
    configuration,
    ends_on_signals,
    group,
    log_to_stderr,
    optional_config,
    output,
    say,
)
from tandem.mptcp.steering import POLICIES
from tandem.schema.manifest import CAPTURE_ENDS

if TYPE_CHECKING:
    from tandem.app.config import Config
    from tandem.app.runs.registry import Described, Registry
    from tandem.experiment.parameters import Parameter

_OF_DOWNLOAD = ("pairing", "kind", "path", "seconds", "bytes")
"""The collector's own words for a download."""
_OWN_OF_DOWNLOAD = ("subflows",)
"""Of the download's own parameters, those that have an option."""


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    actions = group(commands, "experiment", "measure now", "Measure now, or say what can be measured.")
    listing = command(actions, "list", _list, "the experiments there are", json=True)
    describe = command(actions, "describe", _describe, "what an experiment takes, does and reports", json=True)
    describe.add_argument("name", metavar="EXPERIMENT", help="as tandem experiment list shows them")
    own = f"names the folder of your own; default: {CONFIG}, where there is one"
    for one in (listing, describe):
        one.add_argument("--config", type=Path, metavar="FILE", help=own)
    run = command(actions, "run", _run, "run an experiment", config=True, json=True)
    _add_run(run)
    command(actions, "stop", _stop, "end what is being measured", config=True, json=True)


def _add_run(run: argparse.ArgumentParser) -> None:
    run.add_argument("name", metavar="EXPERIMENT", help="as tandem experiment list shows them")
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
    own = run.add_argument_group("the experiment's own parameters (tandem experiment describe NAME shows them)")
    own.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="one parameter; JSON, or text; may be repeated"
    )
    own.add_argument(
        "--parameters", type=Path, metavar="FILE.json", help="a JSON object of parameters; --set comes over it"
    )
    own.add_argument("--seed", type=int, metavar="N", help="of its random order; default: the configuration's")
    where = run.add_argument_group("where and under which conditions")
    where.add_argument("--paths", metavar="A,B", help="the paths that it may use; default: all")
    where.add_argument(
        "--steering",
        choices=POLICIES,
        help="when a path is made backup by its radio, in runs by Multipath TCP; default: the configuration's",
    )
    where.add_argument(
        "--capture",
        choices=CAPTURE_ENDS,
        help="where its packets are captured: at the probe, or at the server too; default: the configuration's",
    )
    where.add_argument("--deadline-s", type=float, metavar="S", help="its process is ended then at the latest")
    where.add_argument(
        "--sysctl",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="for this run alone, then put back; net.* only",
    )
    where.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="PATH:KEY=VALUE,…",
        help="for this run alone: down_bit_per_s, up_bit_per_s, down_delay_ms, up_delay_ms, down_loss_percent, "
        "up_loss_percent, queue_ms",
    )


def _registry(args: argparse.Namespace) -> Registry:
    """For ``list`` and ``describe``, which need no configuration."""
    from tandem.app.runs.registry import Registry

    config = optional_config(args.config)
    return Registry(None if config is None else config.experiments)


def _list(args: argparse.Namespace) -> int:
    from tandem.app.runs.registry import RegistryError

    registry = _registry(args)
    names = registry.names()
    status, found = ExitCode.OK, []
    for name in names if args.json else ():  # each one's process has to start: that takes its time
        try:
            one = registry.describe(name)
            found.append({**one.raw, "folder": None if one.folder is None else str(one.folder)})
        except RegistryError as error:
            say(error)
            status = ExitCode.NEGATIVE
    output(args, found, lambda: names)
    return status


def _describe(args: argparse.Namespace) -> None:
    one = _registry(args).describe(args.name)
    output(args, one.raw, lambda: _described(one))


def _run(args: argparse.Namespace) -> int:
    """Hands over to the running collector, or measures itself when none runs. A download without --pairing and --kind is a sequential
    pair, that is MPTCP over all paths and TCP on each, in random order; any other experiment is one run over all paths. Ctrl-C ends it,
    and what was measured is kept. Exit status: 0 measured, 1 the network failed (that is recorded), 2 wrong usage, 3 this machine
    misses a requirement."""
    from tandem.app.daemon.status_socket import NAME, NoCollectorError, ask
    from tandem.app.runs.registry import Registry
    from tandem.app.runs.request import parse_request

    config = configuration(args)
    registry = Registry(config.experiments)
    # A plain download is as ever: its declaration is not needed.
    own = args.name != "download" or args.set or args.parameters or args.subflows
    parameters = parameters_of(args, registry.describe(args.name).parameters if own else ())
    try:
        parse_request(config, registry, args.name, parameters, "request")
    except ValueError as error:  # of shapes and sysctls too
        raise CommandError(error) from error
    request = {"op": "start", "experiment": args.name, "parameters": parameters}
    report = partial(_report, args, config.folder / "runs")
    begun: list[str] = []
    try:
        return _follow(ask(config.folder / NAME, request), report, begun, as_json=args.json)
    except NoCollectorError:
        return report(_measure_here(config, args.name, parameters))
    except KeyboardInterrupt:
        if begun:
            say("ending it; Ctrl-C again leaves that to the collector")
            _follow(ask(config.folder / NAME, {"op": "cancel", "pair": begun[0]}), report, [], as_json=args.json)
        raise


def _stop(args: argparse.Namespace) -> int:
    """Ends what the running collector measures just now, whoever began it; what was measured until then is kept, as a run with the
    failure 'stopped'. Exit status: 0 ended, 1 nothing was being measured or no collector runs."""
    from tandem.app.daemon.status_socket import NAME, NoCollectorError, ask

    config = configuration(args)
    ended: list[dict[str, Any]] = []

    def report(done: dict[str, Any]) -> int:
        ended.append(done)
        return _report(args, config.folder / "runs", done)

    try:
        _follow(ask(config.folder / NAME, {"op": "cancel"}), report, [], as_json=True)
    except NoCollectorError as error:
        say(f"no collector runs ({error}); what measures by itself is ended by Ctrl-C")
    return ExitCode.OK if ended else ExitCode.NEGATIVE


def _follow(
    answers: Iterator[dict[str, Any]], report: Callable[[dict[str, Any]], int], begun: list[str], *, as_json: bool
) -> int:
    """Show what the running collector does; the exit status. ``begun`` gets the pair's id as soon as it is known."""
    before: list[str] = []
    for answer in answers:
        kind = answer.get("type")
        if kind in ("refused", "error"):
            raise CommandError(f"the collector refused: {answer.get('reason')}", ExitCode.ENVIRONMENT)
        if kind == "accepted":
            begun.append(str(answer.get("pair")))
        if kind == "done":
            return report(answer)
        run = answer.get("run") or {}
        if kind == "progress" and not as_json and run.get("runs"):
            now = _announced(run)
            for line in now:
                if line not in before:
                    print(line, file=sys.stderr, flush=True)
            before = now
    raise CommandError("the collector ended before the measurement did", ExitCode.NEGATIVE)


def _announced(run: dict[str, Any]) -> list[str]:
    from tandem.cli.view.text import kind_words, phase_words

    what = ", ".join(f"{kind_words({**run, **r})} over {r['path']}" for r in run["runs"])
    phases = [words for r in run["runs"] if (words := phase_words(r.get("phase")))]
    return [f"{run['number']}/{run['of']}: {what} …", *phases]


def _report(args: argparse.Namespace, runs: Path, done: dict[str, Any]) -> ExitCode:
    """Print the outcome; of experiments other than the download also the result, from the manifest in ``runs``."""
    from tandem.cli.view.text import finished_table

    ok = bool(done.get("ok"))
    rows = [{**r, "result": _result(runs, r)} if r.get("kind") == "any" else r for r in done.get("results", [])]
    outcome = {"runs": done.get("runs", []), "ok": ok, "results": rows}
    lines = [line for row in rows for line in result_lines(row.get("result"))]
    output(args, outcome, lambda: [finished_table(rows), *lines])
    return ExitCode.OK if ok else ExitCode.NEGATIVE


def _result(runs: Path, row: dict[str, Any]) -> dict[str, Any] | None:
    file = runs / f"{row.get('id')}.json"
    try:
        result = json.loads(file.read_bytes())["result"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        say(f"{file}: {error}")
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


def parameters_of(args: argparse.Namespace, declared: Sequence[Parameter]) -> dict[str, Any]:
    """The request's parameters, of the command line; ``declared``: the experiment's. CommandError."""
    given: dict[str, Any] = {n: getattr(args, n) for n in _OF_DOWNLOAD if getattr(args, n) is not None}
    special = {n: getattr(args, n) for n in _OWN_OF_DOWNLOAD if getattr(args, n) is not None}
    if (given or special) and args.name != "download":
        raise CommandError(
            f"--{next(iter({**given, **special}))} belongs to download; hint: --set KEY=VALUE, as {args.name} names it"
        )
    if args.paths is not None:
        given["paths"] = [name.strip() for name in args.paths.split(",")]
    own = {} if args.parameters is None else _file(args.parameters)
    kinds = {p.name: p.kind for p in declared}
    for name, text in (_split(one, "--set") for one in args.set):
        own[name] = _value(text, kinds.get(name))
    own |= special
    if own:
        given["parameters"] = own
    if args.sysctl:
        given["sysctl"] = dict(_split(one, "--sysctl") for one in args.sysctl)
    if args.shape:
        given["shape"] = dict(_shape(one) for one in args.shape)
    for name in ("seed", "deadline_s", "steering", "capture"):
        if getattr(args, name) is not None:
            given[name] = getattr(args, name)
    return given


def _split(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise CommandError(f"{option} {text!r} is not of the form KEY=VALUE")
    return name.strip(), value.strip()


def _value(text: str, kind: str | None) -> Any:  # noqa: ANN401 any JSON value
    """Text where the parameter is text; else JSON, and text again where it is none: the check of the parameter then says so."""
    if kind == "str":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _shape(text: str) -> tuple[str, dict[str, float]]:
    path, colon, rest = text.partition(":")
    if not colon or not path:
        raise CommandError(f"--shape {text!r} is not of the form PATH:KEY=VALUE,KEY=VALUE")
    shape: dict[str, float] = {}
    for name, value in (_split(one, "--shape") for one in rest.split(",")):
        try:
            shape[name] = float(value)
        except ValueError:
            raise CommandError(f"--shape {text!r}: {value!r} is no number") from None
    return path, shape


def _file(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text())
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from error
    except ValueError as error:
        raise CommandError(f"{file}: no JSON: {error}") from error
    if not isinstance(found, dict):
        raise CommandError(f"{file}: holds JSON, but no object of parameters")
    return found


def _described(one: Described) -> list[str]:
    lines = [
        f"{one.name}, version {one.version}",
        "",
        "parameters",
        *_indented([_parameter(p) for p in one.parameters]),
    ]
    if one.phases:
        lines += ["", "phases", *_indented(one.phases)]
    return [*lines, "", "result", *_indented([(r.name, r.kind, r.unit, r.purpose) for r in one.results])]


def _parameter(p: Parameter) -> tuple[str, str, str, str]:
    limits = ""
    if p.choices:
        limits = " or ".join(map(str, p.choices))
    elif p.minimum is not None or p.maximum is not None:
        low, high = (None if v is None else f"{v:g}" for v in (p.minimum, p.maximum))
        limits = " to ".join(v for v in (low, high) if v is not None) + (f" {p.unit}" if p.unit else "")
    note = "required" if p.required else "" if p.default is None else f"default {p.default}"
    return p.name, p.kind, ", ".join(w for w in (note, limits) if w), p.purpose


def result_lines(result: Mapping[str, Any] | None) -> list[str]:
    """A result's figures, one a line; long ones by their length."""
    rows = []
    for name, value in (result or {}).items():
        if isinstance(value, list):
            shown = f"{len(value)} entries"
        elif isinstance(value, dict):
            shown = ", ".join(f"{k} {_short(v)}" for k, v in list(value.items())[:8])
        else:
            shown = _short(value)
        rows.append((name, shown))
    return _indented(rows) if rows else []


def _short(value: Any) -> str:  # noqa: ANN401 any JSON value
    if isinstance(value, dict):
        return "(" + ", ".join(f"{k} {_short(v)}" for k, v in list(value.items())[:4]) + ")"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "–" if value is None else str(value)[:120]


def _indented(rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"  {line}" for line in columns(rows)] if rows else ["  none"]
