"""``tandem-server analyse --json``, and the table for people: every value worked out from the packets by hand."""

import gzip
import json
import lzma
import os
import subprocess

from folders import command, fill, plain, run, told, two_subflows

from support import capture_scenes
from support.capture_scenes import C0, S0, Multipath, plain_download
from support.captures import ACK, CLIENT, EPOCH, MS, SERVER, SYN, Packet, S, Wire, dss, ipv4, pcap, udp

KEYS = [
    *("file", "multipath", "version", "vantage", "uncertain", "disordered", "one_direction"),
    *("start_utc_ns", "duration_s", "bytes", "goodput_bit_per_s", "reorder_queue_max_bytes", "unmapped_bytes"),
    *("unseen_bytes", "fallback", "subflows", "events"),
]


def test_a_plain_download_at_the_client(tmp_path):
    path = tmp_path / "a.pcap"
    path.write_bytes(plain())
    (connection,) = told(path)
    assert list(connection) == KEYS
    events = connection.pop("events")
    assert connection == {
        "file": str(path), "multipath": False, "version": None, "vantage": "opener", "uncertain": False, "disordered": False,
        "one_direction": False, "start_utc_ns": EPOCH, "duration_s": 0.25, "bytes": 5500, "goodput_bit_per_s": 5500 * 8 / 0.25,
        "reorder_queue_max_bytes": 2000, "unmapped_bytes": 0, "unseen_bytes": 0, "fallback": False,
        "subflows": [{
            "id": 0, "local": f"{CLIENT}:40000", "remote": f"{SERVER}:443", "bytes": 5500, "share": 1.0,
            "rtt_ms": {"min": 39.9, "median": 39.95, "p95": 44.95}, "rtt_method": "timestamp", "retransmitted_bytes": 1000,
            "hole_fill_bytes": 1000, "reinjected_bytes": 0, "join_delay_ms": None, "backup": False,
        }],
    }  # fmt: skip
    assert events[0] == {"kind": "syn", "time_ns": EPOCH, "subflow": 0}
    assert [event["kind"] for event in events] == ["syn", "syn_ack", "established", "fin", "fin"]


def test_two_subflows_and_the_table_for_people(tmp_path):
    path = tmp_path / "b.pcapng"
    path.write_bytes(two_subflows())
    (connection,) = told(path)
    assert (connection["version"], connection["bytes"], connection["reorder_queue_max_bytes"]) == (1, 4000, 2000)
    first, second = connection["subflows"]
    assert (first["id"], first["share"], first["join_delay_ms"], first["backup"]) == (0, 0.5, None, False)
    assert (second["id"], second["share"], second["join_delay_ms"], second["backup"]) == (1, 0.5, 140.001, True)
    assert (first["reinjected_bytes"], second["reinjected_bytes"]) == (0, 1000)
    assert second["local"] == "10.0.1.1:40001"
    assert {"kind": "join_syn", "time_ns": EPOCH + 100 * MS, "subflow": 1} in connection["events"]
    done = run(path)
    assert done.stderr == ""
    connection, first, second = done.stdout.splitlines()[2:]
    assert connection.split() == ["2026-01-01", "00:00:00.000", "MPTCP", "v1", "0.205", "s", "4.00", "kB", "0.156", "Mbit/s",
                                  "2.00", "kB", str(path), "captured", "at", "the", "opener"]  # fmt: skip
    assert "10.0.0.1:40000 → 192.0.2.9:443" in first
    assert second.endswith("joined after 140.0 ms  backup")


