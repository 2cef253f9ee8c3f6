"""The process that makes derived series, beside the gateway: ``python -m tandem_server.cli.derived_process CONFIG``.

A process of its own, and a nice one: what it computes must not stand in the way of records that come in.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from argparse import Namespace
from pathlib import Path

from tandem.stop_flag import StopFlag
from tandem_server.cli.beside import NICE
from tandem_server.cli.configuration import load
from tandem_server.cli.gateway_pool import end_with_parent
from tandem_server.cli.log import log_to_stderr
from tandem_server.cli.stop import with_plain_ends
from tandem_server.cli.stores import open_registry, open_rolled
from tandem_server.derived.series import DerivedSeries
from tandem_server.registry import Ripening

_LOG = logging.getLogger("tandem.derived")


@with_plain_ends
def main(args: Namespace) -> int:
    """Make them until SIGTERM, or until the gateway is gone."""
    config = load(args.config)
    log_to_stderr()
    os.nice(NICE)
    stop = StopFlag()
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
