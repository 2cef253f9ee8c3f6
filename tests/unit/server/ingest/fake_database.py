"""A database that takes lines once it is let, unless it is away; one that begins with ``bad`` is refused by name."""

import threading

from tandem_server.store import LinesRefused, Rejected, StoreDown


class FakeDatabase:
    url = ""

    def __init__(self):
        self.lines, self.calls, self.away = [], [], False
        self.begun, self.let = threading.Event(), threading.Event()
        self.let.set()

    def ping(self):
        return "1.6.7"

    def write(self, lines, **_):
        self.begun.set()
        self.let.wait()
        self.calls.append(list(lines))
        if self.away:
            raise StoreDown("away")
        if "odd" in lines:
            raise LinesRefused("says not which")
        self.lines += [line for line in lines if not line.startswith("bad")]
        return [Rejected(i, f"why {line}") for i, line in enumerate(lines) if line.startswith("bad")]
