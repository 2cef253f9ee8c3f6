"""What stands in for hardware: commutes, radio, AT modems, links and topology. Imports neither collector nor server."""

from enum import IntEnum

__version__ = "0.1.0"


class ExitCode(IntEnum):
    """What the exit status says: a negative result is no failure of the program."""

    OK = 0
    NEGATIVE = 1
    USAGE = 2
    ENVIRONMENT = 3
    INTERRUPTED = 130


class BenchError(RuntimeError):
    """What ends a command, in one line; ``status``: its exit status."""

    status = ExitCode.ENVIRONMENT

    def __init__(self, text: str, status: ExitCode | None = None) -> None:
        super().__init__(text)
        self.status = self.status if status is None else status


class UsageError(BenchError, ValueError):
    """The command line, or a file that it names, is wrong."""

    status = ExitCode.USAGE
