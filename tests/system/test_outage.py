"""The server is away for a day, comes back, and one request in eight goes wrong: everything arrives once, the freshest first.

Real spool, exporter, TLS, gateway and InfluxDB. Time is scaled 1:240: of every four minutes of the 24 hours one second's 40 records are
recorded (14,400 of 3.4 million), and waits after a failure are a 240th. The records bear the times of their hours.
"""

import random
import time

import pytest
from a_second import PER_SECOND, Timed, a_second
from faulty_proxy import FAULTS, FaultyProxy

from support.rehearsals import wait_until
from support.serve_on_loopback import Server, await_ready, end, lay_out, start
from tandem.export import Exporter, GatewayAddress, PendingManifests, exporter, gateway
from tandem.spool import Spool
from tandem_server.store import StoreStartError

pytestmark = pytest.mark.system

BOOT = "b1c0ffee-0000-4000-8000-000000000001"
SCALE = 240
STEPS = 24 * 3600 // SCALE
LINES = 250


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "server"
    folder.mkdir()
    try:
        ports = lay_out(folder)
    except StoreStartError as error:
        pytest.skip(str(error))
    process = start(folder)
    await_ready(process, "endpoint")
    yield Server(folder, *ports, process, (folder / "token").read_text().strip())
    assert end(process) == 0


def stored(server):
    """How many points the database has of each number."""
    times = {}
    with server.store() as store:
        for series in store.query('SELECT "seq" FROM /.*/ WHERE "probe" = \'probe-1\''):
            for seq in series.column("seq"):
                times[seq] = times.get(seq, 0) + 1
    return times


def test_a_day_without_the_server_arrives_once_and_freshest_first(server, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(exporter, "LINES", LINES)
    for module, name in (
        (gateway, "BUSY_WAIT_S"),
        (gateway, "UNKNOWN_WAIT_S"),
        (exporter, "UNKNOWN_WAIT_S"),
        (gateway, "FIRST_S"),
        (gateway, "LONGEST_S"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name) / SCALE)
    times = Timed(time.time_ns() - (STEPS + 400) * SCALE * 10**9, SCALE)  # room for what is recorded afterwards
    chance = random.Random(5)
    spool = Spool(tmp_path / "spool", BOOT)
    (tmp_path / "runs").mkdir()
    pending = PendingManifests(tmp_path / "pending-runs", tmp_path / "runs")
    tls = server.folder / "tls"
    step = 0

    def record():
        nonlocal step
        spool.append(a_second(step, chance))
        step += 1

    def record_while_it_drains():
        if step < STEPS + 60:
            record()

    certificate, behind = (str(tls / "server.pem"), str(tls / "server.key")), ("127.0.0.1", server.gateway_port)
    with FaultyProxy(certificate, behind, str(tls / "ca.pem"), 8, record_while_it_drains) as proxy:
        proxy.away = True
        address = GatewayAddress.of(f"https://127.0.0.1:{proxy.port}", tls / "ca.pem", server.folder / "token")
        sender = Exporter(spool, pending, address, {"a": None}, "probe-1", times, period_s=1 / SCALE, chance=chance)
        sender.start()
        while step < STEPS:
            record()
        backlog = spool.counts().pending
        assert backlog == STEPS * PER_SECOND
        wait_until(lambda: sender.trouble is not None, 200, "the exporter noticed")
        proxy.away = False
        began = time.monotonic()
        wait_until(lambda: spool.counts().pending == 0, 200, "the spool is empty")
        elapsed = time.monotonic() - began
        assert sender.stop(30.0)
        spool.flush()
        counts = spool.counts()
        spool.close()
    stored_at = stored(server)
    twice = sum(count > 1 for count in proxy.delivered.values())
    with capsys.disabled():
        print(
            f"\noutage: 24 h at 1:{SCALE}, backlog {backlog} records, drained in {elapsed:.1f} s, "
            f"{counts.made / elapsed:.0f} records/s with {LINES} lines a request; "
            f"{proxy.requests} requests, faults {dict(proxy.faults)}; {twice} records delivered more than once"
        )
    assert set(proxy.faults) == set(FAULTS)
    assert twice > 0
    assert (counts.sent, counts.rejected, counts.dropped, counts.pending) == (counts.made, 0, 0, 0)
    assert stored_at == dict.fromkeys(range(1, counts.made + 1), 1)
    freshest_and_oldest_in_each(proxy.batches, backlog, counts.made)


def freshest_and_oldest_in_each(batches, backlog, made):
    """The first batch begins with the newest record; while a backlog waits each has the oldest that is left; what is recorded meanwhile
    is not behind it: newer than all that was there before, within the next three batches."""
    waiting = set(range(1, made + 1))
    assert max(batches[0]) >= backlog
    late, newest = 0, backlog
    for batch in batches:
        if min(waiting, default=made) <= backlog - 2 * LINES:
            assert min(waiting) in batch
        if max(batch) > newest:
            late, newest = 0, max(batch)
        else:
            late += 1
        assert late <= 3 or newest == made
        waiting -= set(batch)
    assert not waiting
