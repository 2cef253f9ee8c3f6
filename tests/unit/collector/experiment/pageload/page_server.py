"""An endpoint for the probe's side of a page load: takes ``GET /v1/page/…``, then says what a script says."""

import contextlib
import socket
import threading

from tandem.experiment.control import Session
from tandem.experiment.pageload import EXPERIMENT
from tandem.experiment.pageload import read as read_request
from tandem.experiment.pageload.page import read as read_page
from tandem.experiment.parameters import check

SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: tandem-page\r\n\r\n"


class PageServer:
    """``script(connection, requests)`` is called for each connection after its head; ``requests()`` gives the next request's lines.
    ``heads``: those of the connections. ``switch``: what it answers to them."""

    def __init__(self, script, switch=SWITCHED):
        self.script, self.switch = script, switch
        self.heads = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):  # unbuffered: what follows the head is the script's
        with connection, connection.makefile("rb", buffering=0) as lines, contextlib.suppress(OSError):

            def request():
                found = []
                while (line := lines.readline()) not in (b"\r\n", b""):
                    found.append(line.decode().rstrip())
                return found

            self.heads.append(request())
            connection.sendall(self.switch)
            self.script(connection, request)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)  # closing alone leaves it listening while a thread waits in accept()
        self.listener.close()


def page(*objects, url="http://a.test/"):
    """As the control channel tells it; ``objects``: URL, by[, after_load]."""
    rows = [
        {"method": "GET", "url": u, "status": 200, "bytes": 10, "by": by, "after_load": bool(late)}
        for u, by, *late in objects
    ]
    return read_page("p", {"url": url, "objects": rows, "tls": None})


def request(port, tmp_path, **more):
    """Checked parameters of a load over loopback."""
    (tmp_path / "token").write_text("secret")
    given = {
        "run": "run-1",
        "kind": "tcp",
        "path": "a",
        "paths": [{"name": "a", "interface": "lo"}],
        "server": {
            "control": "http://127.0.0.1:9",
            "measurement": f"http://127.0.0.1:{port}",
            "token_file": str(tmp_path / "token"),
        },
        **more,
    }
    return read_request(check(EXPERIMENT.parameters, given))


SESSION = Session("s" * 8, bytes(32), "a")
