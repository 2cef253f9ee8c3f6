"""Captures that came become tables, each once: through the real registry, desk and folder, by the real passes; those in a bucket are
fetched for the time they are read, on a Dask cluster too."""

import pytest

pytest.importorskip("pyarrow", reason="no pyarrow; pip install -r requirements/lock.txt")

import hashlib
import itertools
import json
import shutil
import time
from pathlib import Path

import dask_here
import folders
import numpy as np
from captures_server import ENVIRONMENT, HALVES, NO_CAPTURE, PLAIN, RUN, A, B, Server

from support import capture_scenes
from support.captures import ACK, EPOCH, MS, S, dss, pcap
from support.s3_bucket import _keys, moto, s3  # noqa: F401  (fixtures)
from support.serve_on_loopback import working
from tandem_server.analysis.traces import manifest
from tandem_server.cli.main import main
from tandem_server.derived.run_traces import COLUMNS, MOST, RunTraces, Seconds
from tandem_server.derived.tables import WAIT_NS
from tandem_server.uploads.s3 import TraceBucket


def test_a_runs_captures_are_read_together_once_all_of_them_are_here(server):
    server.halves(A)
    now = time.time_ns()
    assert server.tabling().turn(now).waiting == 1
    server.come(HALVES[B], B)
    assert server.tabling().turn(now).analysed == 2
    (file,) = {row["file"] for row in server.rows("connections")}
    assert [part.rsplit("/", 1)[1] for part in file.split(" + ")] == [f"{A}.gz", f"{B}.gz"]
    assert [row["subflows"] for row in server.rows("connections")] == [2]
    assert set(server.states().values()) == {("analysed", None)}
    before = sorted((server.folder / "traces").rglob("*.parquet"))
    assert (server.tabling().turn(now).analysed, sorted((server.folder / "traces").rglob("*.parquet"))) == (0, before)


def test_what_does_not_come_is_waited_for_a_day_and_joins_when_it_comes_after_all(server):
    server.halves(A)
    assert server.tabling().turn(time.time_ns() + WAIT_NS).analysed == 1
    server.come(HALVES[B], B)
    assert server.tabling().turn(time.time_ns()).analysed == 2
    assert len(server.rows("files")) == 1  # the capture that was analysed alone has no second part


def test_the_servers_own_capture_is_analysed_at_once_and_by_itself(server, capsys):
    server.halves(A)
    name = server.captures(PLAIN, "s1")
    done = server.tabling().turn(time.time_ns())
    assert (done.analysed, done.waiting, server.states()[name]) == (1, 1, ("analysed", None))
    server.come(HALVES[B], B)
    assert server.tabling().turn(time.time_ns()).analysed == 2
    assert sorted(row["file"].count(" + ") for row in server.rows("files")) == [0, 1]
    (server.folder / "server.toml").write_text("")
    assert main(["traces", "list", "--run", RUN, "--json", "--config", str(server.folder / "server.toml")]) == 0
    sides = {row["name"]: (row["side"], row["tables"]) for row in json.loads(capsys.readouterr().out)}
    assert sides[name] == ("server", "analysed")
    assert sides[f"captures/{A}"] == ("probe", "analysed")


def test_a_broken_capture_costs_itself_only_and_is_tried_again_only_when_told(server, capsys):
    server.promise(RUN, {A: HALVES[A], B: NO_CAPTURE})
    server.come(HALVES[A], A)
    server.come(NO_CAPTURE, B)
    server.come(PLAIN, "left-a.pcap", None, "probe-2")
    done = server.tabling().turn(time.time_ns())
    assert (done.analysed, done.failed) == (2, [("probe-1", f"captures/{B}", "not a capture")])
    assert server.states()[f"captures/{B}"] == ("failed", "not a capture")
    (server.folder / "server.toml").write_text("")
    assert main(["traces", "list", "--probe", "probe-1", "--config", str(server.folder / "server.toml")]) == 0
    assert [line.split("  ")[-1] for line in capsys.readouterr().out.splitlines()] == [
        "analysed",
        "failed: not a capture",
    ]
    assert {row["file"].rsplit("/", 1)[1] for row in server.rows("connections")} == {f"{A}.gz"}
    assert len(server.rows("connections", "probe-2")) == 1
    assert server.tabling().turn(time.time_ns()).failed == []
    assert len(server.tabling().turn(time.time_ns(), everything=True).failed) == 1
    server.registry.trace_tables.again()  # as after a restoration: what is there is found, not made again
    assert server.tabling(pool=lambda *_: iter(())).turn(time.time_ns() + WAIT_NS, "probe-2").analysed == 1


