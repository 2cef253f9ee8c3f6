"""``tandem``: parse the command line and call the subcommand. Exit codes are in ``ExitCode``."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import pkgutil
import signal
import sys
from collections.abc import Sequence
from enum import IntEnum

import tandem
import tandem.cli


class ExitCode(IntEnum):
    """What the exit status says: a negative result is no failure of the program."""

    OK = 0
    NEGATIVE = 1
    USAGE = 2
    ENVIRONMENT = 3
    INTERRUPTED = 130


def parser() -> argparse.ArgumentParser:
    """The whole command line. Subcommands are the modules beside this one that have ``add``."""
    top = argparse.ArgumentParser(prog="tandem", description="Tandem's collector: what runs on the probe.")
    top.add_argument("--version", action="version", version=f"%(prog)s {tandem.__version__}")
    subparsers = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in sorted(m.name for m in pkgutil.iter_modules(tandem.cli.__path__)):
        if module != "main":
            loaded = importlib.import_module(f"tandem.cli.{module}")
            if hasattr(loaded, "add"):
                loaded.add(subparsers)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; the return value is the exit status (``ExitCode``)."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a locale without our characters is no reason to end
    args = parser().parse_args(argv)
    try:
        return int(args.func(args))
    except KeyboardInterrupt:
        print("tandem: stopped by Ctrl-C", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (head, a closed pager): end as a program killed by SIGPIPE does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


if __name__ == "__main__":
    sys.exit(main())
