"""``tandem-bench kernel``: the kit on another kernel, in a virtual machine."""

from __future__ import annotations

import argparse
import time
from pathlib import Path


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "kernel",
        help="the kit on another kernel (Multipath TCP v0.94), in a virtual machine",
        description="Boots a virtual machine with the kernel image that you bring, or the distribution's own, and this system's programs; "
        "in it server, links of 4 and 2 Mbit/s and collector in namespaces as on the bench. By default it makes three downloads. What is "
        "measured in an emulated machine says that things work, not how fast they are. Needs QEMU, and the machine that "
        "./kit test tests/system/test_vm_modems.py makes.",
        epilog="DIR gets kernel.json (image, times, memory, rows or runs, why it failed), the console, and the campaign folder kit/. "
        "Exit status: 0 as expected; 1 a row is not, a run failed, the kernel ended, or its time was up; 2 the image, a file or the "
        "command line is wrong; 3 this machine, or the kernel, lacks something; 130 stopped. The machine is gone at the end in any case.",
    )
    parser.add_argument(
        "--image",
        required=True,
        metavar="FILE|stock",
        help="a bzImage of Multipath TCP v0.94, or the distribution's own kernel",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--self-test", action="store_true", help="what the kernel does, against what the collector takes for granted"
    )
    what.add_argument(
        "--campaign", metavar="NAME", help="a campaign by its name, in a form whose rates emulation bears"
    )
    parser.add_argument("--form", default="emulated", metavar="NAME", help="of the campaign (default %(default)s)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="default kernel-runs/TIME")
    parser.add_argument(
        "--timeout", type=float, default=3600.0, metavar="S", help="then the machine is ended (default %(default).0f)"
    )
    parser.add_argument("--json", action="store_true", help="print kernel.json")
    parser.set_defaults(func=_kernel)


def _kernel(args: argparse.Namespace) -> int:
    # Imported here, so that --help needs nothing.
    from tandem_bench.kernel.command import kernel

    out = args.out or Path("kernel-runs") / time.strftime("%Y%m%d-%H%M%S")
    asked = (
        ["self-test"] if args.self_test else ["campaign", args.campaign, args.form] if args.campaign else ["downloads"]
    )
    return kernel(args.image, asked, out, args.timeout, as_json=args.json)
