"""One measurement process of the endpoint, started by it: ``python -m tandem_server.cli.measurement_process CONFIG DESCRIPTOR``."""

from __future__ import annotations

import socket
import sys
import threading
from pathlib import Path

from tandem_server.cli.configuration import load
from tandem_server.cli.listeners import enough_descriptors
from tandem_server.cli.log import log_to_stderr
from tandem_server.cli.stores import DATABASE_WAIT_S, open_store
from tandem_server.content.library import Library
from tandem_server.content.page import PageStore
from tandem_server.endpoint.http1 import tls_context
from tandem_server.endpoint.measurement import Measurement
from tandem_server.endpoint.pool import SessionBroker, serve_channel
from tandem_server.endpoint.recorder import Recorder
from tandem_server.endpoint.sockets import boot_id
from tandem_server.http.certificate import Certificate


def main() -> None:
    """Serve what comes over the channel until it is closed."""
    config = load(Path(sys.argv[1]))
    log_to_stderr()
    enough_descriptors(4 * config.limits.connections)  # with a session and without, each with its wire
    store = open_store(config, DATABASE_WAIT_S)
    recorder, boot = Recorder(lambda: store), boot_id()
    content, pages = Library(config.content.folder), PageStore(config.content.folder)
    certificate = (
        Certificate(config.tls.certificate, config.tls.key, tls_context) if config.listen.measurement_tls_port else None
    )

    def serve(
        broker: SessionBroker, connection: socket.socket, address: str, port: int, stopped: threading.Event, tls: bool
    ) -> None:
        if tls and certificate is not None:
            certificate.refresh(only_if_changed=True)
        context = None if certificate is None else certificate.context
        measurement = Measurement(broker, config.limits, recorder, boot, content, context, pages)
        (measurement.serve_tls if tls else measurement.serve)(connection, address, port, stopped)

    with socket.socket(fileno=int(sys.argv[2])) as channel:
        try:
            serve_channel(channel, serve)
        finally:
            recorder.close()


if __name__ == "__main__":
    main()
