"""A server under attack: what strangers do, in bytes, and a good probe that works meanwhile."""

import contextlib
import socket
import ssl
import threading
import time
from pathlib import Path

from support.serve_on_loopback import Server, command

HEAD_S, BODY_S = 4.0, 5.0
STRANGERS, PER_ADDRESS, FAILURES = 40, 20, 10
PATIENCE_S = 60.0
"""Of the tests' own sockets: nobody waits for ever for a server that does not end a connection."""

LIMITS = f"""[limits]
head_s = {HEAD_S}
body_s = {BODY_S}
https_strangers = {STRANGERS}
https_strangers_per_address = {PER_ADDRESS}
new_connections_per_address = 100_000
failures_per_address = {FAILURES}
"""
SHARES = """[probes.probe-lines]
lines_per_minute = 5
[probes.probe-requests]
requests_per_minute = 3
[probes.probe-bytes]
sent_bytes_per_minute = 300
"""


def limited(folder):
    """Small bounds, and probes with little shares of their own."""
    config = folder / "server.toml"
    text = config.read_text()
    assert "[limits]\n" in text
    config.write_text(text.replace("[limits]\n", LIMITS) + SHARES)


def line(seq, boot="b", **more):
    tags = "".join(f",{k}={v}" for k, v in more.items())
    return f"health,boot={boot}{tags} mobile=true,seq={seq}i,monotonic_ns={seq}i {time.time_ns()}"


class Attacked(Server):
    """``serve_on_loopback.Server``, and the ways in for strangers. ``source``: whose address they have."""

    def port(self, which):
        return {"gateway": self.gateway_port, "endpoint": self.control_port}[which]

    def probe(self, name):
        """A further probe's token."""
        status, token, told = command("probe", "add", name, "--config", self.folder / "server.toml")
        assert status == 0, told
        return token.strip()

    def plain(self, which="gateway", source="127.0.0.1"):
        connection = socket.create_connection(("127.0.0.1", self.port(which)), PATIENCE_S, source_address=(source, 0))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def tls(self, which="gateway", source="127.0.0.1", **versions):
        context = ssl.create_default_context(cafile=self.folder / "tls/ca.pem")
        for name, version in versions.items():
            if name == "ciphers":
                context.set_ciphers(version)
            else:
                setattr(context, name, version)
        plain = self.plain(which, source)
        try:
            return context.wrap_socket(plain, server_hostname="127.0.0.1")
        except BaseException:
            plain.close()
            raise

    def asked(self, method, path, body):
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {self.token}\r\n"
        told = self.says(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return statuses(told)[0], told.decode("latin-1")

    def says(self, text, which="gateway", source="127.0.0.1"):
        with self.tls(which, source) as connection:
            connection.sendall(text if isinstance(text, bytes) else text.encode("latin-1"))
            return heard(connection)

    @contextlib.contextmanager
    def good_probe(self):
        stop, failed, sent = threading.Event(), [], []

        def work():
            # Each batch on a connection of its own: it has to get in again every time. Like the exporter it tries again when that breaks.
            broken = 0
            while not stop.is_set():
                try:
                    status, _, answer = self.gateway("POST", "/v1/records", line(len(sent) + 1, "good"))
                except OSError as error:
                    broken += 1
                    if broken > 3:
                        failed.append(repr(error))
                    continue
                if status == 503 and broken < 3:  # a loaded machine's database, not the attack: that is 429 or nothing
                    broken += 1
                    continue
                broken = 0
                sent.append(status)
                if (status, answer.get("accepted")) != (200, 1):
                    failed.append((status, answer))

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
            before = len(sent)
            deadline = time.monotonic() + PATIENCE_S
            while len(sent) < before + 2 and time.monotonic() < deadline and thread.is_alive():
                stop.wait(0.01)
        finally:
            stop.set()
            thread.join()
        assert not failed, failed[:5]
        assert len(sent) >= 2

    def stored(self, boot):
        with self.store() as store:
            by_probe = 'SELECT count("seq") FROM "health" WHERE "boot" = $boot GROUP BY "probe"'
            return {series.tags["probe"]: series.rows[0][1] for series in store.query(by_probe, {"boot": boot})}

    def peaks(self):
        """Most memory that gateway and endpoint ever had, in bytes."""
        found = {}
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                words = Path(f"/proc/{child}/cmdline").read_text().split("\0")
                if "serve" in words and (role := words[words.index("serve") + 1]) != "database":
                    status = Path(f"/proc/{child}/status").read_text()
                    found[role] = int(status.split("VmHWM:")[1].split()[0]) * 1024
        return found

    def no_secrets_in(self, text):
        secrets = [
            self.token,
            *((self.folder / "influxdb" / f"{u}.password").read_text().strip() for u in ("admin", "tandem")),
        ]
        assert not any(secret in text for secret in secrets)
        assert "tandem_" not in text


def heard(connection):
    """What still comes until the end of the connection, however it ends."""
    told = bytearray()
    while True:
        try:
            more = connection.recv(65536)
        except TimeoutError:
            raise AssertionError(f"the server never ended the connection; so far: {bytes(told[:200])!r}") from None
        except OSError:  # reset, or TLS cut off
            return bytes(told)
        if not more:
            return bytes(told)
        told += more


def statuses(told):
    """Of the answers in these bytes."""
    return [int(part[:3]) for part in told.split(b"HTTP/1.1 ")[1:]]
