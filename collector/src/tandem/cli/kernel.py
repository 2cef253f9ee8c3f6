"""``tandem kernel``: which Multipath TCP this kernel has, and whether it does what is expected of it."""

from __future__ import annotations

import argparse
import os
import socket
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tandem.cli.command import Actions, CommandError, ExitCode, command, output
from tandem.mptcp import kernels

if TYPE_CHECKING:
    from tandem.app.kernel_self_test import Row


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    parser = command(commands, "kernel", _kernel, "which Multipath TCP this kernel has, and a test of it", json=True)
    parser.add_argument(
        "--self-test",
        action="store_true",
        help="try each thing that the collector takes for granted, between two network namespaces of its own (as root; a minute)",
    )


def _kernel(args: argparse.Namespace) -> int:
    """Prints which Multipath TCP the kernel that runs has: version of the protocol, scheduler, controllers, and what somebody who
    measures on it should know. Exit status: 0; with --self-test 1 when something is not as expected; 3 without root's rights or
    Multipath TCP. --json: an object; with --self-test its rows have name, expected, found, ok."""
    kernel = kernels.here()
    lists = {"schedulers": sorted(kernel.schedulers()), "controllers": sorted(kernel.controllers() or ())}
    found: dict[str, object] = {
        "linux": kernels.release(Path("/")),
        "kernel": kernel.name,
        "protocol": kernel.protocol,
        "scheduler": kernel.scheduler(),
        **lists,
        "notes": list(kernel.notes()),
    }
    said = f"Linux {found['linux']}: Multipath TCP {kernel.name}, version {kernel.protocol}"
    lines = [
        f"{said}; scheduler {found['scheduler'] or 'none'}",
        *(f"  {word}: {', '.join(names) or 'unknown'}" for word, names in lists.items()),
        *(f"  {note}" for note in kernel.notes()),
    ]
    if not args.self_test:
        output(args, found, lambda: lines)
        return ExitCode.OK
    if not args.json:
        print("\n".join(lines), flush=True)
    rows = _self_test(show=not args.json)
    count = f"{sum(row.ok for row in rows)} of {len(rows)} as expected"
    output(args, {**found, "rows": [asdict(row) for row in rows]}, lambda: [count])
    return ExitCode.OK if all(row.ok for row in rows) else ExitCode.NEGATIVE


def _self_test(*, show: bool) -> list[Row]:
    from tandem.app.kernel_self_test import SelfTest
    from tandem.mptcp.iproute import IpError

    if os.geteuid() != 0:
        raise CommandError("--self-test makes network namespaces; hint: run it as root", ExitCode.ENVIRONMENT)
    kernel = kernels.here()
    try:
        kernel.open_socket(socket.AF_INET, multipath=True).close()
    except OSError as error:
        reason = kernel.missing_requirement(error, socket.AF_INET) or error
        raise CommandError(reason, ExitCode.ENVIRONMENT) from error
    rows = []
    try:
        for row in SelfTest().rows():
            rows.append(row)
            if show:
                verdict = "ok   " if row.ok else "WRONG"
                print(f"{verdict} {row.name}: expected {row.expected}; found {row.found}", flush=True)
    except IpError as error:
        what = f"{error}; hint: root's rights, not in a confined container"
        raise CommandError(what, ExitCode.ENVIRONMENT) from error
    return rows
