"""``tandem-server probe invite|peers|known-hosts``: codes by which probes enrol, and the public keys that they told
(docs/reference/probe-api.md)."""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path

from tandem_server.cli.config_file import add_config
from tandem_server.cli.configuration import ServerConfig, load
from tandem_server.cli.secret_place import SecretPlace
from tandem_server.cli.stop import ConfigError, EnvironmentLacks, with_plain_ends
from tandem_server.cli.stores import open_registry
from tandem_server.ingest.enrolment import Tunnel
from tandem_server.registry import NetworkFullError, Registry
from tandem_server.registry.peers import known_hosts, peers, write_peers

_HOURS, _MOST_HOURS = 168.0, 720.0


def add_actions(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the three, beside the others of ``probe``."""
    sub = actions.add_parser(
        "invite",
        help="a code with which the probe itself asks for its token; prints it, once",
        description="Print a code, once, with which a probe asks for its token and a place in the tunnel when it first runs. A code"
        " of before is void. Nothing changes for a registered probe until the code is used; then its token and key of before are void.",
    )
    add_config(sub)
    sub.add_argument(
        "name", metavar="NAME", help="lower-case letters, digits and inner hyphens; need not be registered"
    )
    sub.add_argument(
        "--hours",
        type=_hours,
        default=_HOURS,
        metavar="H",
        help=f"good for so long, at most {_MOST_HOURS:g} (default {_HOURS:g})",
    )
    place = sub.add_mutually_exclusive_group()
    place.add_argument(
        "--code-file", type=Path, metavar="PATH", help="write the code there (mode 0600), do not print it"
    )
    place.add_argument("--json", action="store_true", help="as JSON: probe, code, expires, address")
    sub.set_defaults(func=_invite)
    for action, func, text in (
        ("peers", _peers, "the hub's [Peer] sections, of the probes that enrolled"),
        ("known-hosts", _known_hosts, "SSH's known_hosts lines, of the probes that enrolled"),
    ):
        sub = actions.add_parser(action, help=text, description=text[0].upper() + text[1:] + ".")
        add_config(sub)
        sub.set_defaults(func=func)


def tunnel_of(config: ServerConfig) -> Tunnel | None:
    """What probes are told of the hub; None without one."""
    section, network = config.wireguard, config.wireguard.addresses
    if network is None or section.endpoint is None:
        return None
    return Tunnel(network, section.public_key_file, section.endpoint)


def keep_peers(config: ServerConfig, registry: Registry) -> None:
    """Write the hub's peers beside the registry, where there is a tunnel. OSError, sqlite3.Error."""
    if config.wireguard.network is not None:
        write_peers(config.registry.file.parent, registry.enrolments)


@with_plain_ends
def _invite(args: Namespace) -> int:
    config = load(args.config)
    with open_registry(config) as registry, SecretPlace(args.code_file) as place:
        try:
            made = registry.enrolments.invite(args.name, args.hours * 3600, config.wireguard.addresses)
        except NetworkFullError as error:
            raise EnvironmentLacks(f"{error}; hint: a larger [wireguard] network") from error
        except ValueError as error:
            raise ConfigError(str(error)) from error
        expires = datetime.fromtimestamp(made.expires_utc_ns / 1e9, UTC).isoformat(timespec="seconds")
        if made.known:
            print(
                f"{made.probe} is registered: when this code is used, its token and its key of now are void",
                file=sys.stderr,
            )
        if args.json:
            print(json.dumps({"probe": made.probe, "code": made.code, "expires": expires, "address": made.address}))
            return 0
        where = "" if made.address is None else f"; address in the tunnel: {made.address}"
        print(f"{made.probe}: good once, until {expires}{where}", file=sys.stderr)
        place.deliver(made.code)
    return 0


@with_plain_ends
def _peers(args: Namespace) -> int:
    config = load(args.config)
    with open_registry(config) as registry:
        try:
            keep_peers(config, registry)
        except (OSError, sqlite3.Error) as error:
            raise EnvironmentLacks(f"{error}; hint: run this as the registry's user") from error
        sys.stdout.write(peers(registry.enrolments.all()))
    return 0


@with_plain_ends
def _known_hosts(args: Namespace) -> int:
    with open_registry(load(args.config)) as registry:
        sys.stdout.write(known_hosts(registry.enrolments.all()))
    return 0


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = 0.0
    if not 0 < hours <= _MOST_HOURS:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most {_MOST_HOURS:g} hours")
    return hours
