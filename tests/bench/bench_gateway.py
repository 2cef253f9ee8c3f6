"""The gateway under load, in front of the real database: how fast it drains, and what a thousand probes cost it.

``drain``: a backlog of batches of 1000 lines, gzipped as the exporter does it, over a few kept connections; the same lines straight into
InfluxDB by ``/write``, in the same run, turn by turn. ``probes``: a thousand probes with tokens and connections of their own, each
a batch of 20 lines a second (``gateway_load.py``), while a client asks the database when records can be read.

    python tests/bench/bench_gateway.py [drain|probes] [--seconds 300] [--probes 1000] [--processes 1] [--json FILE]

Prints one JSON object. The drain's ``ratio``: its rate over the straight one, median of three turns; it takes about two minutes. The probes
take a minute more than --seconds. The load, the client, the gateway and the database share the machine: ``cpu_share`` says what each
took of a core.
"""

import gzip
import http.client
import json
import os
import platform
import random
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests' support

import benching
import gateway_batches
from benching import cpu_s, rss_mib, say, tree
from gateway_load import shares

from support.serve_on_loopback import free_ports
from tandem_server.registry import Registry
from tandem_server.store import Influx, find_influxd
from tandem_server.store.private import account_password

HERE = Path(__file__).parent
MARKED = 5
WATCH_S = 0.1
WARM_S = 15
"""Of load before anything is counted: the first batches of a thousand probes make all their series at once, as they never would again."""
BATCH = 1000


class Rig:
    """Database and gateway, as ``tandem-server serve`` runs them, with ``probes`` registered."""

    def __init__(self, folder, probes, processes, more=""):
        self.folder = folder
        gateway, control, measurement, database = free_ports(4)
        self.port, self.database_port = gateway, database
        text = f'[listen]\nhost = "127.0.0.1"\ngateway_port = {gateway}\ncontrol_port = {control}\nmeasurement_port = {measurement}\n'
        if processes:
            text += f"gateway_processes = {processes}\n"
        text += f'[store]\nport = {database}\nbinary = "{find_influxd()}"\n{more}'
        # All of them come from one address and at once, which no thousand probes do.
        text += "[limits]\nnew_connections_per_address = 1_000_000\nhttps_strangers = 2000\nhttps_strangers_per_address = 2000\n"
        text += "probe_requests_per_minute = 1_000_000\nprobe_lines_per_minute = 1_000_000_000\n"
        text += "probe_sent_bytes_per_minute = 1_000_000_000_000\n"
        (folder / "server.toml").write_text(text)
        program = [sys.executable, "-m", "tandem_server"]
        tls = ["tls", "--folder", str(folder / "tls"), "--name", "x", "--address", "127.0.0.1"]
        subprocess.run([*program, *tls], check=True)
        with Registry(folder / "registry.sqlite") as registry:
            self.tokens = [registry.probes.add(f"load-{i:04d}") for i in range(probes)]
        self.processes = {}
        for role in ("database", "gateway", "worker"):
            serve = [*program, "serve", role, "--config", str(folder / "server.toml")]
            with (folder / f"{role}.log").open("wb") as log:
                self.processes[role] = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=log, text=True)
            for line in self.processes[role].stdout:
                if line.startswith(f"ready {role}"):
                    break
            else:
                self.stop()
                raise SystemExit(f"{role} did not start: {(folder / f'{role}.log').read_text()[-500:]}")
        self.ca = folder / "tls/ca.pem"
        self.password = account_password(folder / "influxdb")

    def store(self):
        return Influx(f"http://127.0.0.1:{self.database_port}", "tandem", "tandem", self.password)

    def cpu(self):
        """CPU seconds so far by part. The database's watcher counts with it."""
        return {role: sum(map(cpu_s, tree(process.pid))) for role, process in self.processes.items()}

    def gateway_pids(self):
        return tree(self.processes["gateway"].pid)

    def stop(self):
        for process in reversed(self.processes.values()):
            process.terminate()
            process.stdout.close()
            process.wait()


def share(before, after, took_s):
    return {name: round((after[name] - before[name]) / took_s, 3) for name in before}


# --- drain