def test_local_is_where_the_capture_was_made_and_the_direction_that_of_more_goodput(tmp_path):
    """SYN to SYN/ACK takes 0.1 ms here, SYN/ACK to ACK 40 ms: the capture is at the responder. 3000 bytes to it, 100 back."""
    wire, path = Wire(), tmp_path / "upload.pcap"
    c = wire.end("2001:db8::1", 40_000, "2001:db8::9", 443)
    c(0, 1000, 0, SYN)
    c.other()(MS // 10, 5000, 1001, SYN | ACK)
    c(40 * MS, 1001, 5001)
    for number in range(3):
        c((41 + number) * MS, 1001 + 1000 * number, 5001, ACK, 1000)
    c.other()(50 * MS, 5001, 4001, ACK, 100)
    path.write_bytes(pcap(wire.packets))
    (connection,) = told(path)
    (subflow,) = connection["subflows"]
    assert (subflow["local"], subflow["remote"]) == ("[2001:db8::9]:443", "[2001:db8::1]:40000")
    assert (connection["bytes"], subflow["bytes"]) == (3000, 3000)


def test_a_join_alone_and_what_does_not_exist_are_null(tmp_path):
    # One packet: it lasts no time, so that there is no goodput a second, and no share of nothing.
    wire = Wire()
    wire.end(CLIENT, 40_000, SERVER, 443)(S, 1000, 0, SYN)
    path = tmp_path / "syn.pcap"
    path.write_bytes(pcap(wire.packets))
    (connection,) = told(path)
    assert (connection["duration_s"], connection["goodput_bit_per_s"], connection["bytes"]) == (0.0, None, 0)
    (flow,) = connection["subflows"]
    assert (flow["share"], flow["rtt_ms"], flow["rtt_method"]) == (None, dict.fromkeys(("min", "median", "p95")), None)
    # The capture of a run's second path only: no packet of it tells the version.
    scene = Multipath()
    _, s = scene.join(0)
    s(50 * MS, S0 + 1, C0 + 1, ACK, 500)
    path = tmp_path / "second.pcap"
    path.write_bytes(pcap(scene.wire.packets))
    assert told(path)[0]["version"] is None
    assert run(path).stdout.splitlines()[2].split()[2] == "MPTCP"


def test_folders_are_searched_and_named_twice_counts_once(tmp_path):
    folder = fill(tmp_path / "caps", 5)
    (folder / "06.pcapng.gz").write_bytes(gzip.compress(two_subflows()))
    (folder / "notes.txt").write_text("no capture")
    found = told(folder / "01.pcap", folder)
    assert [c["file"] for c in found] == [
        str(folder / name)
        for name in ("01.pcap", "00.pcap", "02.pcap", "06.pcapng.gz", "later/03.pcap", "later/04.pcap")
    ]


def test_what_limits_the_figures_is_said(tmp_path):
    """From the midst of a connection, of one way only: the mapping of its first packet is not in the capture, one packet is missing."""
    scene = Multipath()
    _, s = scene.open()
    scene.wire.packets.clear()
    s(0, S0 + 1, C0 + 1, ACK, 700, dss(ack=scene.to_server))
    for number in (1, 2, 4):
        scene.data(s, number * MS, 1000 * number, 1000 * number, 1000)
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(scene.wire.packets))
    (connection,) = told(path)
    assert (connection["multipath"], connection["one_direction"], connection["vantage"]) == (True, True, "unknown")
    assert (connection["bytes"], connection["unmapped_bytes"]) == (3000, 700)
    assert run(path).stdout.splitlines()[2].endswith("a.pcap  one direction only  700 B without a mapping")
    s.other()(9 * MS, C0 + 1, S0 + 5001, options=dss(ack=scene.to_client + 1000))
    s.other()(10 * MS, C0 + 1, S0 + 5001, options=dss(ack=scene.to_client + 5000))
    path.write_bytes(pcap(scene.wire.packets))
    assert run(path).stdout.splitlines()[2].endswith("700 B without a mapping  1.00 kB not in the capture")


def test_packets_without_tcp_that_can_be_read_are_told(tmp_path):
    """In VXLAN; and a capture that has none at all is no failure, but said."""
    inner = bytes(8) + bytes(12) + b"\x08\x00"
    packets = plain_download().packets
    hidden = [
        Packet(p.time_ns, ipv4("198.51.100.1", "198.51.100.2", udp(4789, inner + p.content), protocol=17), 900)
        for p in packets
    ]
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(hidden))
    done = run(path)
    assert (done.stdout, done.stderr) == ("", f"tandem-server analyse: {path}: 17 packets held no readable TCP\n")
    path.write_bytes(pcap(packets + hidden[:3]))
    assert "3 packets held no readable TCP" in run(path).stderr
    path.write_bytes(pcap([]))
    assert "0 packets held no readable TCP" in run(path).stderr


