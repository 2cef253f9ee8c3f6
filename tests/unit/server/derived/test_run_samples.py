"""Samples of complete runs come into files, and who reads a run reads the same out of them as out of the database."""

import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.probe_runs import Probe, S
from support.serve_on_loopback import wait_for
from tandem_server.analysis.one_run import RunSource
from tandem_server.analysis.record_files import RecordFiles, schema_of
from tandem_server.analysis.records import InfluxSource, Piece, SourceError
from tandem_server.analysis.run_samples import SAMPLED, RunSamples, SampledSource, bounded, means
from tandem_server.derived.own_series import LedgerSeries
from tandem_server.derived.run_samples import RunSampling
from tandem_server.export.records import RecordExport
from tandem_server.http.rates import NoRoom

WHOLE = (0, 2**62)
DAY_S = 86_400


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

    def late(self, run, samples):
        """Of the sender, when the run has long been complete."""
        for _ in range(samples):
            self.probe.record("subflow", {"run": run, "end": "server", "subflow": "1"}, {"goodput_bit_per_s": 9.0})
        self.probe.send(self.store)

    def forget(self, run):
        for name in SAMPLED:
            self.store.query(f'DROP SERIES FROM "{name}" WHERE "run" = \'{run}\'')

    def export(self, records, start=0, end=2**62):
        """Its samples of this time after one more export into ``records``, how many files were written, and what was lost."""
        exported = RecordExport(self.store, self.samples, "probe-1", records, lambda _: None)
        written = exported.fetch(max(start, self.began - 2 * DAY_S * S), min(end, self.ended + DAY_S * S))[1]
        found = {name: self.rows(RecordFiles(records), name) for name in SAMPLED}
        return found, written, exported.lost

    def damage(self, run, column):
        """Where the values of this column begin."""
        path = self.samples.folder("probe-1", run) / "subflow.parquet"
        at = pq.read_metadata(path).row_group(0).column(schema_of("subflow").names.index(column)).data_page_offset
        content = bytearray(path.read_bytes())
        content[at : at + 8] = b"\xff" * 8
        path.write_bytes(content)


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


@pytest.mark.parametrize("cut_ns", [0, S, 4 * S])
def test_an_export_takes_files_where_there_are_and_has_what_the_database_would_have_given(sampled, tmp_path, cut_ns):
    span = (sampled.began - 3 * S + cut_ns, sampled.ended - cut_ns)
    wanted, _, _ = sampled.export(tmp_path / "without", *span)
    assert {row["run"] for _, row in wanted["subflow"]} == ({"run-2"} if cut_ns == 4 * S else {"run-1", "run-2"})
    sampled.sampling.once(time.time_ns())
    found, written, lost = sampled.export(tmp_path / "with", *span)
    assert (found, lost) == (wanted, {})
    assert sampled.export(tmp_path / "with", *span)[1] == 0
    sampled.forget("run-1")
    assert sampled.export(tmp_path / "later", *span)[:2] == (wanted, written)


def test_an_export_has_samples_that_came_after_the_file_was_made(sampled, tmp_path):
    sampled.sampling.once(time.time_ns())
    before, _, _ = sampled.export(tmp_path / "records")
    sampled.late("run-1", 4)
    after, written, _ = sampled.export(tmp_path / "records")
    assert len(after["subflow"]) == len(before["subflow"]) + 4
    assert after["subflow"] == sampled.rows(InfluxSource(sampled.store), "subflow")
    assert after["connection"] == before["connection"]
    assert 1 <= written <= 2  # a day may have ended meanwhile


@pytest.mark.parametrize("column", [None, "utc_ns", "seq"])
def test_a_damaged_file_costs_its_run_only_where_the_database_has_forgotten_it(sampled, tmp_path, column):
    sampled.sampling.once(time.time_ns())
    wanted, _, _ = sampled.export(tmp_path / "first")
    if column is None:
        (sampled.samples.folder("probe-1", "run-1") / "subflow.parquet").write_bytes(b"PAR1")
    else:
        sampled.damage("run-1", column)
    found, _, lost = sampled.export(tmp_path / "records")
    assert (found, lost) == (wanted, {})
    sampled.forget("run-1")
    lacks, _, lost = sampled.export(tmp_path / "forgotten")
    assert lost == {".samples/run-1/subflow.parquet": "run-1"}
    assert lacks["connection"] == wanted["connection"]
    assert lacks["subflow"] == [one for one in wanted["subflow"] if one[1]["run"] == "run-2"] != []
    sampled.late("run-2", 3)
    kept, _, _ = sampled.export(tmp_path / "records")  # what the first has stays, though the server has it no more
    assert [row["run"] for _, row in kept["subflow"]].count("run-1") == 33


def test_a_run_over_midnight_of_an_older_server_is_in_both_days(sampled, tmp_path):
    midnight = sampled.began // (DAY_S * S) * DAY_S * S
    folder = sampled.samples.folder("probe-1", "run-9")
    folder.mkdir(parents=True)
    rows = [
        {"utc_ns": midnight + n * S, "probe": "probe-1", "boot": "b0", "run": "run-9", "end": "probe", "rtt_ms": 40 + n}
        for n in range(-2, 3)
    ]
    older = [field for field in schema_of("subflow") if field.name not in ("utc_error_ms", "rtt_ms")]
    older.append(pa.field("rtt_ms", pa.int64()))
    pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(older)), folder / "subflow.parquet")
    found, _, _ = sampled.export(tmp_path / "records")
    told = [(at - midnight, row["rtt_ms"]) for at, row in found["subflow"] if row["run"] == "run-9"]
    assert told == [(n * S, 40.0 + n) for n in range(-2, 3)]
    counts = [
        sum(run == "run-9" for run in pq.read_table(path, columns=["run"])["run"].to_pylist())
        for path in sorted((tmp_path / "records" / "subflow").iterdir())
    ]
    assert [count for count in counts if count] == [2, 3]


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
    whole = Piece({"end": "probe"}, np.arange(5), {"a": np.arange(5)})
    kept = bounded([samples[1], whole, Piece({"end": "a third"}, np.arange(3), {})], 3, 2)
    assert [(one.tags["end"], one.utc_ns.tolist()) for one in kept] == [("server", [0]), ("probe", [0, 1, 2])]
