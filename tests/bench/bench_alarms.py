"""What the alarms cost the database: every query of every rule, once a minute, over a week of a fleet.

``python tests/bench/bench_alarms.py [--probes 40] [--days 7] [--times 5]``: fills a private database in a temporary folder (200,000 lines
a probe and week) and asks every rule as Grafana would, as the reader. Printed: the slowest in the median, also as a ratio to
asking who is expected (ten minutes of the server's own series), and what all take together, once a minute.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tandem_dashboards.alarms.files import rules_document
from tandem_dashboards.alarms.reading import rules
from tandem_dashboards.influx import Influx as Asking
from tandem_server.store import PrivateInflux, find_influxd


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probes", type=int, default=40)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--times", type=int, default=5)
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="tandem-alarms-") as folder,
        PrivateInflux(find_influxd(), Path(folder), 0) as private,
    ):
        now_s = int(time.time()) // 60 * 60
        filled = fill(private, args.probes, args.days, now_s)
        password = (private.folder / "reader.password").read_text().strip()
        with Asking(private.url, "tandem", "reader", password, 300.0) as asking:
            print(f"{args.probes} probes, {args.days} days: {filled} lines")
            show(asking, now_s * 1000, args.times)
    return 0


def fill(private: PrivateInflux, probes: int, days: int, now_s: int) -> int:
    """How many lines were written, oldest first."""
    count, batch = 0, []
    with private.client() as store:
        for line in lines(probes, days, now_s):
            batch.append(line)
            if len(batch) == 20_000:
                count += len(batch)
                if store.write(batch):
                    raise SystemExit("the database refuses lines")
                batch = []
        if store.write(batch):
            raise SystemExit("the database refuses lines")
    return count + len(batch)


def lines(probes: int, days: int, now_s: int) -> Iterator[str]:
    """As collectors and server write them, of what alarms ask; two boots a day."""
    for second in range(now_s - days * 86_400, now_s, 10):
        whole, at = second % 60 == 0, f"{second}000000000"
        boot = f"b{second // 43_200}"
        for n in range(probes):
            probe = f"probe=kit-{n}"
            yield (
                f"health,{probe},boot={boot} spool_bytes={second % 977}i,spool_limit_bytes=100000i,undervoltage_seen=0i,"
                f"disk_free_bytes=20000000000i,processor_temperature_degc=50.5"
                + (",disk_used_bytes=9000000000i" if whole else "")
                + f" {at}"
            )
            yield f"spool,{probe},boot={boot} dropped=0i,oldest_s=2.5 {at}"
            if whole:
                yield f"clock,{probe},boot={boot} age_s=60.5 {at}"
                for path in "ab":
                    tags = f"{probe},boot={boot},path={path},operator={path.upper()}"
                    yield f"modem_health,{tags},driver=quectel state_code=0i,state_since_s=5.5 {at}"
                    yield (
                        f"sim_usage,{tags} used_bytes=5i,plan_bytes=10i,expected_bytes=9i,basis_days=9i,reset_in_s=5.5 {at}"
                    )
                yield f"expected,{probe} seen=1i {at}"
                yield f"probe_state,{probe} state_code=0i,since_s=60.0,last_seen_s=3.5 {at}"
                yield f"gateway,{probe},process=1 lines_rejected=0i,answers_503=0i {at}"
                yield f"ledger,{probe},campaign=chen runs_missing=0i {at}"
        if whole:
            yield f"gateway_process,process=1 writes_failed=0i {at}"
            yield f"server_disk,place=store free_bytes=50i,used_bytes=50i {at}"


def show(asking: Asking, at_ms: int, times: int) -> None:
    """The table."""
    medians: dict[str, float] = {}
    for rule in rules(rules_document()):
        for ref, query in rule.queries.items():
            text = query.expanded(at_ms)
            medians[f"{rule.labels['alarm']} {ref}"] = statistics.median(timed(asking, text) for _ in range(times))
    cheapest = medians["probe-silent expected"]
    for name in sorted(medians, key=medians.__getitem__)[-5:]:
        print(f"{medians[name] * 1000:8.1f} ms, {medians[name] / cheapest:6.1f} times as long: {name}")
    print(f"{len(medians)} queries, all of them once a minute: {sum(medians.values()):.2f} s")


def timed(asking: Asking, text: str) -> float:
    began = time.perf_counter()
    asking.ask(text)
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
