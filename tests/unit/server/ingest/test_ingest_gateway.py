"""The gateway over TLS with the real database: accepted means that it is in the database, also under a crowd."""

import gzip
import http.client
import json
import os
import signal
import socket
import ssl
import threading
import time
from pathlib import Path

from support.probe_runs import MANIFEST
from support.serve_on_loopback import await_ready, command, end, start, wait_for
from tandem_server import __version__
from tandem_server.schema.measurements import SERVER_MEASUREMENTS


def line(seq, **more):
    tags = "".join(f",{k}={v}" for k, v in more.items())
    return f"health,boot=b{tags} mobile=true,seq={seq}i,monotonic_ns={seq}i {time.time_ns()}"


def stored(server, boot):
    with server.store() as store:
        answer = store.query('SELECT count("seq") FROM "health" WHERE "boot" = $boot GROUP BY "probe"', {"boot": boot})
    return {series.tags["probe"]: series.rows[0][1] for series in answer}


def test_accepted_lines_are_in_the_database_under_the_tokens_probe(server):
    lines = [line(i + 1).replace("boot=b", "boot=one,probe=liar") for i in range(300)]
    lines[7] = "nonsense"
    lines[9] = lines[9].replace("mobile=true", "mobile=7i")
    body = gzip.compress("\n".join(lines).encode())
    for _ in range(2):  # a batch may come any number of times
        status, _, answer = server.gateway("POST", "/v1/records", body, {"Content-Encoding": "gzip"})
        assert status == 200
        assert answer["accepted"] == 298
        assert [one["line"] for one in answer["rejected"]] == [7, 9]
        assert all(one["reason"] for one in answer["rejected"])
        assert stored(server, "one") == {"probe-1": 298}


def test_bodies_that_cannot_be_read_and_records_of_the_server_alone_are_refused(server):
    for body, encoding, status in (
        (b"not gzip", "gzip", 400),
        (b"\xff\xfe", "identity", 400),
        (line(1), "br", 400),
        ("x\n" * 10_001, "identity", 413),
    ):
        assert server.gateway("POST", "/v1/records", body, {"Content-Encoding": encoding})[0] == status, encoding
    assert server.gateway("POST", "/v1/records", "")[2] == {"accepted": 0, "rejected": []}
    now = time.time_ns()
    lines = [f"{name},boot=b seen=1i,seq=1i,monotonic_ns=1i {now}" for name in SERVER_MEASUREMENTS]
    told = server.gateway("POST", "/v1/records", "\n".join(lines))[2]
    assert told["accepted"] == 0
    assert all("recorded by the server alone" in row["reason"] for row in told["rejected"])


def test_a_run_goes_into_the_ledger_and_the_ledger_tells_what_is_missing(server):
    manifest = {**MANIFEST, "id": "run-l", "records": {"subflow": 2, "health": 5}}
    assert server.gateway("PUT", "/v1/runs/run-l", json.dumps({**manifest, "probe": "other"}))[0] == 400
    assert server.gateway("PUT", "/v1/runs/..", json.dumps(manifest))[0] in (400, 404)
    for _ in range(2):
        assert server.gateway("PUT", "/v1/runs/run-l", json.dumps(manifest))[::2] == (200, {"ok": True})
    config = server.folder / "server.toml"
    status, listed, _ = command("ledger", "--config", config, "--json", "--manifests")
    assert status == 1
    (row,) = [row for row in json.loads(listed)["runs"] if row["id"] == "run-l"]
    assert (row["status"], row["manifest"]) == ("measured", manifest)
    assert row["records"] == {"subflow": {"promised": 2, "arrived": 0}}
    assert [(lack["what"], lack["name"], lack["count"]) for lack in row["missing"]] == [("records", "subflow", 2)]
    now = time.time_ns()
    of_run = "subflow,boot=b,run=run-l,end=probe,subflow=1"
    lines = [f"{of_run} rtt_ms=5,seq={i}i,monotonic_ns=1i {now + i}" for i in (1, 2)]
    assert server.gateway("POST", "/v1/records", "\n".join(lines))[2]["accepted"] == 2
    status, listed, _ = command("ledger", "--config", config)
    told = [line.split()[1:5] for line in listed.splitlines() if "run-l" in line]
    assert (status, told) == (0, [["run-l", "probe-1", "mptcp", "complete"]])


