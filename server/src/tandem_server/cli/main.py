"""``tandem-server``: parse the command line and call the subcommand. Exit codes are in ``ExitCode``."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from enum import IntEnum

import tandem_server
from tandem_server.cli.command import run_plainly

MODULES = {
    "analyse": "analyse",
    "backup": "backup",
    "campaign": "campaign",
    "check": "serve",
    "congestion": "congestion",
    "dash": "content",
    "ledger": "ledger",
    "page": "content",
    "probe": "probe",
    "report": "report",
    "restore": "backup",
    "series": "series",
    "serve": "serve",
    "tls": "tls",
    "traces": "traces",
}
"""Each command, and the module beside this one whose ``add`` registers it."""


class ExitCode(IntEnum):
    """What the exit status says: a negative result is no failure of the program."""

    OK = 0
    NEGATIVE = 1
    USAGE = 2
    ENVIRONMENT = 3
    INTERRUPTED = 130


def parser(word: str | None = None) -> argparse.ArgumentParser:
    """The whole command line, or when ``word`` is a command only its module's: the others' imports take longer than many a command."""
    top = argparse.ArgumentParser(
        prog="tandem-server", description="Tandem's server: measurement endpoint, ingest gateway, store, report."
    )
    top.add_argument("--version", action="version", version=f"%(prog)s {tandem_server.__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in [MODULES[word]] if word in MODULES else dict.fromkeys(MODULES.values()):
        importlib.import_module(f"tandem_server.cli.{module}").add(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the return value is the exit status (``ExitCode``)."""
    words = sys.argv[1:] if argv is None else argv
    args = parser(words[0] if words else None).parse_args(words)
    try:
        return run_plainly(lambda: int(args.func(args)))
    except KeyboardInterrupt:
        print("tandem-server: stopped by Ctrl-C", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (head, a closed pager): end as a program killed by SIGPIPE does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


if __name__ == "__main__":
    sys.exit(main())
