"""The server's certificate while it serves: renewed files are taken over, without a connection lost."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

_LOG = logging.getLogger("tandem.tls")
_SOON_DAYS = 21


class CertificateError(RuntimeError):
    """The files are no certificate and key; one line with a hint."""


def https_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """For gateway and control channel: TLS 1.2 and 1.3; OSError (ssl.SSLError is one) when the files are none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.load_cert_chain(certificate, key)
    return context


class Certificate:
    """``context`` is for listeners. CertificateError when the files are none.

    A renewed pair is tried in a context of its own first: while one file is new and the other old, what was loaded stays.
    """

    def __init__(
        self, certificate: Path, key: Path, make: Callable[[Path, Path], ssl.SSLContext] = https_context
    ) -> None:
        self._files, self._make = (certificate, key), make
        self._seen = self._stamps()
        try:
            self.context = make(*self._files)
        except (OSError, ValueError) as error:
            raise CertificateError(f"{certificate}, {key}: {error}; hint: tandem-server tls") from error
        self._warn_of_end()

    def refresh(self, *, only_if_changed: bool = False) -> None:
        """Take the files over if they are a pair; else say so and keep what there is."""
        stamps = self._stamps()
        if only_if_changed and stamps == self._seen:
            return
        self._seen = stamps
        try:
            self._make(*self._files)
            self.context.load_cert_chain(*self._files)
        except (OSError, ValueError) as error:
            _LOG.warning("%s, %s: %s; the certificate of before stays in use", *self._files, error)
            return
        _LOG.info("certificate taken over: %s", self._files[0])
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
        days = (end - datetime.now(UTC)).days
        if days < _SOON_DAYS:
            _LOG.warning("%s ends on %s; hint: tandem-server tls --renew", self._files[0], end.date())
