"""``--config`` of every command, and which server.toml is meant where it is not given."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from tandem_server.cli.stop import ConfigError

VARIABLE = "TANDEM_SERVER_CONFIG"
PLACES = (Path("server.toml"), Path("/etc/tandem/server.toml"))
_DEFAULT = f"default: ${VARIABLE}, else ./{PLACES[0]}, else {PLACES[1]}"


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
        # One with a whole path is meant, and that it cannot be looked at has to be told. The folder that somebody happens to be in is
        # not: after `sudo -u tandem-server` it is mostly one that this user may not look into.
        return place.is_absolute()
