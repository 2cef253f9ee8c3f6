"""``tandem kernel``: which Multipath TCP this kernel has, and whether it does what is expected of it."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from dataclasses import asdict
from pathlib import Path

from tandem.cli.main import ExitCode
from tandem.mptcp import kernels


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "kernel",
        help="which Multipath TCP this kernel has, and a test of it",
        description="Prints which Multipath TCP the kernel that runs has: version of the protocol, scheduler, controllers, and what "
        "somebody who measures on it should know.",
        epilog="Exit status: 0; with --self-test 1 when something is not as expected; 3 when this machine lacks root's rights or Multipath "
        "TCP. --json: an object; with --self-test its rows have name, expected, found, ok.",
    )
    parser.add_argument(
        "--self-test",
        action="store_true",
        help="try each thing that the collector takes for granted, between two network namespaces of its own (as root; a minute)",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(func=_kernel)


def _kernel(args: argparse.Namespace) -> int:
    kernel = kernels.here()
    now = kernel.scheduler()
    told = {
        "linux": kernels.release(Path("/")),
        "kernel": kernel.name,
        "protocol": kernel.protocol,
        "scheduler": now,
        "schedulers": sorted(kernel.schedulers()),
        "controllers": sorted(kernel.controllers() or ()),
        "notes": list(kernel.notes()),
    }
    if not args.json:
        print(
            f"Linux {told['linux']}: Multipath TCP {kernel.name}, version {kernel.protocol}; scheduler {now or 'none'}"
        )
        for word in ("schedulers", "controllers"):
            print(f"  {word}: {', '.join(told[word]) or 'not told'}")  # type: ignore[arg-type]  # lists of names
        for note in kernel.notes():
            print(f"  {note}")
    if not args.self_test:
        if args.json:
            print(json.dumps(told))
        return ExitCode.OK
    return _self_test(told, as_json=args.json)


def _self_test(told: dict[str, object], *, as_json: bool) -> int:
    # Imported here: nothing else of this command needs it.
    from tandem.app.kernel_self_test import SelfTest
    from tandem.mptcp.iproute import IpError

    if os.geteuid() != 0:
        print("tandem kernel: --self-test makes network namespaces; hint: run it as root", file=sys.stderr)
        return ExitCode.ENVIRONMENT
    kernel = kernels.here()
    try:
        kernel.open_socket(socket.AF_INET, multipath=True).close()
    except OSError as error:
        print(f"tandem kernel: {kernel.missing_requirement(error, socket.AF_INET) or error}", file=sys.stderr)
        return ExitCode.ENVIRONMENT
    rows = []
    try:
        for row in SelfTest().rows():
            rows.append(row)
            if not as_json:
                print(
                    f"{'ok   ' if row.ok else 'WRONG'} {row.name}: expected {row.expected}; found {row.found}",
                    flush=True,
                )
    except IpError as error:
        print(f"tandem kernel: {error}; hint: root's rights, not in a confined container", file=sys.stderr)
        return ExitCode.ENVIRONMENT
    if as_json:
        print(json.dumps({**told, "rows": [asdict(row) for row in rows]}))
    else:
        print(f"{sum(row.ok for row in rows)} of {len(rows)} as expected")
    return ExitCode.OK if all(row.ok for row in rows) else ExitCode.NEGATIVE