def test_captures_of_one_interface_each_are_read_together(tmp_path):
    packets = capture_scenes.two_subflows().wire.packets
    paths = [tmp_path / "a.pcap", tmp_path / "b.pcap"]
    for path, mine in zip(paths, capture_scenes.by_path(packets), strict=True):
        path.write_bytes(pcap(mine))
    whole = tmp_path / "whole.pcap"
    whole.write_bytes(pcap(packets))
    assert len(told(*paths)) == 2
    (one,), (expected,) = told(*paths, "--together"), told(whole)
    assert one.pop("file") == f"{paths[0]} + {paths[1]}"
    del expected["file"]
    assert one == expected
    assert told(tmp_path, "--together", "--out", tmp_path / "out")[0]["bytes"] == 4000
    again = run(tmp_path, "--together", "--out", tmp_path / "out")
    assert (again.stdout, "1 of 1 captures" in again.stderr) == ("", True)
    paths[1].write_bytes(b"no capture at all")
    done = run(*paths, "--together", status=1)
    assert f"{paths[1]}: not analysed: not a capture" in done.stderr
    paths[1].unlink()
    assert f"{paths[1]}: not analysed: No such file or directory" in run(*paths, "--together", status=1).stderr


def test_a_corrupt_file_and_one_that_is_not_there_beside_good_ones(tmp_path):
    folder, bad, none = fill(tmp_path / "caps", 3), tmp_path / "01a.pcap", tmp_path / "none.pcap"
    bad.write_bytes(b"this is no capture" * 20)
    done = run(folder, bad, none, "--json", status=1)
    assert len(json.loads(done.stdout)) == 3
    said = [(bad, "not a capture"), (none, "No such file or directory")]
    assert sorted(done.stderr.splitlines()) == sorted(
        f"tandem-server analyse: {file}: not analysed: {why}" for file, why in said
    )
    bad.write_bytes(b"")
    assert told(bad, status=1) == []
    bad.write_bytes(lzma.compress(plain()))
    assert f"{bad}: not analysed: compressed by xz; hint: xz -d FILE" in run(bad, status=1).stderr


def test_what_is_asked_wrongly_is_said(tmp_path):
    for words, says in (
        ([], "no capture in it"),
        (["--packets"], "hint: --out DIR"),
        (["--bins", "0"], "is not a width"),
        (["--workers", "0"], "not a whole number from 1"),
        (["--workers", "2", "--dask", "tcp://127.0.0.1:1"], "argument --dask: not allowed with argument --workers"),
    ):
        done = run(tmp_path, *words, status=2)
        assert (says in done.stderr, done.stdout) == (True, ""), words


def test_without_distributed_one_line_names_the_mend(tmp_path):
    """A module of that name which cannot be imported stands for none."""
    folder = fill(tmp_path / "caps", 1)
    (tmp_path / "distributed.py").write_text("raise ImportError(\"No module named 'distributed'\")\n")
    lacking = dict(os.environ, PYTHONPATH=f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    words = command(folder, "--dask", "tcp://127.0.0.1:1")
    done = subprocess.run(words, env=lacking, cwd=tmp_path, capture_output=True, text=True, check=False)
    says = "tandem-server: --dask needs distributed; hint: pip install 'tandem-server[dask]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (3, "", says)
    assert not (tmp_path / "out").exists()


def test_a_terminal_gets_a_bar(tmp_path):
    folder = fill(tmp_path, 2)
    terminal, its = os.openpty()
    try:
        done = subprocess.run(command(folder, "--json"), stdout=subprocess.PIPE, stderr=its, check=False)
        os.close(its)
        drawn = b""
        while True:
            try:
                drawn += os.read(terminal, 4096)
            except OSError:  # all that was written is read
                break
    finally:
        os.close(terminal)
    assert done.returncode == 0
    assert "0 of 2 captures" in drawn.decode()
    assert "2 of 2 captures" in drawn.decode()