def test_health_needs_no_token_and_a_probe_is_told_whose_its_token_is_and_which_collector_is_expected(server):
    assert server.gateway("GET", "/v1/health", token="")[2]["ok"] is True
    status, _, told = server.gateway("GET", "/v1/probe")
    assert (status, told) == (200, {"probe": "probe-1", "collector_version": __version__})
    assert server.gateway("GET", "/v1/probe", token="")[0] == 401


def test_too_many_requests_in_flight_are_told_to_come_later(server):
    """Sixteen senders that never finish their bodies take all places; the next is told 503, and they do not stay for ever."""
    context = ssl.create_default_context(cafile=server.folder / "tls/ca.pem")
    head = f"POST /v1/records HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\nContent-Length: 10\r\n\r\n"
    slow = []
    try:
        for _ in range(16):
            raw = socket.create_connection(("127.0.0.1", server.gateway_port))
            slow.append(context.wrap_socket(raw, server_hostname="127.0.0.1"))
            slow[-1].sendall(head.encode())
        answer = wait_for(lambda: (told := server.gateway("POST", "/v1/records", ""))[0] == 503 and told)
        assert "too many" in answer[2]["error"]
    finally:
        for one in slow:
            one.close()
    wait_for(lambda: server.gateway("POST", "/v1/records", "")[0] == 200)


# --- two processes under a crowd: the database goes away in the middle and comes back; a process of the gateway is killed


PROBES = 8


class Sender(threading.Thread):
    """One probe: a batch at a time, again until it is acknowledged, over a kept connection."""

    def __init__(self, server, token, stop):
        super().__init__()
        self.server, self.token, self.stop = server, token, stop
        self.acknowledged, self.statuses = 0, []

    def run(self):
        context = ssl.create_default_context(cafile=self.server.folder / "tls/ca.pem")
        headers = {"Authorization": f"Bearer {self.token}", "Content-Encoding": "gzip"}
        connection = None
        while not self.stop.is_set():
            first = self.acknowledged + 1
            lines = [f"health,boot=load seq={first + i}i,monotonic_ns=1i {time.time_ns() + i}" for i in range(20)]
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
                    connection = None
                    continue
                self.statuses.append(answer.status)
                if answer.status == 200:
                    assert told == {"accepted": 20, "rejected": []}
                    self.acknowledged += 20
                    break
                assert answer.status == 503
                assert int(answer.headers["Retry-After"]) >= 1
                self.stop.wait(0.02)  # a probe would wait as long as it was told
        if connection is not None:
            connection.close()


def test_nothing_acknowledged_is_lost_when_the_database_or_a_gateway_process_goes_in_mid_load(two_gateways):
    server, stop = two_gateways, threading.Event()
    config = ("--config", server.folder / "server.toml")
    tokens = [command("probe", "add", f"load-{i}", *config)[1].strip() for i in range(PROBES)]
    senders = [Sender(server, token, stop) for token in tokens]

    def goes_on():
        here = [sender.acknowledged for sender in senders]
        wait_for(lambda: all(one.acknowledged >= before + 60 for one, before in zip(senders, here, strict=True)))

    def members():
        return Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()

    first, _ = members()
    try:
        for sender in senders:
            sender.start()
        goes_on()
        assert end(server.database) == 0
        wait_for(lambda: all(503 in sender.statuses for sender in senders))
        wait_for(lambda: server.gateway("GET", "/v1/health")[0] == 503)
        server.database = start(server.folder, "database")
        await_ready(server.database, "database")
        goes_on()
        os.kill(int(first), signal.SIGKILL)
        goes_on()
        wait_for(lambda: len(members()) == 2)
    finally:
        stop.set()
        for sender in senders:
            sender.join()
    with server.store() as store:
        for number, sender in enumerate(senders):
            answer = store.query('SELECT "seq" FROM "health" WHERE "probe" = $probe', {"probe": f"load-{number}"})
            assert set(answer[0].column("seq")) >= set(range(1, sender.acknowledged + 1))


def test_a_second_gateway_does_not_share_the_port_unnoticed(server):
    config = server.folder / "two.toml"
    config.write_text(
        (server.folder / "server.toml").read_text().replace("[listen]\n", "[listen]\ngateway_processes = 2\n")
    )
    status, _, err = command("serve", "gateway", "--config", config)
    assert status == 3
    assert "hint: end what listens there" in err
