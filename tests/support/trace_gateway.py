"""A gateway process with TLS that takes traces; no database behind it. A client that can break off at any byte."""

import json
import socket
import ssl
from functools import partial

from support import upload_service_here
from support.serve_on_loopback import Server, await_ready, command, end, free_ports, start

offered = partial(upload_service_here.offered, chunk=65536)


class TraceGateway:
    """``folder``: the server's. ``traces``: lines of [traces]."""

    def __init__(self, folder, traces="reserve_bytes = 0"):
        self.folder, self.process = folder, None
        (self.port,) = free_ports(1)
        (folder / "password").write_text("none\n")
        config = folder / "server.toml"
        config.write_text(
            f'[listen]\nhost = "127.0.0.1"\ngateway_port = {self.port}\n'
            '[store]\nkind = "running"\nurl = "http://127.0.0.1:1"\nuser = "nobody"\npassword_file = "password"\n'
            f"[traces]\n{traces}\n"
        )
        made = command("tls", "--folder", folder / "tls", "--name", "server.tandem.test", "--address", "127.0.0.1")
        assert made == (0, "", "")
        self.tokens = {
            name: command("probe", "add", name, "--config", config)[1].strip() for name in ("probe-1", "probe-2")
        }
        self.context = ssl.create_default_context(cafile=folder / "tls/ca.pem")

    def start(self):
        self.process = start(self.folder, "gateway")
        await_ready(self.process, "gateway")

    def kill(self):
        self.process.kill()
        self.process.wait(30)
        self.process.stdout.close()

    def end(self):
        assert end(self.process) == 0

    def log(self):
        return (self.folder / "serve.log").read_text()

    def ask(self, method, path, body=None, headers=None, probe="probe-1", token=None):
        server = Server(self.folder, self.port, 0, 0, 0, self.process, token or self.tokens[probe])
        return server.gateway(method, path, body, headers)

    def offer(self, offer, probe="probe-1"):
        status, _, answer = self.ask("POST", "/v1/traces", json.dumps(offer.as_json()), probe=probe)
        return status, answer

    def send(self, offer, offset, body, probe="probe-1"):
        headers = {"Upload-Offset": str(offset), "Content-Type": "application/offset+octet-stream"}
        status, _, answer = self.ask("PATCH", f"/v1/traces/{offer.sha256}", body, headers, probe)
        return status, answer

    def state(self, offer, probe="probe-1"):
        status, _, answer = self.ask("GET", f"/v1/traces/{offer.sha256}", probe=probe)
        return status, answer

    def begin_sending(self, offer, offset, length, probe="probe-1"):
        """A request whose head says ``length`` bytes; the connection, onto which the caller puts as many as it likes."""
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        secured = self.context.wrap_socket(plain, server_hostname="127.0.0.1")
        secured.sendall(
            f"PATCH /v1/traces/{offer.sha256} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.tokens[probe]}\r\n"
            f"Upload-Offset: {offset}\r\nContent-Length: {length}\r\n\r\n".encode()
        )
        return secured

    def stream(self, offer, probe="probe-1"):
        return self.folder / "traces/.unfinished" / probe / f"{offer.sha256}.stream"
