"""``tandem-server congestion load|unload|status``: LIA, OLIA and BALIA in this kernel."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from tandem.mptcp_abi import COUPLED
from tandem.notify import Notify
from tandem_server import congestion
from tandem_server.cli.command import Actions, add_command


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = add_command(
        commands,
        "congestion",
        lambda _: parser.error("load, unload or status?"),
        "load LIA, OLIA and BALIA into the kernel, or remove them",
        "Coupled congestion control for Multipath TCP, by BPF (server/congestion). Exit status 3 where this machine cannot.",
        config=False,
    )
    actions = parser.add_subparsers(metavar="COMMAND")
    load = add_command(
        actions, "load", _load, "register the controllers; needs root", congestion.load.__doc__, config=False
    )
    load.add_argument(
        "--hold", action="store_true", help="stay, and remove them at the end, also when this command is killed"
    )
    unload = add_command(
        actions,
        "unload",
        _unload,
        "remove them; needs root",
        "Running connections keep theirs to their end.",
        config=False,
    )
    unload.add_argument("--when-stdin-ends", action="store_true", help=argparse.SUPPRESS)
    status = add_command(
        actions,
        "status",
        _status,
        "which are loaded, of which object",
        "Exit status 0 when all are loaded, 1 when not.",
        json="as JSON",
        config=False,
    )
    for one in (load, status):
        one.add_argument(
            "--object", type=Path, default=congestion.object_file(), metavar="FILE", help="default: %(default)s"
        )


def _load(args: Namespace) -> int:
    if args.hold:
        return _hold(args.object)
    print(_loaded(congestion.load(args.object)), flush=True)
    return 0


def _unload(args: Namespace) -> int:
    if args.when_stdin_ends:
        sys.stdin.buffer.read()
    print(f"removed: {', '.join(congestion.unload()) or 'none was loaded'}", flush=True)
    return 0


def _status(args: Namespace) -> int:
    found = congestion.status(args.object)
    if args.json:
        print(json.dumps(asdict(found)))
    else:
        print(f"loaded: {', '.join(found.loaded) or 'none'}")
        if found.object_sha256 is not None:
            print(f"object: {found.object_sha256}")
        if found.refusal is not None and not found.loaded:
            print(f"cannot be loaded: {found.refusal}")
    return 0 if set(found.loaded) == set(COUPLED) else 1


def _loaded(digest: str) -> str:
    return f"loaded: {', '.join(COUPLED)} (object {digest[:12]})"


def _hold(file: Path) -> int:
    """Until SIGTERM or Ctrl-C. A guard removes them when this process ends, however it ends: the guard waits for the end of its standard
    input. It keeps the blocked signals, since who stops a service or a terminal's programs signals both."""
    systemd = Notify.of_environment()
    congestion.check(file)  # before there is a guard: what others loaded is not for it to remove
    awaited = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    command = [sys.executable, "-m", "tandem_server", "congestion", "unload", "--when-stdin-ends"]
    guard = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        print(_loaded(congestion.load(file)), flush=True)
        systemd.ready()
        # SIGCHLD: bpftool's end, or the guard's, without which nothing is held.
        while guard.poll() is None and signal.sigwait(awaited) == signal.SIGCHLD:
            pass
        if guard.poll() is not None:
            congestion.unload()
            raise congestion.CongestionError("the guard ended; hint: start again")
        return 0
    finally:
        systemd.stopping()
        guard.communicate()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
