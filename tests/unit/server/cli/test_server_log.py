"""A log whose disk is full."""

import subprocess
import sys
from pathlib import Path

SET_UP = "import logging, sys; from tandem_server.cli.log import log_to_stderr"
ONCE_FULL = f"""{SET_UP}
class Disk:
    full = True
    def write(self, text):
        if self.full:
            self.full = False
            raise OSError(28, "No space left on device")
        return sys.__stderr__.write(text)
    def flush(self):
        sys.__stderr__.flush()
sys.stderr = Disk()
log_to_stderr()
logging.warning("lost")
logging.warning("told")
"""
"""A disk that does not take the first line and takes all that follows, a traceback too."""


def test_a_line_that_the_disk_does_not_take_is_lost_without_a_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", ONCE_FULL], capture_output=True, text=True, check=True)
    (line,) = done.stderr.splitlines()
    assert line.endswith(" WARNING root: told")


def test_the_program_goes_on_while_the_disk_is_full() -> None:
    tells = f"{SET_UP}; log_to_stderr(); logging.warning('x' * 10000); print('went on', flush=True)"
    with Path("/dev/full").open("w") as full:  # takes nothing
        done = subprocess.run(
            [sys.executable, "-c", tells], stdout=subprocess.PIPE, stderr=full, text=True, check=False
        )
    assert done.stdout == "went on\n"
