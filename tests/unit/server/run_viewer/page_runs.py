"""Runs that came in by the gateway's own way: records through its sieve, manifests as it reads them, traces over its desk."""

import json
import time

from support.probe_runs import Probe, S, file_of
from support.upload_service_here import Place, offered
from tandem_server.ingest.documents import read_manifest
from tandem_server.ingest.lines import TimeWindow, validate_batch

RUN = "run-0123456789ab"
CAPTURE = bytes(range(256)) * 700


def manifest(run=RUN, probe="probe-1", **more):
    """As a probe would send it, of a Multipath TCP download over a and b that lasted ten seconds."""
    began = more.pop("started_utc_ns", time.time_ns() - 600 * S)
    told = {
        "format": "tandem-run/1", "id": run, "pair": "pair-1", "pairing": "sequential", "kind": "mptcp", "paths": ["a", "b"],
        "probe": probe, "boot": "b1", "trigger": "request", "experiment": {"name": "download", "version": 1},
        "parameters": {"seconds": 10, "paths": [{"name": "a", "operator": "Alpha"}, {"name": "b", "operator": "Beta"}]},
        "seed": 7, "started_utc_ns": began, "ended_utc_ns": began + 10 * S, "started_monotonic_ns": 1, "ended_monotonic_ns": 10 * S,
        "environment": {"versions": {"tandem": "0.1.0", "kernel": "6.18.44"},
                        "experiment": {"scheduler": "default", "path_manager": "kernel",
                                       "sysctls": {"net.ipv4.tcp_congestion_control": "bbr"}}},
        "modems": {"a": {"at_start": {"model": "EC25", "rsrp_dbm": -90.5}}}, "clock": {"synchronised": True}, "records": {},
        "result": {"bytes": 50_000_000, "duration_s": 9.75, "goodput_bit_per_s": 41_025_641.0, "connect_ms": 52.5, "first_byte_ms": 60.0,
                   "fallback": False, "subflows": [{"subflow": "0", "path": "a", "operator": "Alpha", "bytes": 30_000_000, "share": 0.6,
                                                    "rtt_ms_median": 41.5, "join_delay_ms": None}]},
        "failure": None, "files": [],
    }  # fmt: skip
    return told | more


class Arrived:
    """A registry, a folder of traces, and what came into them. ``store``: a database's client, or None."""

    def __init__(self, folder, store=None):
        self.place, self.store = Place(folder), store
        self.registry = self.place.registry

    def manifest(self, told):
        """Through the gateway's reader; with numbers that it refuses (1e999), as an older one kept it."""
        try:
            read = read_manifest(json.dumps(told, allow_nan=False), told["id"], told["probe"])
        except ValueError as error:
            if "Out of range float" not in str(error):
                raise
            read = told
        self.registry.runs.put(told["id"], told["probe"], read)

    def records(self, probe):
        """Through the gateway's sieve into the database."""
        window = TimeWindow.at(time.time_ns(), 600.0, None)
        sifted = validate_batch("\n".join(probe.lines), probe.name, window)
        assert not sifted.rejected
        assert self.store.write(sifted.lines) == []
        probe.lines.clear()

    def file(self, name, content, run=RUN, probe="probe-1", encoding="gzip"):
        self.place.received(probe, *offered(content, name, encoding, run))

    def whole_run(self):
        """A run with 100 samples of two subflows at both ends, a handover, a capture; and another of its pair."""
        probe = Probe(now_ns=time.time_ns() - 600 * S)
        told = manifest(files=[file_of("captures/a.pcap", CAPTURE)], started_utc_ns=probe.now_ns)
        counts = 0
        for n in range(100):
            for subflow, path, rate in (("0", "a", 30e6), ("1", "b", 10e6)):
                tags = {"run": RUN, "end": "probe", "subflow": subflow, "path": path}
                probe.record("subflow", tags, {"goodput_bit_per_s": rate, "rtt_ms": 40.0 + n})
                probe.now_ns -= S // 10
                counts += 1
            probe.now_ns += S // 10
        probe.now_ns = told["started_utc_ns"] + 5 * S
        probe.record("event", {"kind": "handover", "path": "a", "operator": "Alpha"}, {"detail": "<b>cell</b> 1 to 2"})
        probe.record("run", {"run": RUN}, {"bytes": 5, "ok": True})
        told["records"] = {"subflow": counts, "run": 1}
        self.records(probe)
        self.manifest(told)
        self.manifest(manifest("run-0123456789ac", kind="tcp", paths=["a"]))
        self.manifest(manifest("run-0123456789ad", pair="pair-2"))
        self.file("captures/a.pcap", CAPTURE)
        return told
