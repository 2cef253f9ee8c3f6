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
