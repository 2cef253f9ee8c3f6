"""How long the ledger takes over thousands of runs: counted for the first time, again, with one new run, and a query a run and kind;
and how long its series take once a minute.

``python tests/bench/bench_ledger.py [--runs 10000] [--samples 20] [--json]``: makes the runs in a private database and a registry
in a temporary folder, with the probes' polls between them, and prints seconds and ratios. A query a run and kind is measured
over some of the runs only, and is told for all of them.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "ledger"))

from told import Probe, S, ledger

from tandem_server.ingest.ledger_series import LedgerSeries
from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.tally import Tally
from tandem_server.registry import Registry
from tandem_server.store import PrivateInflux, find_influxd

ONE_BY_ONE = ("subflow", "connection", "run", "run_usage", "phase")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--samples", type=int, default=20, help="of subflow and of connection, a run")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="tandem-ledger-") as folder,
        Registry(Path(folder) / "r.sqlite") as registry,
        PrivateInflux(find_influxd(), Path(folder) / "influx", 0) as database,
        database.client() as store,
    ):
        told = measure(registry, store, args.runs, args.samples)
    if args.json:
        print(json.dumps(told, indent=1))
    else:
        for name, value in told.items():
            print(f"{name:<36} {value}")


def measure(registry, store, runs, samples):
    probes = [Probe(f"probe-{n}", f"boot-{n}", f"{n:012x}", now_ns=time.time_ns() - 80 * 86_400 * S) for n in range(10)]
    for probe in probes:
        registry.probes.add(probe.name)
    for number in range(runs):
        probe = probes[number % len(probes)]
        probe.polls(20)
        manifest = probe.run(f"run-{number:012x}", samples)
        registry.runs.put(manifest["id"], probe.name, manifest)
        probe.now_ns += 600 * S
        if len(probe.lines) > 5000:
            probe.send(store)
    for probe in probes:
        probe.tell()
        probe.send(store)
    records = sum(probe.seq for probe in probes)
    tally = Tally(registry, RecordCounts(store), None)
    tally_s, looked = timed(lambda: tally.bring_up(time.time_ns(), 1e9))
    assert looked == runs
    registry.counted.forget()
    tally.bring_up(time.time_ns(), 0)  # what was forgotten is due again: here only to empty the queue
    first_s, found = timed(lambda: ledger(registry, store, retention_days=None))
    assert not found.lacks
    again_s, _ = timed(lambda: ledger(registry, store))
    tally.bring_up(time.time_ns(), 1e9)
    series = LedgerSeries(registry, store, None)
    series_first_s, _ = timed(lambda: series.once(time.time_ns()))
    quiet_s, _ = timed(lambda: series.once(time.time_ns()))
    manifest = probes[0].run("run-new", samples)
    registry.runs.put("run-new", probes[0].name, manifest)
    probes[0].tell()
    probes[0].send(store)
    series_one_s, _ = timed(lambda: series.once(time.time_ns()))
    one_s, found = timed(lambda: ledger(registry, store))
    assert not found.lacks
    some = found.runs[: min(200, runs)]
    each_s, _ = timed(lambda: [one_by_one(store, row) for row in some])
    store.query('DROP SERIES FROM "subflow" WHERE "run" = \'run-000000000007\'')
    lost_s, found = timed(lambda: ledger(registry, store, recount=True))
    assert [row.id for row in found.runs if row.missing] == ["run-000000000007"]
    all_s = each_s / len(some) * runs
    return {
        "runs": runs,
        "records": records,
        "first time, s": round(first_s, 2),
        "again, s": round(again_s, 2),
        "with one new run, s": round(one_s, 2),
        "all again, one run lost, s": round(lost_s, 2),
        "the series' runs, first time, s": round(tally_s, 2),
        "the series with accounts of records, s": round(series_first_s, 2),
        "the series, nothing new, s": round(quiet_s, 4),
        "the series, one new run, s": round(series_one_s, 4),
        "again against the series": round(again_s / quiet_s, 1),
        "a query a run and kind, s (of 200)": round(all_s, 1),
        "that against the first time": round(all_s / first_s, 1),
        "the first time against again": round(first_s / again_s, 1),
    }


def one_by_one(store, row):
    for name in ONE_BY_ONE:
        store.query(
            f'SELECT count("seq") FROM "{name}" WHERE "run" = $run AND "probe" = $probe',  # noqa: S608  constants
            {"run": row.id, "probe": row.probe},
        )


def timed(action):
    began = time.perf_counter()
    found = action()
    return time.perf_counter() - began, found


if __name__ == "__main__":
    main()
