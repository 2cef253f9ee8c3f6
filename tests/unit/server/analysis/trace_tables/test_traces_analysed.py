"""Captures that came become tables, each once: through the real registry, desk and folder, by the real passes."""

import hashlib
import itertools
import json
import time

import numpy as np
import pytest

from support import (
    capture_scenes,
    native,  # noqa: F401  (skips where the native pass is not built)
)
from support.captures import ACK, CLIENT, CLIENT2, EPOCH, MS, S, dss, pcap, token
from support.serve_on_loopback import working
from support.upload_service_here import Place, offered

pq = pytest.importorskip("pyarrow.parquet", reason="no pyarrow; pip install -r requirements/lock.txt")

from tandem_server.analysis.traces import manifest  # noqa: E402
from tandem_server.analysis.traces.processes import analysed  # noqa: E402
from tandem_server.cli.main import main  # noqa: E402
from tandem_server.derived.run_traces import COLUMNS, MOST, RunTraces, Seconds  # noqa: E402
from tandem_server.derived.tables import WAIT_NS, Tabling  # noqa: E402
from tandem_server.endpoint.capture import Kept  # noqa: E402

RUN = "run-0123456789ab"
NO_CAPTURE = b"no capture at all" * 9


PLAIN = pcap(capture_scenes.plain_download().packets)


def store_of(database):
    """``[store]`` of a server.toml."""
    return f'[store]\nfolder = "{database.folder}"\nport = {database.port}\n'


def halves():
    """A connection of two subflows as a machine captures it: each interface has its own."""
    return tuple(pcap(packets) for packets in capture_scenes.by_path(capture_scenes.two_subflows().wire.packets))


