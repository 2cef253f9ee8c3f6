"""moto's S3 on loopback, and in front of it a relay that answers badly when it is told to."""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Faulty:
    """A relay to ``upstream``'s port. ``faults``: (method, part of the address) → what happens, so often: ``503``, ``cut``, ``hang``,
    or ``lost`` (carried out, but the answer is lost)."""

    def __init__(self, upstream):
        self.faults, self.seen = {}, []
        relay = self
        self.free = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_expect_100(self):
                self.send_response_only(100)
                self.end_headers()
                return True

            def carried(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                relay.seen.append((self.command, self.path))
                fault = relay.fault(self.command, self.path)
                if fault == "hang":
                    relay.free.wait(60)
                if fault in ("cut", "hang"):
                    self.close_connection = True
                    return
                if fault == "503":
                    self.answer(503, [], b"<Error><Code>SlowDown</Code><Message>slow down</Message></Error>")
                    return
                connection = http.client.HTTPConnection("127.0.0.1", upstream, timeout=60)
                connection.request(self.command, self.path, body, dict(self.headers))
                answer = connection.getresponse()
                told = answer.read()
                connection.close()
                if fault == "lost":
                    self.close_connection = True
                    return
                self.answer(answer.status, answer.getheaders(), told)

            def answer(self, status, headers, body):
                self.send_response_only(status)
                for name, value in headers:
                    if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                        self.send_header(name, value)
                told = {n.lower(): v for n, v in headers}.get("content-length", "0")
                self.send_header("Content-Length", told if self.command == "HEAD" else str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = carried  # noqa: N815

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def fault(self, method, path):
        for (of_method, part), faults in self.faults.items():
            if method == of_method and part in path and faults:
                return faults.pop(0)
        return None

    def count(self, method, part):
        return sum(one == method and part in path for one, path in self.seen)

    def stop(self):
        self.free.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
