"""A stored page's origins in the clear on loopback, without an endpoint: straight, and as the endpoint gives them to the relay.

``python page_origins.py FOLDER`` prints its port; ends when stdin closes.
"""

from __future__ import annotations

import socket
import sys
import threading
from pathlib import Path

from tandem_server.content.page.shelf import Shelf
from tandem_server.endpoint.byte_stream import ByteStream, Ended
from tandem_server.endpoint.replay import Replay


class Free:
    """A budget without a bound."""

    def take(self, wanted_bytes: int) -> int:
        return wanted_bytes

    def give_back(self, unused_bytes: int) -> None:
        pass


def serve(connection: socket.socket, shelf: Shelf) -> None:
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened = shelf.open("page")
        assert opened is not None
        stream, replay = (
            ByteStream(connection, b"", lambda: None, lambda: False, 30.0),
            Replay(opened, Free(), lambda _: None),
        )
        try:
            head = stream.peek(60.0)
            if not head.startswith(b"GET /v1/page/"):
                replay._answer_all(stream)
                return
            # from the relay: its head, and then the same
            stream.begun = b""
            while b"\r\n\r\n" not in head:
                head += stream.read(10.0)
            stream.begun = head.partition(b"\r\n\r\n")[2]
            replay.serve(stream, lambda _: stream)
        except (Ended, TimeoutError):
            pass  # a browser that was killed


def main() -> None:
    shelf = Shelf(Path(sys.argv[1]))
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection, shelf), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