class Server(Place):
    """What came, and what analyses it: in this process unless said otherwise."""

    def tabling(self, pool=None, reserve_bytes=0, tell=None):
        here = pool or (lambda batches, task: analysed(batches, task, 1, apart=False, say=print))
        return Tabling(self.registry, self.folder / "traces", lambda _: self.store, here, reserve_bytes, tell)

    def come(self, content, name, run=RUN, probe="probe-1"):
        self.received(probe, *offered(content, f"captures/{name}", run=run))

    def captures(self, content, session, run=RUN, probe="probe-1"):
        """As its endpoint does at a session's end."""
        kept = Kept(self.registry, self.folder / "traces")
        kept.draft(session).write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        return kept.keep(kept.draft(session), probe, run, session, len(content), digest)

    def promise(self, run, files, probe="probe-1", **more):
        """The run's manifest: files by name and content."""
        told = [
            {"name": f"captures/{name}", "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in files.items()
        ]
        self.registry.runs.put(
            run, probe, {"id": run, "probe": probe, "kind": "mptcp", "files": told, "result": {}, **more}
        )

    def rows(self, table, probe="probe-1"):
        folder = self.folder / "traces" / probe / ".tables"
        return [row for part in sorted((folder / table).glob("*.parquet")) for row in pq.read_table(part).to_pylist()]

    def states(self):
        return {name: (one.state, one.why) for (_, name), one in self.registry.trace_tables.of().items()}


@pytest.fixture
def server(tmp_path):
    made = Server(tmp_path)
    yield made
    made.registry.close()


def test_a_runs_captures_are_read_together_once_all_of_them_are_here(server):
    a, b = halves()
    server.promise(RUN, {f"{RUN}-a.pcap": a, f"{RUN}-b.pcap": b})
    server.come(a, f"{RUN}-a.pcap")
    now = time.time_ns()
    assert server.tabling().turn(now).waiting == 1
    server.come(b, f"{RUN}-b.pcap")
    assert server.tabling().turn(now).analysed == 2
    (file,) = {row["file"] for row in server.rows("connections")}
    assert [part.rsplit("/", 1)[1] for part in file.split(" + ")] == [f"{RUN}-a.pcap.gz", f"{RUN}-b.pcap.gz"]
    assert [row["subflows"] for row in server.rows("connections")] == [2]
    assert set(server.states().values()) == {("analysed", None)}
    before = sorted((server.folder / "traces").rglob("*.parquet"))
    assert (server.tabling().turn(now).analysed, sorted((server.folder / "traces").rglob("*.parquet"))) == (0, before)


def test_what_does_not_come_is_waited_for_a_day_and_joins_when_it_comes_after_all(server):
    a, b = halves()
    server.promise(RUN, {f"{RUN}-a.pcap": a, f"{RUN}-b.pcap": b})
    server.come(a, f"{RUN}-a.pcap")
    assert server.tabling().turn(time.time_ns() + WAIT_NS).analysed == 1
    server.come(b, f"{RUN}-b.pcap")
    assert server.tabling().turn(time.time_ns()).analysed == 2
    assert len(server.rows("files")) == 1  # the capture that was analysed alone has no second part


def test_the_servers_own_capture_is_analysed_at_once_and_by_itself(server, capsys):
    a, b = halves()
    server.promise(RUN, {f"{RUN}-a.pcap": a, f"{RUN}-b.pcap": b})
    server.come(a, f"{RUN}-a.pcap")
    name = server.captures(PLAIN, "s1")
    done = server.tabling().turn(time.time_ns())
    assert (done.analysed, done.waiting, server.states()[name]) == (1, 1, ("analysed", None))
    server.come(b, f"{RUN}-b.pcap")
    assert server.tabling().turn(time.time_ns()).analysed == 2
    assert sorted(row["file"].count(" + ") for row in server.rows("files")) == [0, 1]
    (server.folder / "server.toml").write_text("")
    assert main(["traces", "list", "--run", RUN, "--json", "--config", str(server.folder / "server.toml")]) == 0
    sides = {row["name"]: (row["side"], row["tables"]) for row in json.loads(capsys.readouterr().out)}
    assert sides[name] == ("server", "analysed")
    assert sides[f"captures/{RUN}-a.pcap"] == ("probe", "analysed")


def test_a_broken_capture_costs_itself_only_and_is_tried_again_only_when_told(server):
    a = halves()[0]
    server.promise(RUN, {f"{RUN}-a.pcap": a, f"{RUN}-b.pcap": NO_CAPTURE})
    server.come(a, f"{RUN}-a.pcap")
    server.come(NO_CAPTURE, f"{RUN}-b.pcap")
    server.come(PLAIN, "left-a.pcap", None, "probe-2")
    done = server.tabling().turn(time.time_ns())
    assert (done.analysed, done.failed) == (2, [("probe-1", f"captures/{RUN}-b.pcap", "not a capture")])
    assert server.states()[f"captures/{RUN}-b.pcap"] == ("failed", "not a capture")
    assert {row["file"].rsplit("/", 1)[1] for row in server.rows("connections")} == {f"{RUN}-a.pcap.gz"}
    assert len(server.rows("connections", "probe-2")) == 1
    assert server.tabling().turn(time.time_ns()).failed == []
    assert len(server.tabling().turn(time.time_ns(), everything=True).failed) == 1
    server.registry.trace_tables.again()  # as after a restoration: what is there is found, not made again
    assert server.tabling(pool=lambda *_: iter(())).turn(time.time_ns() + WAIT_NS, "probe-2").analysed == 1


def test_a_pass_that_is_killed_in_its_midst_is_gone_on_with(server):
    server.come(halves()[0], "one-a.pcap", None)
    server.come(PLAIN, "two-a.pcap", None)

    def killed(batches, task):
        yield task(batches[0])
        task(batches[1])  # its part is whole, and nobody was told
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        server.tabling(killed).turn(time.time_ns())
    tables = server.folder / "traces/probe-1/.tables"
    (tables / "bins/half.tmp").write_bytes(b"half")
    assert sorted(state for state, _ in server.states().values()) == ["analysed", "waiting"]
    assert server.tabling(lambda *_: iter(())).turn(time.time_ns()).analysed == 1
    assert len(manifest.read(tables)) == 2
    assert not (tables / "bins/half.tmp").exists()


def test_a_full_disk_leaves_all_as_it_was(server):
    server.come(halves()[0], "one-a.pcap", None)
    with pytest.raises(OSError, match="No space left"):
        server.tabling(reserve_bytes=1 << 60).turn(time.time_ns())
    assert server.states() == {"captures/one-a.pcap": ("waiting", None)}


def test_an_erased_probe_leaves_no_tables(server):
    server.come(halves()[0], "one-a.pcap", None)

    def erased(batches, task):
        yield task(batches[0])
        server.registry.probes.revoke("probe-1")
        server.store.erase("probe-1")
        server.registry.erasure.erase("probe-1")

    server.tabling(erased).turn(time.time_ns())
    assert not (server.folder / "traces/probe-1").exists()


def test_the_worker_does_it_and_the_list_says_so(server, private_influx, capsys):
    server.come(halves()[0], "one-a.pcap", None)
    server.come(NO_CAPTURE, "two-a.pcap", None)
    config = server.folder / "server.toml"
    config.write_text(store_of(private_influx) + "[traces]\nreserve_bytes = 0\n")
    with working(server.folder):
        while ("waiting", None) in server.states().values():  # pytest's own timeout ends a wait for nothing
            time.sleep(0.05)
    assert len(server.rows("subflows")) == 1
    assert main(["traces", "list", "--config", str(config)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[-1] for line in lines] == ["analysed", "failed: not a capture"]


def test_by_hand_in_several_processes(server, private_influx, capsys):
    server.come(halves()[0], f"{RUN}-a.pcap")  # its manifest has not come
    server.come(PLAIN, "one-a.pcap", None)
    server.come(NO_CAPTURE, "two-a.pcap", None, "probe-2")
    config = server.folder / "server.toml"
    config.write_text(store_of(private_influx) + "[traces]\nreserve_bytes = 0\n")

    def told(*words, status):
        assert main(["traces", "analyse", "--config", str(config), *words]) == status
        return capsys.readouterr()

    assert json.loads(told("--json", "--workers", "2", status=1).out) == {
        "analysed": 1,
        "waiting": 1,
        "failed": [{"probe": "probe-2", "name": "captures/two-a.pcap", "why": "not a capture"}],
    }
    assert told(status=0).out == "0 captures analysed, 0 failed, 1 wait for others of their runs\n"
    assert told("--all", "--probe", "probe-1", status=0).out.startswith("1 captures analysed, 0 failed, 0 wait")
    config.write_text(f"{store_of(private_influx)}[traces]\nreserve_bytes = {1 << 50}\n")
    assert "hint: make room" in told("--all", status=3).err


ENVIRONMENT = {
    "further": {"connection": f"{token(capture_scenes.CLIENT_KEY, 1):08x}"},
    "path_addresses": {"a": CLIENT, "b": CLIENT2},
}


def test_boards_get_a_point_for_each_subflow_and_the_connection_once(server, private_influx):
    a, b = halves()
    parameters = {"paths": [{"name": "a", "operator": "op-a"}, {"name": "b"}]}
    manifest = {"environment": ENVIRONMENT, "parameters": parameters}
    server.promise(RUN, {f"{RUN}-a.pcap": a, f"{RUN}-b.pcap": b}, **manifest)
    server.come(a, f"{RUN}-a.pcap")
    server.come(b, f"{RUN}-b.pcap")
    server.captures(
        pcap(capture_scenes.two_subflows().wire.packets), "s1"
    )  # of which boards show nothing: they would show it twice
    with private_influx.client() as store:
        for name in ("run_trace", "run_trace_second", "event"):
            store.query(f'DROP SERIES FROM "{name}"')
        drop = f"event,probe=probe-1,path=a,kind=signal_drop seq=1i,change_db=-9 {EPOCH + 210_000_000}"
        assert store.write([drop]) == []
        tell = RunTraces(server.registry, store).tell
        for _ in range(2):
            assert server.tabling(tell=tell).turn(time.time_ns()).analysed == 3
            found = store.query('SELECT * FROM "run_trace" GROUP BY "path", "operator", "subflow"')
            seconds = store.query('SELECT * FROM "run_trace_second" GROUP BY "path", "subflow"')
            server.registry.trace_tables.again()
    rows = {tuple(one.tags.values()): dict(zip(one.columns, one.rows[0], strict=True)) for one in found}
    assert {len(one.rows) for one in found} == {1}
    assert set(rows) == {("op-a", "a", "0"), ("", "b", "1"), ("", "", "")}
    assert rows["", "", ""]["reorder_queue_max_bytes"] == 2000
    assert [rows[key]["goodput_bytes"] for key in sorted(rows)] == [4000, 2000, 2000]
    assert (rows["op-a", "a", "0"]["events"], rows["op-a", "a", "0"]["recoveries"]) == (1, 0)
    assert rows["", "b", "1"]["reinjected_bytes"] > 0
    assert rows["", "", ""]["run"] == RUN
    by_second = {
        tuple(one.tags.values()): [dict(zip(one.columns, row, strict=True)) for row in one.rows] for one in seconds
    }
    assert {key: [row["goodput_bit_per_s"] for row in own] for key, own in by_second.items()} == {
        ("a", "0"): [16_000.0],
        ("b", "1"): [16_000.0],
        ("", ""): [32_000.0],
    }
    ((whole,), (b_own,)) = by_second["", ""], by_second["b", "1"]
    assert (whole["time"], whole["reorder_queue_max_bytes"], b_own["reorder_queue_max_bytes"]) == (EPOCH, 2000, None)
    assert b_own["reinjected_bit_per_s"] == 8 * rows["", "b", "1"]["reinjected_bytes"]


def disturbed(slow_s, end_s):
    """An upload, ten segments a second, whose round trips of 50 ms are 200 ms for what is sent in ``slow_s``."""
    scene = capture_scenes.Multipath(rtt_ns=50 * MS)
    client, far = scene.open()
    for n in range(end_s * 10):
        at_ns, data = S + n * 100 * MS, scene.to_server + 1000 * n
        rtt_ns = (200 if slow_s[0] <= at_ns / S < slow_s[1] else 50) * MS
        sequence = capture_scenes.C0 + 1 + 1000 * n
        mapped = dss(ack=scene.to_client, dsn=data, ssn=1 + 1000 * n, length=1000)
        client(at_ns, sequence, capture_scenes.S0 + 1, ACK, 1000, mapped)
        far(at_ns + rtt_ns, capture_scenes.S0 + 1, sequence + 1000, ACK, 0, dss(ack=data + 1000))
    return pcap(sorted(scene.wire.packets, key=lambda packet: packet.time_ns))


def test_boards_get_the_time_until_round_trips_are_back(server, private_influx):
    """Two seconds of 200 ms after a handover, to the width of a bin and the round trip itself."""
    capture = disturbed(slow_s=(6, 8), end_s=20)
    server.promise(RUN, {f"{RUN}-a.pcap": capture}, environment=ENVIRONMENT)
    server.come(capture, f"{RUN}-a.pcap")
    with private_influx.client() as store:
        for name in ("run_trace", "run_trace_second", "event"):
            store.query(f'DROP SERIES FROM "{name}"')
        assert store.write([f"event,probe=probe-1,path=a,kind=handover seq=1i {EPOCH + 6 * S}"]) == []
        assert server.tabling(tell=RunTraces(server.registry, store).tell).turn(time.time_ns()).analysed == 1
        (found,) = store.query('SELECT * FROM "run_trace" WHERE "path" = $path', {"path": "a"})
        (seconds,) = store.query('SELECT "t_r_s" FROM "run_trace_second" WHERE "path" = $path', {"path": "a"})
        (rtt,) = store.query('SELECT "rtt_mean_ms" FROM "run_trace_second" WHERE "path" = $path', {"path": "a"})
    (values,) = found.rows
    row = dict(zip(found.columns, values, strict=True))
    assert (row["events"], row["recoveries"]) == (1, 1)
    assert row["t_r_median_s"] == row["t_r_max_s"] == pytest.approx(2.1, abs=0.15)
    assert [(at, t_r) for at, t_r in seconds.rows if t_r is not None] == [(EPOCH + 6 * S, row["t_r_max_s"])]
    means = {(at - EPOCH) // S: value for at, value in rtt.rows}
    assert means[3] == pytest.approx(50, abs=1)
    assert means[7] == pytest.approx(200, abs=1)


def test_seconds_of_a_long_run_are_bounded_and_rates_stay_what_they_are():
    hours = np.arange(0, 7200 * 10)
    columns = {name: np.full(len(hours), np.nan) for name in COLUMNS}
    columns |= {
        "connection": np.zeros(len(hours)),
        "direction": np.ones(len(hours)),
        "goodput_bytes": np.full(len(hours), 1250.0),
    }
    columns["bin_start_utc_ns"] = EPOCH + hours * 100 * MS
    points = list(Seconds(columns).of(0, None, 1, {}))
    assert 500 <= len(points) <= MOST
    assert {fields["goodput_bit_per_s"] for _, fields in points[1:-1]} == {100_000.0}
    assert {b - a for (a, _), (b, _) in itertools.pairwise(points)} == {13 * S}
