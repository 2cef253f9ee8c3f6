"""``tandem-server probe erase``: all that the server has of one probe, in one step; its name stays, revoked."""

from __future__ import annotations

import argparse
import contextlib
import json
import sqlite3
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tandem_server.cli.command import Actions, add_command, hinted
from tandem_server.cli.configuration import ServerConfig, load
from tandem_server.cli.stores import keep_peers, open_registry, open_store, trace_store
from tandem_server.store import QueryError, StoreDown
from tandem_server.uploads.store import Held, TraceFolder, TraceStoreDown, erase, held

ELSEWHERE = (
    "backups, until they are gone: erase again after each restore",
    "campaign folders and reports that were made of it, copies on people's machines",
    "area and area_day, which add up all probes and name none",
)
_AGAIN = "what was erased until now is gone; do it once more"


def add(actions: Actions[argparse.ArgumentParser]) -> None:
    """Register it, beside the others of ``probe``."""
    sub = add_command(
        actions,
        "erase",
        _erase,
        "erase all that the server has of a revoked probe",
        "Erase all that this server has of one probe: its series in the database with their roll-ups, its traces (in S3 "
        "every version), its captures and results at the endpoint, its runs, ledger, campaigns and places in the registry. The name "
        "stays, revoked, so that nobody gets it again. Without --yes nothing is erased, and what would be is shown. It may run "
        "beside the server, and again after it was broken off.",
        epilog="Exit status: 0 nothing of it is left (or, without --yes, it was shown), 1 something is left and is named, 2 no such probe "
        "or not revoked, 3 a database, a folder or a bucket is out of reach. --json: probe, erased (whether --yes was given), found and "
        "left, each with registry (rows by table), measurements (how many), traces, captures and results (files, bytes); elsewhere.",
        json="as JSON",
    )
    sub.add_argument("name", metavar="NAME", help="as probe list has it")
    sub.add_argument("--yes", action="store_true", help="erase it: there is no way back")


@dataclass(frozen=True, slots=True)
class Found:
    """What there is of a probe. ``registry``: rows by table."""

    registry: dict[str, int]
    measurements: int
    traces: Held
    captures: Held
    results: Held

    @property
    def any(self) -> bool:
        """Whether there is anything."""
        files = self.traces.files + self.captures.files + self.results.files
        return bool(self.registry or self.measurements or files)

    def lines(self) -> Iterator[str]:
        """For people."""
        rows = sum(self.registry.values())
        yield f"  registry      {rows} rows" + (f" ({', '.join(self.registry)})" if rows else "")
        yield f"  database      {self.measurements} measurements"
        for name in ("traces", "captures", "results"):
            files: Held = getattr(self, name)
            yield f"  {name:<13} {files.files} files, {files.bytes} B"


def _erase(args: Namespace) -> int:
    config = load(args.config)
    with open_registry(config) as registry, contextlib.closing(open_store(config)) as store:
        traces = [trace_store(config)]
        if config.traces.s3 is not None:  # from before the bucket was named
            traces.append(TraceFolder(config.traces.folder))

        def found() -> Found:
            kept = [one.held(args.name) for one in traces]
            return Found(
                registry.erasure.count(args.name),
                store.measurements_of(args.name),
                Held(sum(one.files for one in kept), sum(one.bytes for one in kept)),
                *(held(folder / args.name) for folder in _folders(config)),
            )

        database, bucket = "systemctl status tandem-database", "let this user delete there"
        with hinted(f"{database}; {_AGAIN}", StoreDown, QueryError), hinted(f"{bucket}; {_AGAIN}", TraceStoreDown):
            there = found()
            if args.yes:
                # Files before the registry's rows that name them: what is broken off is found and ended by the next time.
                for one in traces:
                    one.erase(args.name)
                for folder in _folders(config):
                    erase(folder / args.name)
                registry.erasure.erase(args.name)
                store.erase(args.name)
                with hinted(
                    "its rows are deleted, their bytes are not: make room for a copy; do it once more", sqlite3.Error
                ):
                    registry.scrub()
                keep_peers(config, registry)
            left = found() if args.yes else there
    _print(args, there, left)
    return 1 if args.yes and left.any else 0


def _folders(config: ServerConfig) -> tuple[Path, Path]:
    return config.capture.folder, config.results.folder


def _print(args: Namespace, there: Found, left: Found) -> None:
    if args.json:
        both = {"found": asdict(there), "left": asdict(left), "elsewhere": list(ELSEWHERE)}
        print(json.dumps({"probe": args.name, "erased": args.yes, **both}, indent=1))
        return
    print(f"{args.name}: {'erased' if args.yes else 'this would be erased'}:")
    for line in there.lines():
        print(line)
    if args.yes and left.any:
        print(f"tandem-server: {args.name}: this is left:\n" + "\n".join(left.lines()), file=sys.stderr)
    print("elsewhere, and not touched:" if args.yes else "elsewhere, and not touched by it:")
    for line in ELSEWHERE:
        print(f"  {line}")
    if not args.yes:
        print("there is no way back; do it: the same command with --yes")
