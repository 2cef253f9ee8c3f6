"""Processes beside the gateway, with the least priority: what they compute must not stand in the way of records that come in."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from pathlib import Path

_LOG = logging.getLogger("tandem.serve")
NICE = 19
_AFTER_S = 10.0
"""So long the gateway has for itself at first; and between a process that died and the next."""
_STOP_S = 15.0


class Beside:
    """A context: while it is open there is a process ``python -m MODULE CONFIG``, from ``after_s`` on; one that died is started again;
    one that ended well had nothing to do here, and said why."""

    def __init__(self, module: str, config: Path, after_s: float = _AFTER_S) -> None:
        self._module, self._config, self._after_s = module, config, after_s
        self._end = threading.Event()
        # The kernel ends nothing with this thread: the process watches its standard input.
        self._thread = threading.Thread(target=self._keep, name=module.rsplit(".", 1)[-1], daemon=True)

    def __enter__(self) -> Beside:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _keep(self) -> None:
        command = [sys.executable, "-m", self._module, str(self._config)]
        while not self._end.wait(self._after_s):
            with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
                while not self._end.is_set() and process.poll() is None:
                    self._end.wait(1.0)
                if self._end.is_set():
                    _ended(process)
                    return
            if process.returncode == 0:
                return
            _LOG.warning("%s ended (status %d); another is started", self._module, process.returncode)


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
