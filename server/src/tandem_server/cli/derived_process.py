"""The process that makes derived series, beside the gateway: ``python -m tandem_server.cli.derived_process CONFIG``.

A process of its own, and a nice one: what it computes must not stand in the way of records that come in.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from argparse import Namespace
from pathlib import Path

from tandem_server.cli.configuration import load
from tandem_server.cli.gateway_pool import end_with_parent
from tandem_server.cli.log import log_to_stderr
from tandem_server.cli.stop import with_plain_ends
from tandem_server.cli.stores import open_registry, open_rolled
from tandem_server.derived.series import DerivedSeries
from tandem_server.registry import Ripening

_LOG = logging.getLogger("tandem.derived")
NICE = 19
_AFTER_S = 10.0
"""So long the gateway has for itself at first; and between a process that died and the next."""
_STOP_S = 15.0


class DerivedProcess:
    """A context: while it is open there is such a process, from ``after_s`` on; one that died is started again."""

    def __init__(self, config: Path, after_s: float = _AFTER_S) -> None:
        self._config, self._after_s = config, after_s
        self._end = threading.Event()
        # The kernel ends nothing with this thread: the process watches its standard input.
        self._thread = threading.Thread(target=self._keep, name="derived", daemon=True)

    def __enter__(self) -> DerivedProcess:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _keep(self) -> None:
        command = [sys.executable, "-m", "tandem_server.cli.derived_process", str(self._config)]
        while not self._end.wait(self._after_s):
            with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
                while not self._end.is_set() and process.poll() is None:
                    self._end.wait(1.0)
                if self._end.is_set():
                    _ended(process)
                    return
            if process.returncode == 0:
                return  # it has nothing to do here, and said why
            _LOG.warning("the process of the derived series ended (status %d); another is started", process.returncode)


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()


@with_plain_ends
def main(args: Namespace) -> int:
    """Make them until SIGTERM, or until the gateway is gone."""
    config = load(args.config)
    log_to_stderr()
    os.nice(NICE)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    end_with_parent()
    store = open_rolled(config)
    if store is None:
        _LOG.warning("no derived series (coverage, pairs): they need an InfluxDB 1.x, [store] kind private or running")
        return 0
    with open_registry(config) as registry, DerivedSeries(registry, store, Ripening(config.series.settle_s)):
        stop.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main(Namespace(config=Path(sys.argv[1]))))
