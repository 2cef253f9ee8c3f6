"""``tandem-server probe add|list|rotate|revoke``: who may send records and open sessions."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path

from tandem_server.cli.configuration import load
from tandem_server.cli.stop import ConfigError, EnvironmentLacks, with_plain_ends
from tandem_server.cli.stores import open_registry
from tandem_server.registry import Probe


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "probe", help="register probes and their tokens", description="Register probes and their tokens."
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action, text in (
        ("add", "register a probe; prints its token, once"),
        ("rotate", "give a probe a new token; the old one is void at once"),
        ("revoke", "void a probe's token; what it sent stays"),
        ("list", "list the probes"),
    ):
        sub = actions.add_parser(action, help=text, description=text[0].upper() + text[1:] + ".")
        sub.add_argument("--config", type=Path, required=True, metavar="FILE", help="server.toml")
        if action != "list":
            sub.add_argument("name", metavar="NAME", help="lower-case letters, digits and inner hyphens")
        if action in ("add", "rotate"):
            sub.add_argument(
                "--token-file", type=Path, metavar="PATH", help="write the token there (mode 0600), do not print it"
            )
        if action == "list":
            sub.add_argument("--json", action="store_true", help="as JSON")
        sub.set_defaults(func=_probe)


@with_plain_ends
def _probe(args: Namespace) -> int:
    with open_registry(load(args.config)) as registry:
        try:
            if args.action == "list":
                _list(args.json, [_row(probe) for probe in registry.probes.all()])
            elif args.action == "revoke":
                registry.probes.revoke(args.name)
            elif args.action == "add":
                with _TokenPlace(args.token_file) as place:
                    place.deliver(registry.probes.add(args.name))
            else:
                with _TokenPlace(args.token_file) as place:
                    place.deliver(registry.probes.rotate(args.name))
        except KeyError:
            raise ConfigError(f"no probe {args.name!r}; mend: tandem-server probe list") from None
        except ValueError as error:
            raise ConfigError(str(error)) from error
    return 0


class _TokenPlace:
    """Opened before the token is made, so that no token is made and then lost for want of a place."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._fresh = path, None if path is None else path.with_name(path.name + ".tmp")
        self._descriptor: int | None = None

    def __enter__(self) -> _TokenPlace:
        if self._fresh is not None:
            try:
                with contextlib.suppress(FileNotFoundError):
                    self._fresh.unlink()
                self._descriptor = os.open(self._fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except OSError as error:
                raise EnvironmentLacks(
                    f"{self._path}: {error.strerror}; mend: name a file that can be written"
                ) from error
        return self

    def deliver(self, token: str) -> None:
        """Print it, or put it in its file."""
        if self._path is None or self._fresh is None or self._descriptor is None:
            print(token)
            return
        os.write(self._descriptor, token.encode() + b"\n")
        os.fsync(self._descriptor)
        self._fresh.rename(self._path)

    def __exit__(self, kind: object, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        if kind is not None and self._fresh is not None:
            self._fresh.unlink(missing_ok=True)


def _row(probe: Probe) -> dict[str, str | None]:
    return {
        "name": probe.name,
        "created": _time(probe.created_utc_ns),
        "rotated": _time(probe.rotated_utc_ns),
        "revoked": _time(probe.revoked_utc_ns),
    }


def _time(utc_ns: int | None) -> str | None:
    return None if utc_ns is None else datetime.fromtimestamp(utc_ns / 1e9, UTC).isoformat(timespec="seconds")


def _list(as_json: bool, rows: list[dict[str, str | None]]) -> None:
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        state = f"revoked {row['revoked']}" if row["revoked"] else "active"
        print(f"{row['name']:<24} created {row['created']}  {state}")
