"""Of every listener of the server: its socket, its certificate while it serves, and the bounds that ``[limits]`` sets it."""

from __future__ import annotations

import errno
import logging
import resource
import socket
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from tandem_server.cli.command import EnvironmentLacks
from tandem_server.cli.configuration import Bounds
from tandem_server.door import DoorBounds, ProbeRates, RateShare
from tandem_server.endpoint.listener import family_of
from tandem_server.endpoint.sessions import Share

_LOG = logging.getLogger("tandem.serve")
_TLS_LOG = logging.getLogger("tandem.tls")
_SOON_DAYS = 21
_FURTHER = 128
"""File descriptors besides connections: the registry's files, pipes, the database's connections."""


def bind(host: str, port: int, shared: bool = False) -> socket.socket:
    """A bound TCP socket, ``shared`` with others of this account that say so; EnvironmentLacks when the port is in use or may not
    be had."""
    host, family = family_of(host, multipath=False)
    # The protocol must be named: asyncio turns Nagle's algorithm off only for sockets that say that they are TCP, and with
    # it every answer would wait 40 ms for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        hint = "end what listens there, or set another port" if error.errno == errno.EADDRINUSE else "correct [listen]"
        raise EnvironmentLacks(f"{host}:{port}: {error.strerror}; hint: {hint}") from error
    return listener


def announce(what: str, listener: socket.socket) -> None:
    """The line on stdout that says that ``what`` accepts work."""
    host, port = listener.getsockname()[:2]
    print(f"ready {what} {host}:{port}", flush=True)


def door_bounds(bounds: Bounds) -> DoorBounds:
    """Of the HTTPS listeners."""
    return DoorBounds(
        strangers=bounds.https_strangers,
        strangers_per_address=bounds.https_strangers_per_address,
        known=bounds.https_connections,
        known_per_probe=bounds.https_connections_per_probe,
        new_per_minute=bounds.new_connections_per_address,
        failures_per_minute=bounds.failures_per_address,
        head_s=bounds.head_s,
        body_s=bounds.body_s,
    )


def measurement_bounds(bounds: Bounds) -> DoorBounds:
    """Of the measurement listeners. New ones are not counted: all kits of an operator may come from one address."""
    return DoorBounds(
        strangers=bounds.connections,
        strangers_per_address=bounds.connections_per_address,
        known=bounds.connections,
        known_per_probe=bounds.connections_per_probe,
        new_per_minute=10**6,
    )


def probe_rates(bounds: Bounds, shares: Mapping[str, Share]) -> ProbeRates:
    """Everybody's, and those of the probes that have their own."""
    everybody = RateShare(
        bounds.probe_requests_per_minute, bounds.probe_lines_per_minute, bounds.probe_sent_bytes_per_minute
    )
    own = {
        name: RateShare(share.requests_per_minute, share.lines_per_minute, share.sent_bytes_per_minute)
        for name, share in shares.items()
    }
    return ProbeRates(everybody, own)


def enough_descriptors(connections: int) -> None:
    """Raise this process's limit of file descriptors as far as needed and allowed; log when that is too little."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + _FURTHER
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    now = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (now, hard))
    except (OSError, ValueError):  # a service's filter forbids it: what the unit gave holds
        now = soft
    if now < needed:
        _LOG.warning(
            "%d file descriptors allowed, %d connections configured; hint: LimitNOFILE=%d, or lower [limits] https_connections",
            now, connections, needed,
        )  # fmt: skip


def https_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """For gateway and control channel: TLS 1.2 and 1.3; OSError (ssl.SSLError is one) when the files are none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.load_cert_chain(certificate, key)
    return context


class Certificate:
    """``context`` is for listeners. EnvironmentLacks when the files are no certificate and key.

    Renewed files are taken over without a connection lost. A renewed pair is tried in a context of its own first: while one file is new
    and the other old, what was loaded stays.
    """

    def __init__(
        self, certificate: Path, key: Path, make: Callable[[Path, Path], ssl.SSLContext] = https_context
    ) -> None:
        self._files, self._make = (certificate, key), make
        self._seen = self._stamps()
        try:
            self.context = make(*self._files)
        except (OSError, ValueError) as error:
            raise EnvironmentLacks(f"{certificate}, {key}: {error}; hint: tandem-server tls") from error
        self._warn_of_end()

    def refresh(self, *, only_if_changed: bool = False) -> None:
        """Take the files over if they are a pair; else log it and keep what there is."""
        stamps = self._stamps()
        if only_if_changed and stamps == self._seen:
            return
        self._seen = stamps
        try:
            self._make(*self._files)
            self.context.load_cert_chain(*self._files)
        except (OSError, ValueError) as error:
            _TLS_LOG.warning("%s, %s: %s; the certificate of before stays in use", *self._files, error)
            return
        _TLS_LOG.info("certificate taken over: %s", self._files[0])
        self._warn_of_end()

    def _stamps(self) -> list[tuple[int, int, int] | None]:
        found: list[tuple[int, int, int] | None] = []
        for file in self._files:
            try:
                status = file.stat()
                found.append((status.st_mtime_ns, status.st_ino, status.st_size))
            except OSError:
                found.append(None)
        return found

    def _warn_of_end(self) -> None:
        try:
            end = x509.load_pem_x509_certificate(self._files[0].read_bytes()).not_valid_after_utc
        except (OSError, ValueError):
            return  # what OpenSSL loaded and this cannot read is no reason not to serve
        if (end - datetime.now(UTC)).days < _SOON_DAYS:
            _TLS_LOG.warning("%s ends on %s; hint: tandem-server tls --renew", self._files[0], end.date())
