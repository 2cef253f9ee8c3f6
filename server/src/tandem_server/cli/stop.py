"""Ends of a command that need no traceback: one line on stderr and an exit status."""

from __future__ import annotations

import functools
import sqlite3
import sys
from argparse import Namespace
from collections.abc import Callable


class ConfigError(ValueError):
    """A file's content or an argument is wrong: exit 2. The message is one line that names file, line and mend."""


class EnvironmentLacks(RuntimeError):  # noqa: N818  (it reads as what it is)
    """Port in use, no Multipath TCP, disk full, a program missing: exit 3. The message is one line with the mend."""


def with_plain_ends(command: Callable[[Namespace], int]) -> Callable[[Namespace], int]:
    """Turn ConfigError and EnvironmentLacks into their line and exit status."""

    @functools.wraps(command)
    def run(args: Namespace) -> int:
        try:
            return command(args)
        except ConfigError as error:
            print(f"tandem-server: {error}", file=sys.stderr)
            return 2
        except EnvironmentLacks as error:
            print(f"tandem-server: {error}", file=sys.stderr)
            return 3
        except sqlite3.OperationalError as error:
            print(
                f"tandem-server: the registry: {error}; hint: make room, or let this user write its folder",
                file=sys.stderr,
            )
            return 3
        except OSError as error:
            if error.filename is None:
                raise
            print(
                f"tandem-server: {error.filename}: {error.strerror}; hint: let this user write there, or make room",
                file=sys.stderr,
            )
            return 3

    return run
