"""What every command has in common: how it is registered, which ``server.toml`` it means, and its ends that need no traceback."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sqlite3
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tandem_server.registry import Registry, RegistryError
from tandem_server.store import QueryError, StoreDown, StoreStartError
from tandem_server.uploads.store import TraceStoreDown

Actions = argparse._SubParsersAction
VARIABLE = "TANDEM_SERVER_CONFIG"
PLACES = (Path("server.toml"), Path("/etc/tandem/server.toml"))
_DEFAULT = f"default: ${VARIABLE}, else ./{PLACES[0]}, else {PLACES[1]}"


class ConfigError(ValueError):
    """A file's content or an argument is wrong: exit 2. The message is one line that names file, line and hint."""


class EnvironmentLacks(RuntimeError):  # noqa: N818  (it reads as what it is)
    """Port in use, no Multipath TCP, disk full, a program missing: exit 3. The message is one line with the hint."""


_HINTS: tuple[tuple[type[Exception], str], ...] = (
    (ConfigError, ""),
    (EnvironmentLacks, ""),
    (RegistryError, ""),
    (StoreStartError, ""),
    (StoreDown, "start the database (tandem-server serve database, systemctl start tandem-database), and do it again"),
    (QueryError, "tandem-server series prepare"),
    (TraceStoreDown, "see that the store of traces answers, and do it again"),
)
"""Errors that end a command also where their line has no hint, with the hint that it gets then."""


def run_plainly(command: Callable[[], int]) -> int:
    """The exit status of ``command``; an error that needs no traceback is one line on stderr and status 2 or 3.

    Every part of the server raises such errors with ``hint:`` in their line: a ValueError where a file or an argument is wrong, a
    RuntimeError where the machine lacks something.
    """
    try:
        return command()
    except (ValueError, RuntimeError) as error:
        hint = next((hint for kind, hint in _HINTS if isinstance(error, kind)), None)
        if hint is None and "hint: " not in str(error):
            raise
        wrong = isinstance(error, ValueError) and not isinstance(error, QueryError)
        return _ended(2 if wrong else 3, with_hint(error, hint or ""))
    except sqlite3.OperationalError as error:
        return _ended(3, f"the registry: {error}; hint: make room, or let this user write its folder")
    except OSError as error:
        if error.filename is None:
            raise
        return _ended(3, f"{error.filename}: {error.strerror}; hint: let this user write there, or make room")


def with_hint(error: Exception, hint: str) -> str:
    """The error's line, with ``hint`` where it brings none."""
    return str(error) if not hint or "hint: " in str(error) else f"{error}; hint: {hint}"


@contextlib.contextmanager
def hinted(hint: str, *kinds: type[Exception]) -> Iterator[None]:
    """An error of these kinds, within, ends the command as EnvironmentLacks with this hint, or with its own."""
    try:
        yield
    except kinds as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise EnvironmentLacks(f"{error.filename}: {error.strerror}; hint: {hint}") from error
        raise EnvironmentLacks(with_hint(error, hint)) from error


def _ended(status: int, line: str) -> int:
    print(f"tandem-server: {line}", file=sys.stderr)
    return status


def add_command(
    actions: Actions[argparse.ArgumentParser],
    name: str,
    run: Callable[[Namespace], int],
    what: str,
    description: str | None = None,
    *,
    json: str | None = None,
    config: bool = True,
    **more: Any,  # noqa: ANN401  argparse's
) -> argparse.ArgumentParser:
    """A command with ``--config`` and, where ``json`` says what it is for, ``--json``. ``description``: by default ``what``."""
    parser = actions.add_parser(name, help=what, description=description or f"{what[0].upper()}{what[1:]}.", **more)
    if config:
        add_config(parser)
    if json is not None:
        parser.add_argument("--json", action="store_true", help=json)
    parser.set_defaults(func=run)
    return parser


def add_config(parser: argparse.ArgumentParser, first: str = "") -> None:
    """The option, the same everywhere; ``first``: what a command looks for before the usual places."""
    default = _DEFAULT if not first else _DEFAULT.replace("default: ", f"default: {first}, else ")
    parser.add_argument("--config", type=Path, metavar="FILE", help=f"server.toml ({default})")


def config_file(
    named: Path | None = None, environment: Mapping[str, str] = os.environ, places: tuple[Path, ...] = PLACES
) -> Path:
    """The file that is named, or the first there is: the environment's, then ``places``. ConfigError when there is none.

    What the environment names must be there: to pass it over would serve another registry than the one that was meant.
    """
    if named is not None:
        return named
    if of_environment := environment.get(VARIABLE):
        if not _there(Path(of_environment)):
            raise ConfigError(f"{of_environment}: no such file, says {VARIABLE}; hint: correct or unset it")
        return Path(of_environment)
    for place in places:
        if _there(place):
            return place
    looked = " nor ".join(str(place) for place in places)
    raise ConfigError(f"no server.toml: neither {looked} is there; hint: name one with --config or in {VARIABLE}")


def found_config_file() -> Path | None:
    """The same without a named file, None when there is none: for a command that can do without."""
    return config_file() if os.environ.get(VARIABLE) or any(map(_there, PLACES)) else None


def _there(place: Path) -> bool:
    try:
        return place.is_file()
    except PermissionError:
        # One with a whole path is meant, and that it cannot be looked at must be reported. The folder that somebody happens to be in is
        # not: after `sudo -u tandem-server` it is mostly one that this user may not look into.
        return place.is_absolute()


def check_probe(registry: Registry, name: str | None, option: str = "") -> None:
    """ConfigError when ``name`` is given and no probe's; ``option``: which one named it."""
    if name is not None and all(probe.name != name for probe in registry.probes.all()):
        what = f"{option} {name}: there is no such probe" if option else f"no probe {name!r}"
        raise ConfigError(f"{what}; hint: tandem-server probe list")


def need_native_pass() -> None:
    """EnvironmentLacks where it is not built."""
    try:
        importlib.import_module("tandem_server.tandem_trace_core")
    except ImportError as error:
        raise EnvironmentLacks(
            "the native pass over captures is not built; hint: ./kit setup, or a server's wheel for this processor"
        ) from error


def whole_from_1(text: str) -> int:
    """An argument that is a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def within(low: float, high: float, what: str, *, above: bool = False) -> Callable[[str], float]:
    """For an argument that is a number from ``low`` (itself too small if ``above``) to ``high``; ``what`` says so."""

    def number(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = float("nan")
        if not low <= found <= high or (above and found == low):
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return found

    return number


def utc_ns(option: str, text: str | None, *, last: bool = False) -> int | None:
    """A time of ISO 8601 in UTC ns; of a day its beginning, or with ``last`` the next day's. ConfigError."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        at += timedelta(days=1) if last and len(text) <= len("2026-W01-1") and "T" not in text else timedelta()
        since = at - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"{option} {text}: no day and no time in ISO 8601; hint: 2026-06-01 or 2026-06-01T08:00+02:00"
        ) from error
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