def test_a_pass_that_is_killed_in_its_midst_is_gone_on_with(server):
    server.come(HALVES[A], "one-a.pcap", None)
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
    server.come(HALVES[A], "one-a.pcap", None)
    with pytest.raises(OSError, match="No space left"):
        server.tabling(reserve_bytes=1 << 60).turn(time.time_ns())
    assert server.states() == {"captures/one-a.pcap": ("waiting", None)}


def test_an_erased_probe_leaves_no_tables(server):
    server.come(HALVES[A], "one-a.pcap", None)

    def erased(batches, task):
        yield task(batches[0])
        server.registry.probes.revoke("probe-1")
        server.store.erase("probe-1")
        server.registry.erasure.erase("probe-1")

    server.tabling(erased).turn(time.time_ns())
    assert not (server.folder / "traces/probe-1").exists()


def test_by_hand_in_several_processes(server, private_influx, capsys):
    server.come(HALVES[A], A)  # its manifest has not come
    server.come(PLAIN, "one-a.pcap", None)
    server.come(NO_CAPTURE, "two-a.pcap", None, "probe-2")
    config = server.config(private_influx)

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
    server.config(private_influx, reserve_bytes=1 << 50)
    assert "hint: make room" in told("--all", status=3).err


def test_boards_get_a_point_for_each_subflow_and_the_connection_once(server, store):
    parameters = {"paths": [{"name": "a", "operator": "op-a"}, {"name": "b"}]}
    server.halves(A, B, environment=ENVIRONMENT, parameters=parameters)
    # Of the server's own capture boards show nothing: they would show it twice.
    server.captures(pcap(capture_scenes.two_subflows().wire.packets), "s1")
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


def test_boards_get_the_time_until_round_trips_are_back(server, store):
    """Two seconds of 200 ms after a handover, to the width of a bin and the round trip itself."""
    capture = disturbed(slow_s=(6, 8), end_s=20)
    server.promise(RUN, {A: capture}, environment=ENVIRONMENT)
    server.come(capture, A)
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


@pytest.fixture
def filled(tmp_path, moto, s3, private_influx):  # noqa: F811  (the fixtures)
    """A server whose captures are in a bucket; a run of two paths, one that is alone, one that is none."""
    url = f"http://127.0.0.1:{moto}"
    assert s3.head_bucket(Bucket="traces-here")
    store = TraceBucket("traces-here", "kit", url, "eu-north-1")
    server = Server(tmp_path, store=store)
    server.halves(A, B)
    server.come(PLAIN, "one-a.pcap", None)
    server.come(NO_CAPTURE, "two-a.pcap", None)
    bucket = f'[traces.s3]\nbucket = "traces-here"\nprefix = "kit"\nendpoint_url = "{url}"\n'
    server.config(private_influx, more=bucket)
    yield server
    server.registry.close()


def made(server):
    """What was made: captures by what was read together, and a sum of each table's rows."""
    tables = server.folder / "traces/probe-1/.tables"
    assert not (tables / ".fetched").exists()
    files = [[Path(one).name for one in row["file"].split(" + ")] for row in folders.tables(tables, "files")]
    rows = [{**row, "file": Path(row["file"]).name} for row in folders.tables(tables, "bins")]
    return sorted(files), hashlib.sha256(json.dumps(sorted(map(str, rows))).encode()).hexdigest()


def test_the_worker_and_a_cluster_make_the_same_of_a_bucket(filled, tmp_path, capsys):
    config = tmp_path / "server.toml"
    fetched = filled.folder / "traces/probe-1/.tables/.fetched"
    with working(tmp_path):
        # pytest's own timeout ends a wait for nothing
        while ("waiting", None) in filled.states().values() or fetched.exists():
            time.sleep(0.05)
    states = {name: one[0] for name, one in filled.states().items()}
    assert states.pop("captures/two-a.pcap") == "failed"
    assert set(states.values()) == {"analysed"}
    files, rows = made(filled)
    assert files == [["one-a.pcap.gz"], [f"{A}.gz", f"{B}.gz"]]
    pytest.importorskip("distributed", reason="no distributed; pip install -r requirements/lock.txt")
    shutil.rmtree(filled.folder / "traces/probe-1/.tables")
    filled.registry.trace_tables.again()
    with dask_here.started(tmp_path / "cluster", workers=1) as cluster:
        assert main(["traces", "analyse", "--dask", cluster.address, "--json", "--config", str(config)]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["analysed"], [one["name"] for one in told["failed"]]) == (3, ["captures/two-a.pcap"])
    assert made(filled) == (files, rows)
