"""``tandem run``: the collector."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tandem.app.config import Config
    from tandem.app.daemon.indicator import IndicatorControl
    from tandem.app.daemon.supervisor import Supervisor
    from tandem.notify import Notify

CONFIG = Path("/etc/tandem/config.toml")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "run",
        help="the collector: poll the modems, measure, send",
        description="Polls the modems once a second, notices movement, measures, keeps it all in a durable spool and sends it "
        "to the server. Prints 'ready' when polling has begun. Ctrl-C or SIGTERM ends it: a run in progress is kept, what is "
        "left is sent. Exit status: 0, or 2 when the configuration is wrong, 3 when this machine lacks something.",
    )
    parser.add_argument("--config", type=Path, default=CONFIG, metavar="FILE", help="default: %(default)s")
    parser.add_argument(
        "--check", action="store_true", help="check the configuration, print what would be done, and end"
    )
    parser.add_argument("--verbose", action="store_true", help="log more")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    """Run until told to stop."""
    from tandem.app.config import ConfigError, load
    from tandem.export import SetupError

    try:
        config = load(args.config)
        if args.check:
            return _check(config)
        return _run(config, verbose=args.verbose)
    except (ConfigError, SetupError) as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 2


def log_to_stderr(*, verbose: bool = False) -> None:
    """Time, level and message: journald adds the rest. A line that the log's disk does not take is lost, without a traceback."""
    logging.raiseExceptions = False
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(message)s",
    )


def ends_on_signals(supervisor: Supervisor) -> None:
    """SIGTERM and SIGINT stop it cleanly, whatever it does just now; the second SIGINT is no different."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        supervisor.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


def _run(config: Config, *, verbose: bool) -> int:
    from tandem.app.daemon.indicator import IndicatorControl
    from tandem.app.daemon.supervisor import Supervisor
    from tandem.app.preflight.own_folder import sweep
    from tandem.notify import Notify

    told = Notify.of_environment()
    log_to_stderr(verbose=verbose)
    try:
        sweep()  # of this account; routes, rules and endpoints are removed below, whoever left them
    except OSError as error:
        logging.getLogger(__name__).warning("what a check of before left stays: %s", error)
    supervisor, indicating = Supervisor(config), IndicatorControl(config)
    ends_on_signals(supervisor)
    indicating.start()
    try:
        return _measure(supervisor, indicating, told)
    finally:
        indicating.close()


def _measure(supervisor: Supervisor, indicating: IndicatorControl, told: Notify) -> int:
    from tandem.app.errors import MissingRequirementError

    try:
        supervisor.start()
    except MissingRequirementError as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 3
    service = supervisor.service
    service.indicator = indicating.status
    try:
        print("ready", flush=True)
        told.ready()

        def never() -> bool:
            # Asked by the thread that writes the spool: when it hangs, the light says so, and systemd starts anew.
            told.alive()
            indicating.beat(service.brief)
            return False

        supervisor.run(never)
    finally:
        told.stopping()
        indicating.stopping()
        left = not supervisor.close()
    if left:
        print(
            "tandem: not everything could be sent; it stays in the spool and is sent at the next start", file=sys.stderr
        )
    return 0


def round_trips(config: Config) -> str:
    """What they are, and what a month of them costs each SIM."""
    asked = config.round_trip
    if not asked.enabled:
        return "no round trips all the time"
    day = asked.day_bytes
    parts = [
        f"{path.name} {31 * day / path.plan.bytes:.0%} of its plan"
        if path.plan is not None
        else f"{path.name} {day / path.day_limit_bytes:.0%} of day_bytes"
        for path in config.paths
        if path.day_limit_bytes
    ]
    told = f" ({', '.join(parts)})" if parts else ""
    kept = f"the records of each {asked.records_day_bytes / 1e6:.1f} MB a day more, over the path that uploads take"
    return f"round trips every {asked.period_s:g} s: {day / 1e6:.1f} MB a day on each path, {31 * day / 1e6:.0f} MB a month{told}; {kept}"


def _check(config: Config) -> int:
    from tandem.export import GatewayAddress
    from tandem.indicator.lamp import lacking
    from tandem.mptcp import kernels

    GatewayAddress.of(config.server.gateway, config.server.ca_file, config.server.token_file)
    size = f"{config.runs.seconds:g} s" if config.runs.seconds is not None else f"{config.runs.bytes} bytes"
    print(f"probe {config.probe}, state in {config.folder}")
    for path in config.paths:
        modem = f"modem at {path.modem.port or path.modem.usb} ({path.modem.driver})" if path.modem else "no modem"
        via = f" via {path.gateway}" if path.gateway else ""
        where = path.interface or f"USB {path.usb}"
        print(f"path {path.name}: {path.operator or 'no operator'}, {where}{via}, {modem}")
    movement = config.mobility
    rule = (
        f"{movement.quantity} by {movement.threshold_db:g} dB"
        if movement.detector == "published"
        else movement.detector
    )
    print(f"poll every {config.period_s:g} s; movement: {rule}")
    if config.runs.on_mobility_start == "off":
        print(f"runs of {size} when told; none when movement starts")
    else:
        gap = config.runs.minimum_gap_s
        print(f"runs of {size}, {config.runs.on_mobility_start}, when movement starts, at least {gap:g} s apart")
    captures = config.capture
    print(
        f"captures: {captures.snaplen_bytes} bytes a packet, {captures.budget_bytes} in all"
        if captures.enabled
        else "no captures"
    )
    if config.status_led is not None:
        print(f"status LED: {', '.join(config.status_led.leds.names)}")
        for line in lacking(config.status_led.leds):
            print(f"  {line}")
    if config.e_paper is not None:
        print(f"e-paper: {config.e_paper.spi}, lines of {config.e_paper.gpio}; call {config.e_paper.call or 'nobody'}")
        for device in (config.e_paper.spi, config.e_paper.gpio):
            if not os.access(device, os.R_OK | os.W_OK):
                print(
                    f"  e-paper: {device} is not there, or not for this user; hint: dtparam=spi=on, or the role indicator"
                )
    print(round_trips(config))
    print(f"records to {config.server.gateway}")
    for name, value in config.sysctl.items():
        print(f"sysctl {name} = {value}")
    kernel = kernels.here()
    schedulers, controllers = kernel.schedulers(), kernel.controllers() or ()
    print(
        f"kernel: Multipath TCP {kernel.name}, version {kernel.protocol}; scheduler {kernel.scheduler() or 'unknown'}"
    )
    print(
        f"  schedulers {' '.join(sorted(schedulers)) or 'unknown'}; controllers {' '.join(sorted(controllers)) or 'unknown'}"
    )
    for note in kernel.notes():
        print(f"  {note}")
    print("the configuration is good")
    return 0
