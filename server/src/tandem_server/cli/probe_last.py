"""``tandem-server probe last``: what a silent probe said last, and what of it may be why."""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from argparse import Namespace

from tandem_server.cli.config_file import add_config
from tandem_server.cli.configuration import load
from tandem_server.cli.stop import ConfigError, EnvironmentLacks, with_plain_ends
from tandem_server.cli.stores import open_reader, open_registry_to_read
from tandem_server.ledger.last_words import last_words, text
from tandem_server.report.words import visible
from tandem_server.store import QueryError, StoreDown


def add_action(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register it, beside the others of ``probe``."""
    sub = actions.add_parser(
        "last",
        help="what a silent probe said last, and what of it may be why",
        description="Print when a probe's last record was made, what it said in the hour before of its supply, modems, SIMs, disk and "
        "clock, its last events, and what of that may be why it is silent. Only records that arrived are known here: what it made "
        "since lies on its card. Exit status: 0, or 1 when it never sent a record.",
    )
    add_config(sub)
    sub.add_argument("name", metavar="NAME", help="as probe list has it")
    sub.add_argument("--json", action="store_true", help="as JSON")
    sub.set_defaults(func=_last)


@with_plain_ends
def _last(args: Namespace) -> int:
    config = load(args.config)
    with open_registry_to_read(config) as registry:
        if args.name not in [probe.name for probe in registry.probes.all()]:
            raise ConfigError(f"no probe {args.name!r}; hint: tandem-server probe list")
    reader = open_reader(config)
    if reader is None:
        raise EnvironmentLacks("this database does not speak InfluxQL; hint: the board Probe live shows the same")
    with contextlib.closing(reader) as store:
        try:
            said = last_words(store, args.name)
        except (StoreDown, QueryError) as error:
            raise EnvironmentLacks(f"{error}; hint: systemctl status tandem-database") from error
    if args.json:
        print(json.dumps(None if said is None else said.as_json(), indent=1))
    elif said is None:
        print(f"{args.name}: it never sent a record that is kept")
    else:
        print("\n".join(map(visible, text(args.name, said, time.time_ns()))))
    return 1 if said is None else 0