def backlog(batches, boot):
    """Texts of ``BATCH`` lines, each line once, times apart."""
    chance, texts = random.Random(boot), []
    parts = range(BATCH // gateway_batches.LINES)
    whole = "\n".join(gateway_batches.template(chance, "load-0000", boot, "run-backlog") for _ in parts)
    first_ns = time.time_ns() - batches * BATCH * 50_000_000
    for batch in range(batches):
        numbers = []
        for part in parts:
            seq = batch * BATCH + part * gateway_batches.LINES
            at_ns = first_ns + (seq + gateway_batches.LINES) * 50_000_000
            numbers += gateway_batches.numbers(seq + 1, 10**12 + at_ns - first_ns, at_ns)
        texts.append(whole % tuple(numbers))
    return texts


def in_turn(items, connections, each):
    """``each(item, state)`` for all of them by so many threads, each with a state of its own; seconds taken."""
    states, began_s = threading.local(), time.monotonic()
    with ThreadPoolExecutor(connections) as many:
        list(many.map(lambda item: each(item, vars(states)), items))
    return time.monotonic() - began_s


def drain(rig, seconds, connections):
    """Lines a second through the gateway and straight, turn by turn; each turn has lines of its own."""
    context = ssl.create_default_context(cafile=rig.ca)
    head = {"Authorization": f"Bearer {rig.tokens[0]}", "Content-Encoding": "gzip"}
    again = {"n": 0}

    def through(body, state):
        link = state.setdefault("link", http.client.HTTPSConnection("127.0.0.1", rig.port, context=context))
        while True:
            link.request("POST", "/v1/records", body, head)
            answer = link.getresponse()
            told = json.loads(answer.read())
            if answer.status == 200:
                break
            again["n"] += 1
            time.sleep(float(answer.headers["Retry-After"]))
        if told["accepted"] != BATCH:
            raise SystemExit(f"lines were rejected: {told['rejected'][:1]}")

    straight = rig.store()
    batches, rounds = max(4, round(seconds * 6)), []
    for turn in range(3):
        say(f"drain over {connections} connections, turn {turn + 1} of 3")
        texts = backlog(batches, f"through-{turn}-{connections}")
        bodies = [gzip.compress(text.encode(), 6, mtime=0) for text in texts]
        before, began_s = rig.cpu(), time.monotonic()
        through_s = in_turn(bodies, connections, through)
        cpu = share(before, rig.cpu(), time.monotonic() - began_s)
        lines = [text.split("\n") for text in backlog(batches, f"straight-{turn}-{connections}")]
        straight_s = in_turn(lines, connections, lambda part, _: straight.write(part))
        count = batches * BATCH
        rates = {"through": round(count / through_s), "straight": round(count / straight_s)}
        rounds.append({**rates, "ratio": round(straight_s / through_s, 3), "cpu_share": cpu})
        counted = straight.query(f'SELECT count("seq") FROM subflow WHERE "boot" = \'through-{turn}-{connections}\'')  # noqa: S608
        if counted[0].rows[0][1] != count * 12 // 20:
            raise SystemExit("the database does not hold what was acknowledged")
    ratio = statistics.median(one["ratio"] for one in rounds)
    sizes = {"connections": connections, "lines_a_turn": batches * BATCH}
    return {**sizes, "ratio": ratio, "told_503": again["n"], "turns": rounds}


# --- probes


def started(asked):
    pipe, command = subprocess.PIPE, [sys.executable, str(HERE / "gateway_load.py")]
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    process.stdin.write(json.dumps(asked) + "\n")
    process.stdin.flush()
    if process.stdout.readline() != "ready\n":
        raise SystemExit("gateway_load.py did not start")
    return process


def told(process, line="\n"):
    process.stdin.write(line)
    process.stdin.flush()


def probes(rig, seconds):
    """A thousand probes for ``seconds``."""
    idle = rss_mib(rig.gateway_pids())
    login = {"url": f"http://127.0.0.1:{rig.database_port}", "user": "tandem", "password": rig.password}
    names = [f"load-{i:04d}" for i in range(0, len(rig.tokens), max(1, len(rig.tokens) // MARKED - 1))][:MARKED]
    asked = {"port": rig.port, "ca": str(rig.ca), "tokens": rig.tokens, "seconds": seconds, "warm_s": WARM_S}
    load = started(asked)
    connected = rss_mib(rig.gateway_pids())
    told(load)
    say(f"{len(rig.tokens)} probes are connected: {WARM_S} s to warm, then {seconds} s")
    load.stdout.readline()  # warm: all series are there
    watch = started({**login, "probes": names, "period_s": WATCH_S})
    before = {**rig.cpu(), "load": cpu_s(load.pid), "watch": cpu_s(watch.pid)}
    began_s, series = time.monotonic(), []
    end = threading.Event()

    def measure():
        while not end.wait(1.0):
            database = tree(rig.processes["database"].pid)[1:]
            series.append((time.monotonic() - began_s, rss_mib(rig.gateway_pids()), rss_mib(database)))

    measuring = threading.Thread(target=measure)
    measuring.start()
    result = json.loads(load.stdout.readline())
    after_s = time.monotonic()
    after = {**rig.cpu(), "load": cpu_s(load.pid), "watch": cpu_s(watch.pid)}
    end.set()
    measuring.join()
    time.sleep(2 * WATCH_S)  # the client's period, twice: it has seen what came last
    told(watch)
    seen = json.loads(watch.stdout.readline())
    for process in (load, watch):
        process.stdin.close()
        process.stdout.close()
        process.wait()
    with rig.store() as store:
        counts = [store.query(f'SELECT count("seq") FROM "{kind}"') for kind in gateway_batches.COUNTS]  # noqa: S608
    held = sum(answer[0].rows[0][1] for answer in counts if answer)
    answers = sum(result["statuses"].values())
    of_newest = seen["newest_ms"]
    of_all = [ms + 50 * k for ms in of_newest for k in range(gateway_batches.LINES)]
    return {
        "probes": len(rig.tokens),
        "seconds": seconds,
        "answers_share": {code: round(count / answers, 5) for code, count in result["statuses"].items()},
        "records_acknowledged": result["acknowledged"],
        "records_in_database": held,
        "made_to_queryable_ms": {**shares(of_all), "samples": len(of_newest)},
        "sent_to_queryable_ms": shares(of_newest),
        "counted_s": round(after_s - began_s, 1),
        "gateway_rss_mib": {
            "idle": round(idle, 1),
            "connected": round(connected, 1),
            "peak": round(max(one[1] for one in series), 1),
            "slope_mib_a_minute": round(60 * slope(series), 2),
        },
        "database_peak_rss_mib": round(max(one[2] for one in series)),
        "cpu_share": share(before, after, after_s - began_s),
        "load": {k: v for k, v in result.items() if k not in ("statuses", "began_utc_ns")},
        "watch": {"queries": seen["queries"], "slowest_query_s": round(seen["slowest_query_s"], 3)},
    }


def slope(series):
    """MiB a second by least squares, without the first fifth (caches fill)."""
    at_s, mib, _ = zip(*series[len(series) // 5 :], strict=True)
    return statistics.linear_regression(at_s, mib).slope if len(at_s) > 1 else 0.0


def main():
    parser = benching.parser(__doc__, json_file="write the object there too")
    parser.add_argument("what", nargs="?", choices=("drain", "probes"), help="one of them only")
    parser.add_argument(
        "--seconds", type=int, default=300, help="of the probes' load; a tenth of it a turn of the drain"
    )
    parser.add_argument("--probes", type=int, default=1000, help="(default 1000)")
    parser.add_argument("--processes", type=int, default=0, help="[listen] gateway_processes; 0: its default")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 4], help="that drain at once")
    args = parser.parse_args()
    machine = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
    results = {"machine": {**machine, "load_before": os.getloadavg()[0]}}
    for what in [args.what] if args.what else ["drain", "probes"]:
        with tempfile.TemporaryDirectory() as name:
            rig = Rig(Path(name), args.probes if what == "probes" else 1, args.processes)
            try:
                if what == "drain":
                    results["drain"] = [drain(rig, min(10, args.seconds / 10), n) for n in args.connections]
                else:
                    results["probes"] = probes(rig, args.seconds)
            finally:
                rig.stop()
            results[f"{what}_log"] = (Path(name) / "gateway.log").read_text()[-600:].splitlines()[-3:]
    print(json.dumps(results, indent=1))
    benching.keep(args.json, results)


if __name__ == "__main__":
    main()
