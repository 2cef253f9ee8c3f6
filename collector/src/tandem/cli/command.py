"""What all subcommands share: options, errors and their exit status, output, and requests to the running collector."""

from __future__ import annotations

import argparse
import io
import json
import logging
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tandem.app.config import Config
    from tandem.app.daemon.supervisor import Supervisor

CONFIG = Path("/etc/tandem/config.toml")

Actions = argparse._SubParsersAction
Function = Callable[[argparse.Namespace], int | None]
"""A command; None is ``ExitCode.OK``. Its docstring is its description."""


class ExitCode(IntEnum):
    """What the exit status says: a negative result is no failure of the program."""

    OK = 0
    NEGATIVE = 1
    USAGE = 2
    ENVIRONMENT = 3
    INTERRUPTED = 130


class CommandError(Exception):
    """Ends the command: one line, what is wrong and the hint, and the exit status."""

    def __init__(self, message: object, status: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(str(message))
        self.status = status


def group(commands: Actions[argparse.ArgumentParser], name: str, help: str, description: str | None = None) -> Any:  # noqa: A002, ANN401 argparse's own name and class
    """Register ``tandem NAME ACTION``; returned is what its actions are registered with."""
    parser = commands.add_parser(name, help=help, description=description or help)
    return parser.add_subparsers(dest="action", metavar="ACTION", required=True)


def command(
    commands: Actions[argparse.ArgumentParser],
    name: str,
    func: Function,
    help: str,  # noqa: A002 argparse's own name
    *,
    config: bool = False,
    json: str | bool = False,
) -> argparse.ArgumentParser:
    """Register a command that calls ``func``. ``config``, ``json``: whether it has these options; ``json`` may be the option's help."""
    description = " ".join((func.__doc__ or f"{help[:1].upper()}{help[1:]}.").split())
    parser = commands.add_parser(name, help=help, description=description)
    parser.set_defaults(func=func)
    if config:
        parser.add_argument("--config", type=Path, default=CONFIG, metavar="FILE", help=HERE)
    if json:
        words = json if isinstance(json, str) else "print one JSON object"
        parser.add_argument("--json", action="store_true", help=words)
    return parser


HERE = "default: %(default)s"
"""The help of an option where there is no more to say."""


def number(
    low: float, high: float, unit: str = "", *, above: bool = False, whole: bool = False
) -> Callable[[str], Any]:
    """The type of an option: a number from ``low`` (``above``: above it) to ``high``."""

    def value(text: str) -> float:
        try:
            given = int(text) if whole else float(text)
        except ValueError:
            given = float("nan")
        if not low <= given <= high or (above and given == low):
            span = f"{'above' if above else 'from'} {low:g} to {high:g}"
            raise argparse.ArgumentTypeError(f"{text!r} is not a number{unit and f' of {unit}'} {span}")
        return given

    return value


def say(message: object) -> None:
    """One line on standard error; what a terminal would obey in it is escaped."""
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(message))
    print(f"tandem: {plain}", file=sys.stderr, flush=True)


def output(args: argparse.Namespace, value: object, lines: Callable[[], Iterable[str]]) -> None:
    """Print a result: ``value`` as JSON with ``--json``, else ``lines``."""
    print(json.dumps(value, indent=1) if args.json else "\n".join(lines()))


def columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Rows as lines with aligned columns, however long; ``right``: the numbers of the columns that are flush right."""
    if not rows:
        return []
    from rich.console import Console  # loaded late: most commands print no table
    from rich.table import Column, Table
    from rich.text import Text

    heads = [Column(justify="right" if n in right else "left", no_wrap=True) for n in range(len(rows[0]))]
    grid = Table.grid(*heads, padding=(0, 2))
    for row in rows:
        grid.add_row(*map(Text, row))
    console = Console(width=10_000, file=io.StringIO(), color_system=None)
    with console.capture() as captured:
        console.print(grid)
    return [line.rstrip() for line in captured.get().splitlines()]


def configuration(args: argparse.Namespace) -> Config:
    """What ``--config`` names. ConfigError."""
    from tandem.app.config import load

    return load(args.config)


def optional_config(file: Path | None) -> Config | None:
    """The configuration ``file``, or this machine's where none is named; None where it has none. ConfigError."""
    from tandem.app.config import load

    return load(file) if file is not None else load(CONFIG) if CONFIG.exists() else None


class NoAnswerError(CommandError):
    """A collector runs, but gives no answer."""


def answer_of(socket: Path, request: dict[str, Any], timeout_s: float, refused: ExitCode) -> dict[str, Any]:
    """The running collector's answer. NoCollectorError when none runs; CommandError with the status ``refused`` when it refuses, and
    NoAnswerError when it gives no answer."""
    from tandem.app.daemon.status_socket import ask

    try:
        answer = next(iter(ask(socket, request, timeout_s)), None)
    except TimeoutError as error:
        raise NoAnswerError("the running collector does not answer; hint: look at its log", refused) from error
    if answer is None:
        raise NoAnswerError("the running collector ended before it answered; hint: try again", refused)
    if answer.get("type") in ("refused", "error"):
        raise CommandError(answer.get("reason"), refused)
    return answer


def log_to_stderr(*, verbose: bool = False) -> None:
    """Time, level and message: journald adds the rest. A line that the log's disk does not take is lost, without a traceback."""
    logging.raiseExceptions = False
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(message)s",
    )


def ends_on_signals(supervisor: Supervisor) -> None:
    """SIGTERM and SIGINT stop it cleanly, whatever it does just now; the second SIGINT is no different."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        supervisor.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


def expected(error: Exception) -> CommandError | None:
    """What a person can do something about, as it is reported; None: a fault of this program."""
    if isinstance(error, CommandError):
        return error
    from tandem.app.config import ConfigError  # loaded late: to report an error only
    from tandem.app.daemon.status_socket import NoCollectorError
    from tandem.app.runs.registry import RegistryError
    from tandem.app.runs.request import RequestError
    from tandem.experiment.base import MissingRequirementError
    from tandem.export import SetupError
    from tandem.schema.campaign import CampaignError

    if isinstance(error, ConfigError | CampaignError | SetupError | RegistryError | RequestError):
        return CommandError(error)
    if isinstance(error, MissingRequirementError):
        return CommandError(error, ExitCode.ENVIRONMENT)
    if isinstance(error, NoCollectorError):
        return CommandError(f"no collector answers: {error}; hint: start it with tandem run", ExitCode.NEGATIVE)
    return None
