"""``tandem run``: the collector."""

from __future__ import annotations

import argparse
import logging
import os
from typing import TYPE_CHECKING

from tandem.cli.command import Actions, command, configuration, ends_on_signals, log_to_stderr, say

if TYPE_CHECKING:
    from tandem.app.config import Config
    from tandem.app.daemon.indicator import IndicatorControl
    from tandem.app.daemon.supervisor import Supervisor
    from tandem.notify import Notify


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    parser = command(commands, "run", main, "the collector: poll the modems, measure, send", config=True)
    check = "check the configuration, print what would be done, and end"
    parser.add_argument("--check", action="store_true", help=check)
    parser.add_argument("--verbose", action="store_true", help="log more")


def main(args: argparse.Namespace) -> None:
    """Polls the modems once a second, notices movement, measures, keeps it all in a durable spool and sends it to the server. Prints
    'ready' when polling has begun. Ctrl-C or SIGTERM ends it: a run in progress is kept, what is left is sent. Exit status: 0, or 2
    when the configuration is wrong, 3 when this machine misses a requirement."""

    config = configuration(args)
    if args.check:
        print("\n".join(_check(config)))
    else:
        _run(config, verbose=args.verbose)


def _run(config: Config, *, verbose: bool) -> None:
    from tandem.app.daemon.indicator import IndicatorControl
    from tandem.app.daemon.supervisor import Supervisor
    from tandem.app.preflight.own_collector import sweep
    from tandem.notify import Notify

    systemd = Notify.of_environment()
    log_to_stderr(verbose=verbose)
    try:
        sweep()  # of this account; routes, rules and endpoints are removed below, whoever left them
    except OSError as error:
        logging.getLogger(__name__).warning("what a check of before left stays: %s", error)
    supervisor, indicating = Supervisor(config), IndicatorControl(config)
    ends_on_signals(supervisor)
    indicating.start()
    try:
        _measure(supervisor, indicating, systemd)
    finally:
        indicating.close()


def _measure(supervisor: Supervisor, indicating: IndicatorControl, systemd: Notify) -> None:
    supervisor.start()
    service = supervisor.service
    service.indicator = indicating.status
    try:
        print("ready", flush=True)
        systemd.ready()

        def never() -> bool:
            # Called by the thread that writes the spool: when it hangs, the light says so, and systemd starts anew.
            systemd.alive()
            indicating.beat(service.brief)
            return False

        supervisor.run(never)
    finally:
        systemd.stopping()
        indicating.stopping()
        left = not supervisor.close()
    if left:
        say("not everything could be sent; it stays in the spool and is sent at the next start")


def _round_trips(config: Config) -> str:
    """What they are, and what a month of them costs each SIM."""
    trips = config.round_trip
    if not trips.enabled:
        return "no round trips all the time"
    day = trips.day_bytes
    parts = [
        f"{path.name} {31 * day / path.plan.bytes:.0%} of its plan"
        if path.plan is not None
        else f"{path.name} {day / path.day_limit_bytes:.0%} of day_bytes"
        for path in config.paths
        if path.day_limit_bytes
    ]
    shares = f" ({', '.join(parts)})" if parts else ""
    kept = f"the records of each {trips.records_day_bytes / 1e6:.1f} MB a day more, over the path that uploads take"
    cost = f"{day / 1e6:.1f} MB a day on each path, {31 * day / 1e6:.0f} MB a month{shares}"
    return f"round trips every {trips.period_s:g} s: {cost}; {kept}"


def _check(config: Config) -> list[str]:
    from tandem.export import GatewayAddress
    from tandem.indicator.lamp import missing_leds
    from tandem.mptcp import kernels

    GatewayAddress.of(config.server.gateway, config.server.ca_file, config.server.token_file)
    lines = [f"probe {config.probe}, state in {config.folder}"]
    for path in config.paths:
        modem = f"modem at {path.modem.port or path.modem.usb} ({path.modem.driver})" if path.modem else "no modem"
        where = (path.interface or f"USB {path.usb}") + (f" via {path.gateway}" if path.gateway else "")
        lines.append(f"path {path.name}: {path.operator or 'no operator'}, {where}, {modem}")
    movement, runs, captures = config.mobility, config.runs, config.capture
    change = f"{movement.quantity} by {movement.threshold_db:g} dB"
    rule = change if movement.detector == "published" else movement.detector
    lines.append(f"poll every {config.period_s:g} s; movement: {rule}")
    size = f"{runs.seconds:g} s" if runs.seconds is not None else f"{runs.bytes} bytes"
    lines.append(
        f"runs of {size} on request; none when movement starts"
        if runs.on_mobility_start == "off"
        else f"runs of {size}, {runs.on_mobility_start}, when movement starts, at least {runs.minimum_gap_s:g} s apart"
    )
    limits = f"captures: {captures.snaplen_bytes} bytes a packet, {captures.budget_bytes} in all"
    lines.append(limits if captures.enabled else "no captures")
    if config.status_led is not None:
        lines.append(f"status LED: {', '.join(config.status_led.leds.names)}")
        lines += [f"  {line}" for line in missing_leds(config.status_led.leds)]
    if (paper := config.e_paper) is not None:
        lines.append(f"e-paper: {paper.spi}, lines of {paper.gpio}; call {paper.call or 'nobody'}")
        missing = [device for device in (paper.spi, paper.gpio) if not os.access(device, os.R_OK | os.W_OK)]
        hint = "is not there, or not for this user; hint: dtparam=spi=on, or the role indicator"
        lines += [f"  e-paper: {device} {hint}" for device in missing]
    lines += [_round_trips(config), f"records to {config.server.gateway}"]
    lines += [f"sysctl {name} = {value}" for name, value in config.sysctl.items()]
    kernel = kernels.here()
    schedulers, controllers = kernel.schedulers(), kernel.controllers() or ()
    return [
        *lines,
        f"kernel: Multipath TCP {kernel.name}, version {kernel.protocol}; scheduler {kernel.scheduler() or 'unknown'}",
        f"  schedulers {' '.join(sorted(schedulers)) or 'unknown'}; controllers {' '.join(sorted(controllers)) or 'unknown'}",
        *(f"  {note}" for note in kernel.notes()),
        "the configuration is good",
    ]
