"""When can a record be read? Asks the database for the newest records of marked probes, again and again, and notes when each was
first seen.

Started by ``bench_gateway.py``: one JSON object on stdin; a line on stdin ends it; then it prints a JSON object. A figure is at most one
period and one query too large, never too small.
"""

import json
import select
import sys
import time

from tandem_server.store import Influx


def main():
    asked = json.loads(sys.stdin.readline())
    store = Influx(asked["url"], "tandem", asked["user"], asked["password"])
    probes = " OR ".join(f"\"probe\" = '{name}'" for name in asked["probes"])
    newest = dict.fromkeys(asked["probes"], time.time_ns())
    newest_ms, queries, slowest_s = [], 0, 0.0
    print("ready", flush=True)
    while True:
        began_s = time.monotonic()
        since = min(newest.values())
        answer = store.query(f'SELECT "seq" FROM "connection" WHERE time > {since} AND ({probes}) GROUP BY "probe"')  # noqa: S608
        seen_ns = time.time_ns()
        queries += 1
        slowest_s = max(slowest_s, time.monotonic() - began_s)
        for series in answer:
            name = series.tags["probe"]
            fresh = sorted(at for at in series.column("time") if at > newest[name])
            if not fresh:
                continue
            # A batch's records lie 50 ms apart, two batches' about a second: each batch counts by its newest.
            ends = [
                at
                for at, after in zip(fresh, [*fresh[1:], None], strict=True)
                if after is None or after - at > 500_000_000
            ]
            newest_ms += [(seen_ns - at) / 1e6 for at in ends]
            newest[name] = max([newest[name], *fresh])
        left_s = asked["period_s"] - (time.monotonic() - began_s)
        if select.select([sys.stdin], [], [], max(0.0, left_s))[0]:
            break
    print(json.dumps({"newest_ms": newest_ms, "queries": queries, "slowest_query_s": slowest_s}), flush=True)


if __name__ == "__main__":
    main()
