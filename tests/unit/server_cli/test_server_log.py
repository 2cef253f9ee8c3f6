"""A log whose disk is full."""

import subprocess
import sys
from pathlib import Path

TELLS = "import logging; from tandem_server.cli.log import log_to_stderr; log_to_stderr(); logging.warning('x' * 10000)"


def test_a_line_that_the_disk_does_not_take_is_no_traceback() -> None:
    # /dev/full takes nothing, as a full disk; what Python then says of it goes the same way, so it is asked by its flag.
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run([sys.executable, "-c", TELLS], stderr=full, check=False)
    told = subprocess.run(
        [sys.executable, "-c", f"{TELLS}; print(logging.raiseExceptions)"], capture_output=True, text=True, check=True
    )
    assert ended.returncode in (0, 120)  # 120: Python's own, when the last flush fails
    assert told.stdout == "False\n"
