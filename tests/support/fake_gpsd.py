"""A gpsd on the loopback that says what it is told to say to whoever watches."""

import json
import socket
import threading
import time
from datetime import UTC, datetime
from typing import Any

from support.waiting import until


def iso(time_ns: int) -> str:
    whole, part = divmod(time_ns, 10**9)
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}.{part // 10**6:03d}Z"


class FakeGpsd:
    """``requests``: what the watchers asked for."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.requests: list[bytes] = []
        self._clients: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            client.sendall(b'{"class":"VERSION","release":"3.22","rev":"3.22","proto_major":3,"proto_minor":14}\r\n')
            self.requests.append(client.recv(4096))
            self._clients.append(client)

    def say(self, raw: bytes) -> None:
        until(lambda: self._clients)
        self._clients[-1].sendall(raw)

    def fix(self, age_s: float = 0.1, **more: Any) -> None:
        """A report of a fix that is so old; ``more``: further or other keys."""
        where = {"class": "TPV", "device": "d", "mode": 3, "lat": 51.9, "lon": -8.5}
        told = {**where, "time": iso(time.time_ns() - int(age_s * 1e9)), **more}
        self.say(json.dumps(told).encode() + b"\r\n")

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(60)
        for client in self._clients:
            client.close()
