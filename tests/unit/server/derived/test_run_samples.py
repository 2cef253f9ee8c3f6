"""Samples of complete runs come into files, and who reads a run reads the same out of them as out of the database."""

import time

import numpy as np
import pytest

from support.probe_runs import Probe, S
from support.serve_on_loopback import wait_for
from tandem_server.analysis.one_run import RunSource
from tandem_server.analysis.records import InfluxSource, Piece, SourceError
from tandem_server.analysis.run_samples import SAMPLED, RunSamples, SampledSource, bounded, means
from tandem_server.derived.own_series import LedgerSeries
from tandem_server.derived.run_samples import RunSampling
from tandem_server.http.rates import NoRoom

WHOLE = (0, 2**62)


class Sampled:
    """A server with two runs of a probe of which one lacks a record; and its samples at both ends."""

    def __init__(self, registry, store, folder):
        self.registry, self.store, self.samples = registry, store, RunSamples(folder / "traces")
        self.sampling = RunSampling(registry, store, folder / "traces", 0)
        registry.probes.add("probe-1")
        self.probe = Probe()
        for run in ("run-1", "run-2"):
            manifest = self.probe.run(run, samples=30)
            registry.runs.put(run, "probe-1", manifest)
            self.began, self.ended = manifest["started_utc_ns"], manifest["ended_utc_ns"]
            for _ in range(3):
                self.probe.record("subflow", {"run": run, "end": "server", "subflow": "1"}, {"goodput_bit_per_s": 8.0})
        del self.probe.lines[-5]  # of the second, of its connection
        self.probe.tell()
        self.probe.send(store)
        self.judged()

    def judged(self):
        LedgerSeries(self.registry, self.store, None).once(time.time_ns())

    def rows(self, source, measurement, span=WHOLE):
        found = [
            (int(utc_ns), row)
            for piece in source.pieces(measurement, "probe-1", span)
            for utc_ns, row in zip(piece.utc_ns, piece.rows(), strict=True)
        ]
        return sorted(found, key=lambda one: (one[1]["run"], one[1]["end"], one[1].get("subflow", ""), one[0]))


@pytest.fixture
def sampled(registry, store, tmp_path):
    return Sampled(registry, store, tmp_path)


def test_a_complete_run_has_files_with_the_databases_records(sampled):
    database = InfluxSource(sampled.store)
    wanted = {name: sampled.rows(database, name) for name in SAMPLED}
    assert [len(rows) for rows in wanted.values()] == [66, 59]
    assert sampled.sampling.once(time.time_ns()) == 1
    assert sampled.samples.runs("probe-1") == {"run-1"}
    both = SampledSource(sampled.store, sampled.samples)
    assert {name: sampled.rows(both, name) for name in SAMPLED} == wanted
    span = (sampled.began - S, sampled.began + S)  # of both
    assert sampled.rows(both, "subflow", span) == sampled.rows(database, "subflow", span) != []
    for name in (*SAMPLED, "run"):
        assert sorted(both.numbers(name, "probe-1", {"b1"})) == sorted(database.numbers(name, "probe-1", {"b1"}))
    assert len(both.numbers("subflow", "probe-1", {"another boot"})) == 0

    sampled.store.query('DROP SERIES FROM "subflow"')
    assert [row["run"] for _, row in sampled.rows(both, "subflow")] == ["run-1"] * 33
    assert sampled.sampling.once(time.time_ns()) == 0


def test_a_runs_page_reads_the_files(sampled):
    span = (sampled.began - 60 * S, sampled.ended)
    source = RunSource(sampled.store, "run-1", sampled.samples)
    before = [sampled.rows(source, name, span) for name in SAMPLED]
    sampled.sampling.once(time.time_ns())
    sampled.store.query('DROP SERIES FROM "subflow"')
    sampled.store.query('DROP SERIES FROM "connection"')
    after = [sampled.rows(source, name, span) for name in SAMPLED]
    seen = [
        [[(at, row["end"], row.get("goodput_bit_per_s")) for at, row in rows] for rows in found]
        for found in (before, after)
    ]
    # The database leaves out records without any of the fields that are asked for.
    assert [row for row in seen[1][0] if row[2] is not None] == seen[0][0] != []
    (samples := sampled.samples.folder("probe-1", "run-1") / "subflow.parquet").write_bytes(b"damaged")
    with pytest.raises(SourceError, match=f"{samples} cannot be read"):
        source.pieces("subflow", "probe-1", span)


def test_a_run_that_something_happened_to_is_written_again(sampled):
    sampled.sampling.once(time.time_ns())
    run = sampled.registry.runs.get("run-1")
    first = sampled.samples.folder("probe-1", "run-1").stat().st_ino
    sampled.registry.runs.put("run-1", "probe-1", {**run.manifest, "ended_utc_ns": run.manifest["ended_utc_ns"] + S})
    assert sampled.sampling.once(time.time_ns()) == 0  # whether it is complete by this manifest nobody knows yet
    sampled.judged()
    assert sampled.sampling.once(time.time_ns()) == 1
    assert sampled.samples.folder("probe-1", "run-1").stat().st_ino != first


@pytest.mark.parametrize("times", [{"started_utc_ns": -1}, {"ended_utc_ns": 2**63 - 1}, {"started_utc_ns": "x"}])
def test_a_manifest_without_times_has_no_files_and_holds_up_nobody(sampled, times):
    other = sampled.probe.run("run-3")
    sampled.registry.runs.put("run-3", "probe-1", {**other, **times})
    sampled.probe.send(sampled.store)
    with sampled.registry._write() as connection:
        connection.execute(
            "UPDATE ledger_runs SET state = 'complete', due_utc_ns = NULL, ended_utc_ns = 1 WHERE run = 'run-3'"
        )
    sampled.sampling.once(time.time_ns())
    assert sampled.samples.runs("probe-1") == {"run-1"}
    assert sampled.registry.ledger_runs.unsampled(time.time_ns(), 9) == []


def test_an_erased_probe_leaves_none_and_a_full_disk_waits(sampled, tmp_path, monkeypatch):
    with pytest.raises(NoRoom):
        RunSampling(sampled.registry, sampled.store, tmp_path / "traces", 1 << 60).once(time.time_ns())
    write = sampled.sampling._write

    def erased(run):
        written = write(run)
        sampled.registry.probes.revoke("probe-1")
        sampled.registry.erasure.erase("probe-1")
        return written

    monkeypatch.setattr(sampled.sampling, "_write", erased)
    sampled.sampling.once(time.time_ns())
    assert sampled.samples.runs("probe-1") == set()


def test_its_thread_goes_on_by_itself(sampled):
    with sampled.sampling:
        wait_for(lambda: sampled.samples.runs("probe-1"))


def test_means_are_of_windows_and_bounds_of_series():
    samples = [
        Piece({"end": end}, np.array([at * S]), {"a": np.array([at]), "b": np.array([True], dtype=object)})
        for at in range(5)
        for end in ("probe", "server")
    ]
    told = [(one.tags["end"], (one.utc_ns // S).tolist(), one.fields["a"].tolist()) for one in means(samples, 2 * S)]
    assert told == [(end, [0, 2, 4], [0.5, 2.5, 4.0]) for end in ("probe", "server")]
    whole = Piece({"end": "probe"}, np.arange(3), {"a": np.arange(3)})
    kept = bounded([*samples[:2], whole, Piece({"end": "a third"}, np.arange(3), {})], 3, 2)
    assert [(one.tags["end"], one.utc_ns.tolist()) for one in kept] == [
        ("probe", [0]),
        ("server", [0]),
        ("probe", [0, 1]),
    ]
