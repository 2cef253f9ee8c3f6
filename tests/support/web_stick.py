"""A small web server on loopback that behaves as the sticks do, well and badly."""

import contextlib
import socket
import threading
from collections.abc import Callable

SIGNAL = (
    '<?xml version="1.0" encoding="UTF-8"?>\r\n<response>\r\n<pci>211</pci>\r\n<rsrp>-95dBm</rsrp>\r\n<rsrq>-10dB</rsrq>\r\n'
    "<sinr>9dB</sinr>\r\n</response>"
)
REFUSED = '<?xml version="1.0" encoding="UTF-8"?><error><code>{}</code><message></message></error>'


def page(body: str | bytes, head: str = "", status: str = "200 OK", length: int | None = None) -> bytes:
    """A whole answer."""
    raw = body.encode() if isinstance(body, str) else body
    size = len(raw) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\n{head}\r\n".encode() + raw


class WebStick:
    """Serves one request a connection by ``answer(target, headers)``: bytes, or a callable that gets the connection."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.behave: Callable[[str, dict[str, str]], bytes | Callable[[socket.socket], None]] = self.hilink
        self.session = 0
        self.refuses_always = False
        self.refuse_code = 125002
        self.refused: dict[str, int] = {}
        """Pages that are answered with an error, by their path."""
        self.restarts: list[str] = []
        """Bodies of the requests to start anew, which ends ``refused``."""
        self.locked = False
        """A password is wanted for that."""
        self.stopping = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def close(self) -> None:
        self.stopping.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(60)
        for thread in self._threads:
            thread.join(60)

    def forget_sessions(self) -> None:
        """As a stick does after a while."""
        self.session += 1

    def hilink(self, target: str, headers: dict[str, str]) -> bytes:
        """Huawei's way: a cookie and a token, else 125002."""
        if target == "/api/webserver/SesTokInfo":
            self.session += 1
            return page(
                f"<response><SesInfo>SessionID=s{self.session}+/=</SesInfo><TokInfo>t{self.session}</TokInfo></response>"
            )
        good = (headers.get("cookie"), headers.get("__requestverificationtoken"))
        if self.refuses_always or good != (f"SessionID=s{self.session}+/=", f"t{self.session}"):
            return page(REFUSED.format(self.refuse_code))
        if target == "/api/device/control":
            if self.locked:
                return page(REFUSED.format(100003))
            self._restart(headers["body"])
            return page("<response>OK</response>")
        code = self.refused.get(target) or self.refused.get("*")
        return page(SIGNAL if code is None else REFUSED.format(code))

    def goform(self, target: str, headers: dict[str, str]) -> bytes:
        """ZTE's way: 200 with empty fields without a Referer of its own, or without the present session's cookie, if there is one."""
        if target == "/":
            return page("<html>", f"Set-Cookie: zsid=s{self.session}; path=/\r\n")
        known = headers.get("referer", "").startswith(self.url + "/")
        if self.session:
            known = known and headers.get("cookie") == f"zsid=s{self.session}"
        if target == "/goform/goform_set_cmd_process":
            if known and not self.locked:
                self._restart(headers["body"])
            return page('{"result":"success"}' if known and not self.locked else '{"result":"failure"}')
        return page('{"lte_rsrp":"-95","cell_id":"5A2C30B"}' if known else '{"lte_rsrp":"","cell_id":""}')

    def _restart(self, body: str) -> None:
        self.restarts.append(body)
        self.refused.clear()
        self.refuses_always = False

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        # The client may be gone already: that is what some tests are about.
        with connection, contextlib.suppress(OSError):
            connection.settimeout(60)
            request = b""
            while b"\r\n\r\n" not in request:
                chunk = connection.recv(4096)
                if not chunk:
                    return
                request += chunk
            head, _, body = request.decode("latin-1").partition("\r\n\r\n")
            first, *rest = head.split("\r\n")
            headers = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in rest}
            while len(body) < int(headers.get("content-length", 0)):
                body += connection.recv(4096).decode("latin-1")
            headers["body"] = body
            target = first.split(" ")[1]
            self.asked.append((target, headers))
            answer = self.behave(target, headers)
            if callable(answer):
                answer(connection)
            else:
                connection.sendall(answer)
