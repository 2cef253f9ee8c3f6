"""``tandem-bench``: parse the command line and call the subcommand."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import signal
import sys
from collections.abc import Sequence

import tandem_bench
import tandem_bench.cli
from tandem_bench import BenchError, ExitCode


def parser(word: str | None = None) -> argparse.ArgumentParser:
    """The whole command line, or when ``word`` is a subcommand only that: the others' imports take longer than many a command.
    Subcommands are the modules beside this one that have ``add``."""
    top = argparse.ArgumentParser(
        prog="tandem-bench",
        description="Tandem's bench: emulated modems, links and commutes; the rehearsal of the whole kit.",
    )
    top.add_argument("--version", action="version", version=f"%(prog)s {tandem_bench.__version__}")
    subparsers = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    names = sorted(m.name for m in pkgutil.iter_modules(tandem_bench.cli.__path__) if m.name != "main")
    for module in [word] if word in names else names:
        loaded = importlib.import_module(f"tandem_bench.cli.{module}")
        if hasattr(loaded, "add"):
            loaded.add(subparsers)
        elif module == word:
            return parser()  # a module that is no subcommand: let the whole list be told
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; the return value is the exit status (``ExitCode``)."""
    words = sys.argv[1:] if argv is None else argv
    args = parser(words[0] if words else None).parse_args(words)
    try:
        return int(args.func(args))
    except KeyboardInterrupt:
        why, status = "stopped by Ctrl-C", ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (head, a closed pager): end as a program killed by SIGPIPE does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except BenchError as error:
        why, status = str(error), error.status
    except OSError as error:
        why = (
            f"{error.filename}: {error.strerror}; hint: another place, or root's rights"
            if error.filename
            else str(error)
        )
        status = ExitCode.ENVIRONMENT
    print(f"tandem-bench {args.command}: {why}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
