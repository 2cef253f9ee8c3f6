"""Open a connection to the measurement listener: with TLS where its URL says https, the same for every experiment."""

from __future__ import annotations

import functools
import ssl
from dataclasses import replace

from tandem.experiment import base
from tandem.experiment.asked import Asked, ProbePath
from tandem.mptcp import kernels, sockets
from tandem.stream import TlsStream
from tandem.stream.tls import strict


def connect(
    asked: Asked,
    kind: sockets.Kind,
    path: ProbePath,
    timeout_s: float,
    options: sockets.Options = sockets.DEFAULT_OPTIONS,
) -> sockets.Connected:
    """Resolve, connect over ``path`` within ``timeout_s``, and within as long again shake hands by TLS. OSError as connect(2) and the TLS
    library raise it (ssl.SSLCertVerificationError: another server than ``ca_file`` knows); see ``sockets.connect``.
    UnsupportedError also where the two ends speak different versions of Multipath TCP."""
    server = asked.measurement
    if kind == "mptcp":
        same_version()
    address = sockets.resolve(server.host, server.port, path.interface)
    connected = sockets.connect(kind, address, path.source, timeout_s, options)
    if server.scheme != "https":
        return connected
    try:
        stream = TlsStream(connected.socket, _context(asked.ca_file), server_hostname=server.host)
        return replace(connected, tls=stream, tls_ms=stream.handshake(timeout_s))
    except BaseException:
        connected.socket.close()
        raise


def same_version() -> None:
    """UnsupportedError when the server said that it speaks another version of Multipath TCP: every connection would fall back, and the
    figures would be plain TCP's."""
    kernel, there = kernels.here(), base.server_environment.get("mptcp_protocol")
    if there is not None and there != str(kernel.protocol):
        raise sockets.UnsupportedError(
            f"the server speaks version {there} of Multipath TCP, this probe version {kernel.protocol} ({kernel.name} kernel); hint: the "
            "same kind of kernel for both (role mptcp), or TCP"
        )


@functools.cache
def _context(ca_file: str | None) -> ssl.SSLContext:
    """TLS 1.3 alone is spoken at the other end. An older one is offered too: the hello is longer by that, and the other end wants no
    short ones."""
    return strict(ssl.create_default_context(cafile=ca_file))
