"""Which captured subflow is which run's: by tokens, by what was carried, by address; what is not sure is counted."""

from __future__ import annotations

import math

import numpy as np

from tandem_server.analysis.folder import Capture
from tandem_server.analysis.radio.matched import matched

START = 10**18
ADDRESSES = {"a": "10.0.0.1", "b": "10.0.1.1"}


class Tables:
    """Captures put together connection by connection, one subflow each."""

    def __init__(self):
        self.files, self.connections, self.subflows, self.totals = [], [], [], []

    def add(self, file, carried, *, tokens=(math.nan, math.nan), multipath=False, address="10.0.0.1", port=8480):
        name = f"/x/{file}"
        if name not in self.files:
            self.files.append(name)
        at, number = self.files.index(name), sum(row[0] == self.files.index(name) for row in self.connections)
        self.connections.append((at, number, multipath, False, port, *tokens))
        self.subflows.append((at, number, number, address, START + 10**9, START + 9 * 10**9, 4e7))
        for subflow in (math.nan, number):
            self.totals.append((at, number, subflow, 1, carried, 1))
            self.totals.append((at, number, subflow, 0, 100, 0))

    def made(self, manifests, *captures):
        shapes = (
            (self.connections, "file connection multipath fallback responder_port opener_token responder_token"),
            (self.subflows, "file subflow connection opener_address start_utc_ns end_utc_ns handshake_rtt_ns"),
            (self.totals, "file connection subflow direction goodput_bytes rtt_method"),
        )
        tables = [
            {
                "files": self.files,
                **{n: np.array(v) for n, v in zip(names.split(), zip(*rows, strict=True), strict=True)},
            }
            for rows, names in shapes
        ]
        listed = [Capture(f"captures/{file}", 0, None, run, path, False) for file, run, path in captures]
        return matched(manifests, listed, *tables, START, ("ack", "timestamp"))


def manifest(run, kind="tcp", *, files=(), received=1000, named=None, **more):
    return {
        "id": run, "kind": kind, "files": [{"name": f"captures/{f}"} for f in files], "result": {"bytes": received},
        "environment": {"path_addresses": ADDRESSES, "further": {"connection": named}}, **more,
    }  # fmt: skip


def rows(found):
    f = found.flows
    return [(*one[:4], int(one[4])) for one in zip(f.run, f.path, f.file, f.rtt_method, f.connection, strict=True)]


def test_a_multipath_run_is_known_by_its_token_on_one_path_and_by_the_other_ends_on_the_other():
    t = Tables()
    t.add("run-1-a.pcap", 5000, tokens=(0xAB, 0xCD), multipath=True)
    t.add("run-1-a.pcap", 90_000, tokens=(0x11, 0x22), multipath=True)
    t.add("run-1-b.pcap", 7000, tokens=(math.nan, 0xCD), multipath=True)
    t.add("run-1-b.pcap", 8000, tokens=(math.nan, 0x22), multipath=True)
    found = t.made(
        [manifest("run-1", "mptcp", named="ab")], ("run-1-a.pcap", "run-1", "a"), ("run-1-b.pcap", "run-1", "b")
    )
    assert rows(found) == [
        ("run-1", "a", "run-1-a.pcap", "timestamp", 0),
        ("run-1", "b", "run-1-b.pcap", "timestamp", 0),
    ]
    assert found.direction.tolist() == [1, 1]
    assert (found.flows.start_ns[0], found.flows.handshake_ms[0]) == (10**9, 40.0)
    assert found.account["runs_without_connection"] == 0


def test_without_its_token_it_is_not_guessed():
    t = Tables()
    t.add("run-1-a.pcap", 5000, tokens=(0xAB, 0xCD), multipath=True)
    for named in (None, "zz", "ac"):
        found = t.made([manifest("run-1", "mptcp", named=named)], ("run-1-a.pcap", "run-1", "a"))
        assert (rows(found), found.account["runs_without_connection"]) == ([], 1)


def test_a_tcp_run_is_the_only_one_that_carried_as_much():
    t = Tables()
    t.add("pair-1-a.pcap", 999, port=8444)
    t.add("pair-1-a.pcap", 1000)
    t.add("pair-1-a.pcap", 5000, tokens=(0xAB, 0xCD), multipath=True)
    runs = [manifest("run-1", files=["pair-1-a.pcap"]), manifest("run-2", "mptcp", files=["pair-1-a.pcap"], named="ab")]
    found = t.made(runs, ("pair-1-a.pcap", None, "a"))
    assert [(run, connection) for run, *_, connection in rows(found)] == [("run-1", 0), ("run-2", 1)]
    t.add("pair-1-a.pcap", 1000)
    found = t.made(runs, ("pair-1-a.pcap", None, "a"))
    assert [run for run, *_ in rows(found)] == ["run-2"]
    assert found.account["runs_without_connection"] == 1


def test_of_a_capture_of_all_paths_the_path_is_that_with_the_subflows_address():
    t = Tables()
    t.add("whole.pcap", 5000, address="10.0.1.1")
    t.add("other.pcap", 5000, address="10.9.9.9")
    runs = [manifest("run-1", files=["whole.pcap"]), manifest("run-2", files=["other.pcap"])]
    found = t.made(runs, ("whole.pcap", "run-1", None), ("other.pcap", "run-2", None))
    assert [row[:2] for row in rows(found)] == [("run-1", "b")]
    assert found.account["subflows_without_path"] == 1


def test_other_experiments_connections_are_those_to_the_measurement_server():
    t = Tables()
    t.add("run-1-a.pcap", 500)
    t.add("run-1-a.pcap", 700)
    t.add("run-1-a.pcap", 9000, port=8443)
    of = {"parameters": {"server": {"measurement": "http://s.test:8480"}}}
    found = t.made([manifest("run-1", "any", **of)], ("run-1-a.pcap", "run-1", "a"))
    assert [row[4] for row in rows(found)] == [0, 1]
    assert rows(t.made([manifest("run-1", "any")], ("run-1-a.pcap", "run-1", "a"))) == []


def test_captures_of_no_run_and_copies_are_counted():
    t = Tables()
    t.add("run-1-a.pcap", 5000)
    t.add("copy/run-1-a.pcap.gz", 5000)
    t.add("stray.pcap", 5000)
    found = t.made([manifest("run-1")], ("run-1-a.pcap", "run-1", "a"), ("stray.pcap", None, None))
    assert [row[:3] for row in rows(found)] == [("run-1", "a", "run-1-a.pcap")]
    assert (found.account["captures_twice"], found.account["captures_of_no_run"], found.account["captures"]) == (
        1,
        1,
        1,
    )
