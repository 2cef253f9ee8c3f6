"""A gateway process with TLS that takes traces; no database behind it. A client that can break off at any byte."""

import contextlib
import http.client
import io
import json
import socket
import ssl
import subprocess
import sys

from tandem.schema.trace import encoded, offer_of
from tandem_server.cli.main import main


def offered(content, name="captures/run-1-a.pcap", encoding="gzip", chunk=65536):
    """The offer of ``content`` and its stream."""
    stream = b"".join(encoded(content[at : at + chunk], encoding) for at in range(0, len(content), chunk))
    return offer_of(io.BytesIO(content), name, "run-1", encoding, chunk), stream


def command(*words):
    """A command in this process: status, stdout, stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(word) for word in words])
    return status, out.getvalue(), err.getvalue()


class TraceGateway:
    """``folder``: the server's. ``traces``: lines of [traces]."""

    def __init__(self, folder, traces="reserve_bytes = 0"):
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        (folder / "password").write_text("none\n")
        self.config = folder / "server.toml"
        self.config.write_text(
            f'[listen]\nhost = "127.0.0.1"\ngateway_port = {self.port}\n'
            '[store]\nkind = "running"\nurl = "http://127.0.0.1:1"\nuser = "nobody"\npassword_file = "password"\n'
            f"[traces]\n{traces}\n"
        )
        assert (
            command("tls", "--folder", folder / "tls", "--name", "server.tandem.test", "--address", "127.0.0.1")[0] == 0
        )
        self.tokens = {probe: self._token(probe) for probe in ("probe-1", "probe-2")}
        self.context = ssl.create_default_context(cafile=folder / "tls/ca.pem")
        self.process = None

    def _token(self, probe):
        status, token, _ = command("probe", "add", probe, "--config", self.config)
        assert status == 0
        return token.strip()

    def start(self):
        words = [sys.executable, "-m", "tandem_server", "serve", "gateway", "--config", str(self.config)]
        with (self.folder / "serve.log").open("ab") as log:
            self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log)
        line = self.process.stdout.readline()
        assert line.startswith(b"ready gateway"), (self.folder / "serve.log").read_text()

    def kill(self):
        self.process.kill()
        self.process.wait(30)
        self.process.stdout.close()

    def end(self):
        self.process.terminate()
        assert self.process.wait(30) == 0
        self.process.stdout.close()

    def log(self):
        return (self.folder / "serve.log").read_text()

    def ask(self, method, path, body=None, headers=None, probe="probe-1", token=None):
        """Status, headers, what was told: decoded JSON, else bytes."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=60)
        login = {"Authorization": f"Bearer {token or self.tokens[probe]}"}
        try:
            connection.request(method, path, body, {**login, **(headers or {})})
            answer = connection.getresponse()
            body = answer.read()
            told = json.loads(body) if answer.getheader("content-type") == "application/json" else body
            return answer.status, dict(answer.getheaders()), told
        finally:
            connection.close()

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
