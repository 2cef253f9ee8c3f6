"""How fast a backlog drains: spool → exporter → TLS → gateway → InfluxDB, against the same lines written straight to InfluxDB.

``python tests/bench/bench_drain.py [--seconds N] [--rounds N] [--json]``: loopback only, a whole server in a temporary folder. The two
ways take turns in one run, each with records of its own, the same in number and kind; straight means one client with kept-alive
connection, 1000 lines a request, as the gateway writes. ``ratio``: the drain's rate over the straight one, median of the rounds. Beside
them the stages alone: reading the spool, making lines, gzip; and which rate of uplink the drain would fill. With 900 s a round takes
about half a minute.
"""

import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import benching  # noqa: E402 after the path
from a_second import PER_SECOND, Timed, a_second  # noqa: E402 after the path
from benching import say  # noqa: E402 after the path

from support.serve_on_loopback import Server, await_ready, end, lay_out, start  # noqa: E402 after the path
from tandem.export import Exporter, GatewayAddress, PendingManifests  # noqa: E402 after the path
from tandem.export.exporter import body, encode_items  # noqa: E402 after the path
from tandem.spool import Spool  # noqa: E402 after the path

BOOT = "b1c0ffee-0000-4000-8000-000000000001"
LINES = 1000


class Bench:
    """``seconds``: of recording, in each round and way."""

    def __init__(self, folder, seconds, server):
        self.folder, self.seconds, self.server = folder, seconds, server
        self.round = 0
        self.utc_ns = time.time_ns() - 20 * 86_400 * 10**9

    def filled(self):
        """A spool with a backlog that nobody had before."""
        self.round += 1
        chance = random.Random(self.round)
        spool = Spool(self.folder / f"spool-{self.round}", f"{BOOT[:-3]}{self.round:03d}")
        for second in range(self.seconds):
            spool.append(a_second(second, chance))
        self.times = Timed(self.utc_ns)
        self.utc_ns += self.seconds * 10**9
        return spool

    def both(self, number, of):
        """What ``through`` and ``straight`` give."""
        say(f"round {number} of {of}")
        return self.through(), self.straight()

    def through(self):
        """Records a second through the whole path, and bytes on the wire a record."""
        spool = self.filled()
        (self.folder / "runs").mkdir(exist_ok=True)
        pending = PendingManifests(self.folder / "pending", self.folder / "runs")
        own, gateway = self.server.folder, f"https://127.0.0.1:{self.server.gateway_port}"
        address = GatewayAddress.of(gateway, own / "tls/ca.pem", own / "token")
        sender = Exporter(spool, pending, address, {"a": None}, "probe-1", self.times)
        began = time.monotonic()
        sender.start()
        while spool.counts().pending:
            time.sleep(0.005)
        elapsed = time.monotonic() - began
        if not sender.stop(20.0):
            raise SystemExit("the exporter did not finish")
        spool.flush()
        counts = spool.counts()
        if counts.sent != counts.made:
            raise SystemExit(f"not everything was taken: {counts}")
        spool.close()
        return counts.made / elapsed, sender.payload_bytes()["a"] / counts.made

    def straight(self):
        """Records a second of the same kind written straight, and those of the stages alone."""
        spool = self.filled()
        batches, began = [], time.monotonic()
        while (batch := spool.take(LINES)) is not None:
            batches.append(batch)
            spool.acknowledge(batch)
        read_s = time.monotonic() - began
        began = time.monotonic()
        encoded = [encode_items(b.items, "probe-1", self.times.stamp, b.rejected.__setitem__) for b in batches]
        lines_s = time.monotonic() - began
        began = time.monotonic()
        for lines in encoded:
            body(lines)
        zip_s = time.monotonic() - began
        made = spool.counts().made
        spool.close()
        texts = [[line.text for line in lines] for lines in encoded]
        with self.server.store() as store:
            began = time.monotonic()
            for lines in texts:
                if store.write(lines):
                    raise SystemExit("lines were rejected")
            write_s = time.monotonic() - began
        return {n: made / s for n, s in (("straight", write_s), ("read", read_s), ("lines", lines_s), ("gzip", zip_s))}


def main():
    parser = benching.parser(__doc__)
    recording = f"of recording at {PER_SECOND}/s, a round (default 900)"
    parser.add_argument("--seconds", type=int, default=900, help=recording)
    parser.add_argument("--rounds", type=int, default=3, help="of both ways (default 3)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-drain-") as name, tempfile.TemporaryDirectory() as served:
        own = Path(served)
        server = Server(own, *lay_out(own), start(own), (own / "token").read_text().strip())
        try:
            await_ready(server.process, "endpoint")
            bench = Bench(Path(name), args.seconds, server)
            rounds = [bench.both(number, args.rounds) for number in range(1, args.rounds + 1)]
        finally:
            end(server.process)
    through = statistics.median(t for (t, _), _ in rounds)
    wire = statistics.median(w for (_, w), _ in rounds)
    alone = {name: statistics.median(s[name] for _, s in rounds) for name in rounds[0][1]}
    told = {
        "records_a_round": args.seconds * PER_SECOND,
        "through_per_s": round(through),
        "straight_per_s": round(alone["straight"]),
        "ratio": round(statistics.median(t / s["straight"] for (t, _), s in rounds), 3),
        "stages_alone_per_s": {name: round(rate) for name, rate in alone.items() if name != "straight"},
        "wire_bytes_per_record": round(wire, 1),
        "fills_uplink_mbit_per_s": round(through * wire * 8 / 1e6, 2),
        "day_of_40_per_s_drains_in_min": round(86_400 * PER_SECOND / through / 60, 1),
    }
    if args.json:
        print(json.dumps(told, indent=1))
    else:
        for name, value in told.items():
            print(f"{name:32} {value}")


if __name__ == "__main__":
    main()
