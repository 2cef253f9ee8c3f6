"""The gateway as two processes under a crowd: the database goes away in the middle and comes back; a process of the gateway is killed."""

import gzip
import http.client
import json
import os
import signal
import ssl
import threading
import time
from pathlib import Path

from support.serve_on_loopback import Server, await_ready, command, end, lay_out, start, wait_for

PROBES = 8


class Sender(threading.Thread):
    """One probe: a batch at a time, again until it is acknowledged, over a kept connection."""

    def __init__(self, server, number, token, stop):
        super().__init__()
        self.server, self.number, self.token, self.stop = server, number, token, stop
        self.acknowledged, self.statuses, self.broken = 0, [], 0

    def run(self):
        context = ssl.create_default_context(cafile=self.server.folder / "tls/ca.pem")
        headers = {"Authorization": f"Bearer {self.token}", "Content-Encoding": "gzip"}
        connection, seq = None, 0
        while not self.stop.is_set():
            lines = [f"health,boot=load seq={seq + i}i,monotonic_ns=1i {time.time_ns() + i}" for i in range(1, 21)]
            body = gzip.compress("\n".join(lines).encode())
            while not self.stop.is_set():
                try:
                    if connection is None:
                        connection = http.client.HTTPSConnection(
                            "127.0.0.1", self.server.gateway_port, context=context, timeout=60
                        )
                    connection.request("POST", "/v1/records", body, headers)
                    answer = connection.getresponse()
                    told = json.loads(answer.read())
                except (OSError, http.client.HTTPException):
                    if connection is not None:
                        connection.close()
                    connection, self.broken = None, self.broken + 1
                    continue
                self.statuses.append(answer.status)
                if answer.status == 200:
                    assert told == {"accepted": 20, "rejected": []}
                    seq += 20
                    self.acknowledged = seq
                    break
                assert answer.status == 503
                assert int(answer.headers["Retry-After"]) >= 1
                self.stop.wait(0.02)  # a probe would wait as long as it was told
        if connection is not None:
            connection.close()


def test_nothing_acknowledged_is_lost_when_the_database_or_a_gateway_process_goes_in_mid_load(tmp_path):
    ports = lay_out(tmp_path)
    config = tmp_path / "server.toml"
    config.write_text(config.read_text().replace("[listen]\n", "[listen]\ngateway_processes = 2\n"))
    tokens = [command("probe", "add", f"load-{i}", "--config", config)[1].strip() for i in range(PROBES)]
    database, gateway = start(tmp_path, "database"), start(tmp_path, "gateway")
    stop = threading.Event()
    server = Server(tmp_path, *ports, gateway, (tmp_path / "token").read_text().strip())
    senders = [Sender(server, i, token, stop) for i, token in enumerate(tokens)]

    def goes_on():
        here = [sender.acknowledged for sender in senders]
        wait_for(lambda: all(one.acknowledged >= before + 60 for one, before in zip(senders, here, strict=True)))

    try:
        await_ready(database, "database")
        await_ready(gateway, "gateway")
        members = Path(f"/proc/{gateway.pid}/task/{gateway.pid}/children").read_text().split()
        assert len(members) == 2
        for sender in senders:
            sender.start()
        goes_on()
        assert end(database) == 0
        wait_for(lambda: all(503 in sender.statuses for sender in senders))
        wait_for(lambda: server.gateway("GET", "/v1/health")[0] == 503)
        database = start(tmp_path, "database")
        await_ready(database, "database")
        goes_on()
        os.kill(int(members[0]), signal.SIGKILL)
        goes_on()
        wait_for(lambda: len(Path(f"/proc/{gateway.pid}/task/{gateway.pid}/children").read_text().split()) == 2)
        stop.set()
        for sender in senders:
            sender.join()
        with server.store() as store:
            for sender in senders:
                answer = store.query(
                    'SELECT "seq" FROM "health" WHERE "probe" = $probe', {"probe": f"load-{sender.number}"}
                )
                stored = set(answer[0].column("seq"))
                assert stored >= set(range(1, sender.acknowledged + 1))
    finally:
        stop.set()
        assert [end(gateway), end(database)] == [0, 0]


def test_a_second_gateway_does_not_share_the_port_unnoticed(server):
    config = server.folder / "two.toml"
    config.write_text(
        (server.folder / "server.toml").read_text().replace("[listen]\n", "[listen]\ngateway_processes = 2\n")
    )
    status, _, err = command("serve", "gateway", "--config", config)
    assert status == 3
    assert "hint: end what listens there" in err
