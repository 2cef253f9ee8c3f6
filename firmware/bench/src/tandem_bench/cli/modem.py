"""``tandem-bench modem``: one AT modem on a pseudo-terminal."""

from __future__ import annotations

import argparse
import signal
import time
from pathlib import Path
from typing import Any

from tandem_bench import ExitCode
from tandem_bench.modem.families import FAMILIES
from tandem_bench.modem.faults import read_schedule
from tandem_bench.modem.process import Setup, luhn, made_up_imei, run
from tandem_bench.modem.timeline import read

DESCRIPTION = """Be an AT modem: open a pseudo-terminal, link PATH to it, and answer as a modem of the family does at the
radio conditions that the timeline gives at this moment. Prints "ready PATH" when it answers; ends on SIGTERM."""
EPILOG = """Faults by the control socket, one JSON object a line:
  {"fault": "hang"|"garbage"|"disappear"|"cme_error", "seconds": S}  ("cured_by": "AT+CFUN" ends a hang early)
  {"fault": "wrong_sim", "seconds": S, "how": "pin"|"absent"|"foreign"}
and {"rrc": "connected"|"idle"} for the state that Quectel's AT+QENG tells,
{"power": "cycle"} to be off and on again. Each line is answered by {"ok": true} or
{"ok": false, "error": WHY}. A schedule (--faults) has the same objects with "t_s", seconds since the start, one a line."""


def add(subparsers: Any) -> None:  # noqa: ANN401  # argparse keeps the type of its subparsers private
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "modem",
        help="an AT modem on a pseudo-terminal",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--family", required=True, choices=sorted(FAMILIES), help="whose dialogue it speaks")
    parser.add_argument("--timeline", required=True, type=Path, metavar="FILE", help="radio conditions of its operator")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--link", type=Path, metavar="PATH", help="symbolic link to make to the terminal")
    where.add_argument(
        "--socket", metavar="NAME", help="be reached by this abstract socket instead (ModemManager's test interface)"
    )
    parser.add_argument("--operator-name", metavar="NAME", help="what +COPS says (default: the timeline's operator)")
    parser.add_argument(
        "--epoch-ns", type=int, metavar="NS", help="CLOCK_MONOTONIC at the timeline's start, ns (default: now)"
    )
    parser.add_argument("--control", type=Path, metavar="SOCK", help="Unix socket on which it takes faults")
    parser.add_argument("--faults", type=Path, metavar="FILE", help="faults to play by themselves, JSON lines")
    parser.add_argument("--json-log", type=Path, metavar="FILE", help="append a line of truth for each fault played")
    parser.add_argument("--imei", type=_imei, help="15 digits (default: made up from operator and seed)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of delays, noise and identities (default 1)")
    parser.add_argument(
        "--echo", action=argparse.BooleanOptionalAction, default=True, help="echo commands until ATE0 (default)"
    )
    parser.add_argument(
        "--port-mode", type=_mode, default=0o660, metavar="OCTAL", help="permissions of the terminal (default 660)"
    )
    parser.set_defaults(func=modem)


def modem(args: argparse.Namespace) -> int:
    """Run until told to end; exit status as ``ExitCode``."""
    timeline = read(args.timeline)
    schedule = read_schedule(args.faults) if args.faults else []
    operator = args.operator_name or timeline.operator
    setup = Setup(
        family=FAMILIES[args.family],
        timeline=timeline,
        operator=operator,
        epoch_ns=time.monotonic_ns() if args.epoch_ns is None else args.epoch_ns,
        link=args.link or Path(),
        socket=args.socket,
        imei=args.imei or made_up_imei(operator, args.seed),
        seed=args.seed,
        echo=args.echo,
        control=args.control,
        json_log=args.json_log,
        port_mode=args.port_mode,
        schedule=schedule,
    )
    ended_by = run(setup, lambda: print(f"ready {args.socket or args.link}", flush=True))
    return ExitCode.INTERRUPTED if ended_by == signal.SIGINT else ExitCode.OK


def _imei(text: str) -> str:
    if not (text.isascii() and text.isdigit() and len(text) == 15):
        raise argparse.ArgumentTypeError(f"{text!r} is not 15 digits")
    if luhn(text[:14]) != text[14]:
        raise argparse.ArgumentTypeError(f"{text} does not check: its last digit should be {luhn(text[:14])}")
    return text


def _mode(text: str) -> int:
    try:
        return int(text, 8) & 0o777
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no octal number such as 660") from None
