"""Time and memory of ``tandem-server campaign export``, by days: ``bench_export.py [--kits 2] [--days 2] [--json FILE]``; with
``--report-only`` of a report of as much, whose folder is written without a database: one of ten kits and a month takes long to fill.

A database is filled as kits fill it (a poll a second of two modems, thirty runs a day of half a minute with ten samples a second of two
subflows at both ends), then the first day is exported, the first two, and so on doubling, each into a new folder by a process of its own;
then the last once more, which has nothing to do; then the last is reported, its kits pooled. Memory is that process's peak, resident:
``peak_mib`` with files that it has mapped, ``own_mib`` without. The ratio is ``own_mib`` of all days over that of the first.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import benching
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benching import say

from tandem_server.analysis.record_files import TIME, day_file, schema_of
from tandem_server.registry import Registry
from tandem_server.store import PrivateInflux, find_influxd

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
BEGIN_NS = int(BEGIN.timestamp()) * 10**9
DAY_S, RUNS, RUN_S, AT_ONCE = 86_400, 30, 30, 5000
RADIO = "rsrp_dbm=-{0}.5,rsrq_db=-11,sinr_db=7.5,rssi_dbm=-70,eci={1}i,pci=17i,earfcn=1300i,tac=5i,poll_duration_ms=14.2,poll_late_ms=0.4"
FLOW = "goodput_bit_per_s={0}e4,rtt_ms=4{0}.5,bytes_acked={1}i,rcv_ooo_packets=0i"


def runs(kit: str, days: int) -> Iterator[tuple[str, int]]:
    """Id and beginning in s."""
    for number in range(RUNS * days):
        yield f"run-{kit}-{number:06d}", number * DAY_S // RUNS + 600


def lines(kit: str, days: int) -> Iterator[str]:
    seq = 0

    def line(head: str, fields: str, at_ns: int) -> str:
        nonlocal seq
        seq += 1
        return f"{head},probe={kit},boot=b0 {fields},monotonic_ns={at_ns}i,seq={seq}i {BEGIN_NS + at_ns}"

    for s in range(days * DAY_S):
        for path in "ab":
            fields = f'{RADIO.format(80 + s % 30, 100 + s // 600)},state="connected"'
            yield line(f"radio,path={path},operator={path.upper()},driver=quectel,rat=LTE", fields, s * 10**9)
    for run, begun in runs(kit, days):
        for tick in range(RUN_S * 10):
            for path in "ab":
                for end in ("probe", "server"):
                    head = f"subflow,run={run},path={path},operator={path.upper()},subflow={path},end={end}"
                    yield line(head, FLOW.format(tick % 10, tick * 1000), begun * 10**9 + tick * 10**8)


def manifest(kit: str, run: str, begun_s: int) -> dict:
    start = BEGIN_NS + begun_s * 10**9
    told = f"""{{
        "format": "tandem-run/1", "id": "{run}", "probe": "{kit}", "boot": "b0", "pair": "{run}", "pairing": "single", "kind": "mptcp",
        "paths": ["a", "b"], "trigger": "", "experiment": {{"name": "download", "version": 1}}, "parameters": {{}},
        "started_utc_ns": {start}, "ended_utc_ns": {start + RUN_S * 10**9}, "records": {{"subflow": {RUN_S * 40}}},
        "result": {{"bytes": 1, "duration_s": 1.0, "goodput_bit_per_s": 8.0}}, "failure": null, "files": [],
        "environment": {{"further": "{"x" * 8000}"}},
        "campaign": {{"name": "filled", "form": "paper", "step": "a", "number": 0, "repetition": 0, "arm": 0, "attempt": 1}}
    }}"""
    made: dict = json.loads(told)
    return made


def write_folder(folder: Path, kits: list[str], days: int, every_s: int) -> int:
    """What an export of all of it writes, by columns and without a database; how many records."""
    told = {"format": "tandem-campaign/1", "scenario": "filled", "export": {"name": "filled"}, "stopped": None}
    told |= {"started_utc_ns": BEGIN_NS, "ended_utc_ns": BEGIN_NS + days * DAY_S * 10**9}
    told |= {"probe": kits[0], "traces": False}
    told |= {"probes": {kit: {"paths": {path: {"operator": path.upper()} for path in "ab"}} for kit in kits}}
    written = 0
    for kit in kits:
        own = folder / "probe" / kit
        (own / "runs").mkdir(parents=True)
        begins = list(runs(kit, days))
        for run, begun in begins:
            (own / "runs" / f"{run}.json").write_text(json.dumps(manifest(kit, run, begun)))
        for day in range(days):
            polls = np.arange(day * DAY_S, (day + 1) * DAY_S, every_s)
            at, path = np.tile(polls, 2), np.repeat(["a", "b"], len(polls))
            fields = {"rsrp_dbm": -80.5 - at % 30, "rsrq_db": -11.0, "sinr_db": 7.5, "rssi_dbm": -70.0}
            fields |= {"tac": 5, "pci": 17}
            fields |= {"eci": 100 + at // 600, "earfcn": 1300, "poll_duration_ms": 14.2, "poll_late_ms": 0.4}
            fields |= {"state": "connected"}
            tags = {"path": path, "operator": np.char.upper(path), "driver": "quectel", "rat": "LTE"}
            written += write_day(own, "radio", kit, at * 10**9, tags | fields, 1 + written)
            mine = [(run, begun) for run, begun in begins if day * DAY_S <= begun < (day + 1) * DAY_S]
            tick = np.arange(RUN_S * 10)
            number = len(tick) * 4
            at = np.concatenate([begun * 10**9 + np.tile(tick, 4) * 10**8 for _, begun in mine])
            path = np.tile(np.repeat(["a", "b", "a", "b"], len(tick)), len(mine))
            tags = {"run": np.repeat([run for run, _ in mine], number), "path": path, "operator": np.char.upper(path)}
            ends = np.repeat(["probe", "probe", "server", "server"], len(tick))
            tags |= {"subflow": path, "end": np.tile(ends, len(mine))}
            tenth = at // 10**8 % 10
            fields = {"goodput_bit_per_s": tenth * 1e4, "rtt_ms": 40.5 + tenth, "rcv_ooo_packets": 0}
            written += write_day(own, "subflow", kit, at, tags | fields, 1 + written)
    (folder / "campaign.json").write_text(json.dumps({**told, "duration_s": days * DAY_S}))
    (folder / "ledger.json").write_text(json.dumps({"by_probe": {}, "spools": [], "damaged": []}))
    return written


def write_day(own: Path, measurement: str, kit: str, at_ns: np.ndarray, columns: dict, seq: int) -> int:
    schema = schema_of(measurement)
    given = {TIME: BEGIN_NS + at_ns, "probe": kit, "boot": "b0", "monotonic_ns": at_ns}
    given |= {"seq": seq + np.arange(len(at_ns)), **columns}
    arrays = []
    for field in schema:
        value = given.get(field.name)
        whole = value if isinstance(value, np.ndarray) else np.full(len(at_ns), value)
        arrays.append(pa.nulls(len(at_ns), field.type) if value is None else pa.array(whole.tolist(), field.type))
    path = day_file(own / "records", measurement, int(BEGIN_NS + at_ns.min()))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), path, compression="zstd", row_group_size=16_384)
    return len(at_ns)


def export(config: Path, out: Path, days: int) -> dict:
    last = (BEGIN + timedelta(days=days - 1)).date()
    asked = ["--from", str(BEGIN.date()), "--to", str(last), "--out", str(out), "--config", str(config)]
    return {"days": days, **measured(out, "campaign", "export", "filled", *asked)}


def measured(out: Path, *command: str) -> dict:
    say(f"tandem-server {' '.join(command)}")
    began = time.monotonic()
    pid = os.posix_spawn(sys.executable, [sys.executable, "-m", "tandem_server", *command], os.environ)
    own_mib, ended = 0.0, False
    while not ended:
        # Its own memory; what it has mapped of files the kernel takes back when it needs it, and ru_maxrss counts it.
        status = Path(f"/proc/{pid}/status").read_text()
        own_mib = max(own_mib, int(status.partition("RssAnon:")[2].split()[0]) / 1024 if "RssAnon:" in status else 0.0)
        time.sleep(0.1)
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    _, status, used = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        sys.exit(f"{command[0]} failed")
    took = time.monotonic() - began
    size = sum(f.stat().st_size for f in out.rglob("*") if f.is_file())
    rss = used.ru_maxrss / 1024
    return {"seconds": took, "peak_mib": rss, "own_mib": own_mib, "cpu_s": used.ru_utime, "mb": size / 1e6}


def show(rows: list[dict]) -> None:
    for row in rows:
        print("  ".join(f"{key} {value:.1f}" for key, value in row.items()))


def keep(args: Namespace, told: dict) -> None:
    benching.keep(args.json, {"kits": args.kits, "days": args.days, **told})


def main() -> int:
    parser = benching.parser(__doc__, json_file="the figures as JSON too")
    parser.add_argument("--kits", type=int, default=2, help="how many fill the database [2]")
    parser.add_argument("--days", type=int, default=2, help="of each [2]")
    parser.add_argument("--report-only", action="store_true", help="no database and no export")
    parser.add_argument("--poll-every", type=int, default=1, metavar="S", help="of each modem, with --report-only [1]")
    args = parser.parse_args()
    kits = [f"kit-{n:02d}" for n in range(1, args.kits + 1)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if args.report_only:
            say("writing the folder")
            written = write_folder(folder, kits, args.days, args.poll_every)
            print(f"{args.kits} kits, {args.days} days: {written} records")
            pooled = measured(folder, "report", str(folder))
            show([pooled])
            keep(args, {"records": written, "report": pooled})
            return 0
        with Registry(folder / "registry.sqlite") as registry:
            for kit in kits:
                registry.probes.add(kit)
                for run, begun in runs(kit, args.days):
                    registry.runs.put(run, kit, manifest(kit, run, begun))
        with PrivateInflux(find_influxd(), folder / "influxdb", 0) as influx, closing(influx.client()) as client:
            config = folder / "server.toml"
            stores = f'[store]\nfolder = "influxdb"\nport = {influx.port}\n[traces]\nfolder = "traces"\n'
            config.write_text(f'{stores}[registry]\nfile = "registry.sqlite"\n')
            filled, began = 0, time.monotonic()
            for kit in kits:
                every = lines(kit, args.days)
                while some := list(islice(every, AT_ONCE)):
                    refused = client.write(some)
                    if refused:
                        sys.exit(refused[0].reason)
                    filled += len(some)
                say(f"{kit}: filled, {filled} records by now")
            print(f"{args.kits} kits, {args.days} days: {filled} records, filled in {time.monotonic() - began:.0f} s")
            spans = [1 << n for n in range(args.days.bit_length()) if 1 << n < args.days]
            rows = [export(config, folder / f"out-{days}", days) for days in (*spans, args.days)]
            last = folder / f"out-{args.days}"
            rows.append(export(config, last, args.days))
        pooled = measured(last, "report", str(last))
    show([*rows, pooled])
    ratio = rows[-2]["own_mib"] / rows[0]["own_mib"]
    print(f"memory of the export of {args.days} days over that of one: {ratio:.2f}")
    keep(args, {"records": filled, "exports": rows, "own_mib_over_one_day": ratio, "report": pooled})
    return 0


if __name__ == "__main__":
    sys.exit(main())
