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

import tandem
import tandem.cli
from tandem.cli.command import ExitCode, expected, say


def parser() -> argparse.ArgumentParser:
    """The whole command line. Subcommands are the modules beside this one that have ``add``."""
    top = argparse.ArgumentParser(prog="tandem", description="Tandem's collector: what runs on the probe.")
    top.add_argument("--version", action="version", version=f"%(prog)s {tandem.__version__}")
    subparsers = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in sorted(m.name for m in pkgutil.iter_modules(tandem.cli.__path__)):
        if hasattr(module := importlib.import_module(f"tandem.cli.{name}"), "add"):
            module.add(subparsers)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; the return value is the exit status (``ExitCode``). What a person can do something about is one line on
    standard error; any other exception is a fault of this program, with its traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a locale without our characters is no reason to end
    args = parser().parse_args(argv)
    try:
        return int(args.func(args) or ExitCode.OK)
    except KeyboardInterrupt:
        say("stopped by Ctrl-C")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (head, a closed pager): end as a program killed by SIGPIPE does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except Exception as error:
        known = expected(error)
        if known is None:
            raise
        say(known)
        return known.status


if __name__ == "__main__":
    sys.exit(main())
