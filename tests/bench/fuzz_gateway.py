"""Everything the gateway reads of strangers, mutated: batches of lines, bodies and gzip, manifests, offers of traces, reports of campaigns.

    ./kit run python tests/bench/fuzz_gateway.py [--seconds 60] [--seed 1]

Each input must end in its answer or in one of the errors made for it, in bounded time and memory. Lines are judged twice, as the
gateway does and without what it remembers of earlier lines; both must agree, and what passes is written to a real InfluxDB, which must
take all of it.
Exit status 1, and the input, when one of that fails.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests' support

import fuzzing
import gateway_batches

from support.offers import offer_of
from support.probe_runs import MANIFEST
from tandem.schema.campaign_queue import QueueError, read_report
from tandem.schema.line_protocol import parse
from tandem.schema.trace import TraceError, read_offer
from tandem_server.http.body import Unreadable, decode
from tandem_server.ingest.documents import InvalidManifest, read_manifest
from tandem_server.ingest.lines import FastPathCache, TimeWindow, TooMuch, validate_batch
from tandem_server.store import PrivateInflux, find_influxd

LIMIT_BYTES = 256 * 1024
SLOWEST_S = 60.0
"""No input here is large: what takes longer hangs, also on a busy machine."""
MORE_MEMORY_BYTES = 200 * 2**20

TOKENS = [
    b"", b" ", b"  ", b",", b"=", b"\\", b'"', b"\n", b"\r", b"\r\n", b"\x00", b"\xff", "é\u2028".encode(), b"i", b"e", b"-", b"+", b".",
    b"0", b"1", b"NaN", b"inf", b"true", b"t", b"-0.0", b"1e308", b"1e-400", b"99999999999999999999i", b"9223372036854775807i", b"seq=1i",
    b"monotonic_ns=1i", b"probe=x", b",boot=b", b"#", b"[]{}", b"_1_", b"0x1", b"1.0.0", b'"a b,c=d"', b"-9223372036854775808i",
]  # fmt: skip


class Failed(Exception):  # noqa: N818  (told by main)
    """An invariant does not hold."""


def mutated_json(chance, told):
    """With up to five values changed; half of the time also bytes."""
    text = json.dumps(fuzzing.changed(chance, told, chance.randint(0, 5))).encode()
    if chance.random() < 0.02:
        text = b"[" * 100_000 + text
    return fuzzing.scratched(chance, text, TOKENS) if chance.random() < 0.5 else text


class Fuzz:
    def __init__(self, chance, store):
        self.chance, self.store = chance, store
        self.heads, self.passed, self.counts = FastPathCache(), [], Counter()
        offer = offer_of(io.BytesIO(bytes(range(256)) * 300), "captures/pair-1-a.pcap", "run-1", "gzip", 16 * 1024)
        self.offer = offer.as_json()
        self.report = {"state": "running", "reason": None, "steps": {"one": {"made": 3, "of": 20}}}
        self.report |= {"runs": {"ok": 2, "failed": 1}}
        template = gateway_batches.template
        self.templates = [template(random.Random(i), f"probe-{i}", f"boot-{i}", "run-1") for i in range(20)]
        self.bombs = [gzip.compress(bytes(size)) for size in (LIMIT_BYTES, LIMIT_BYTES + 1, 1 << 20, 1 << 24)]
        self.last = b""

    def lines(self):
        chance, now = self.chance, time.time_ns()
        whole = chance.choice(self.templates) % gateway_batches.numbers(chance.randint(1, 10**6), now // 1000, now)
        some = chance.sample(whole.split("\n"), chance.randint(1, 4))
        self.last = fuzzing.scratched(chance, "\n".join(some).encode(), TOKENS, chance.choice((0, 2, 8)))
        try:
            text = decode(self.last, None, LIMIT_BYTES)
        except Unreadable:
            return "unreadable"
        window = TimeWindow.at(now, 600.0, None)
        mine, reference = validate_batch(text, "probe-1", window, self.heads), validate_batch(text, "probe-1", window)
        if (mine.origins, mine.rejected) != (reference.origins, reference.rejected):
            raise Failed("judged otherwise than by the reference")
        for one, other in zip(mine.lines, reference.lines, strict=True):
            if not _same(parse(one), parse(other)):
                raise Failed(f"stored another point: {one!r}, {other!r}")
        self.passed += mine.lines
        if len(self.passed) >= 2000:
            self.write()
        return "all stored" if not mine.rejected else "some rejected" if mine.lines else "all rejected"

    def write(self):
        """What passed is what the database takes."""
        lines, self.passed = self.passed, []
        for refused in self.store.write(lines):
            self.last = lines[refused.index].encode()
            raise Failed(f"the database refuses what was checked: {refused.reason}")
        self.counts["lines: taken by InfluxDB"] += len(lines)

    def body(self):
        chance = self.chance
        kind = chance.randrange(4)
        plain = chance.randbytes(chance.randint(0, 2000)) if kind == 0 else b"x" * chance.randint(0, 3000)
        packed = gzip.compress(plain, chance.randint(0, 9)) * chance.randint(1, 3 if kind != 2 else 40)
        if kind == 1:
            packed = chance.choice(self.bombs) * chance.randint(1, 3)
        self.last = fuzzing.scratched(chance, packed, TOKENS, chance.choice((0, 0, 3)))
        encoding = chance.choice(("gzip", "gzip", "gzip", None, "identity", "br", ""))
        try:
            text = decode(self.last, encoding, LIMIT_BYTES)
        except Unreadable:
            return "unreadable"
        except TooMuch:
            return "too much"
        if len(text.encode()) > LIMIT_BYTES and encoding == "gzip":
            raise Failed("more than the limit")
        return "read"

    def manifest(self):
        self.last = mutated_json(self.chance, MANIFEST)
        try:
            read_manifest(self.last.decode("utf-8", "replace"), MANIFEST["id"], MANIFEST["probe"])
        except InvalidManifest as error:
            return _one_line(error)
        return "read"

    def offers(self):
        return self._json(self.offer, read_offer, TraceError)

    def reports(self):
        return self._json(self.report, read_report, QueueError)

    def _json(self, told, read, refusal):
        self.last = mutated_json(self.chance, told)
        try:
            content = json.loads(self.last)
        except (ValueError, RecursionError):
            return "not JSON"  # the routes turn these two into 400
        try:
            read(content)
        except refusal as error:
            return _one_line(error)
        return "read"


def _one_line(error):
    if "\n" in str(error) or not str(error):
        raise Failed(f"not one line: {error!r}")
    return "refused"


def _same(one, other):
    if one != other:
        return False
    pairs = ((one.fields[name], other.fields[name]) for name in one.fields)
    return all(
        type(a) is type(b) and (not isinstance(a, float) or math.copysign(1, a) == math.copysign(1, b))
        for a, b in pairs
    )


def main() -> int:
    args, slowest_s = fuzzing.parser(__doc__).parse_args(), 0.0
    with (
        tempfile.TemporaryDirectory() as folder,
        PrivateInflux(find_influxd(), Path(folder) / "influxdb", 0) as database,
    ):
        store = database.client()
        fuzz = Fuzz(random.Random(args.seed), store)
        parts = {"lines": fuzz.lines, "body": fuzz.body, "manifest": fuzz.manifest}
        parts |= {"offer": fuzz.offers, "report": fuzz.reports}
        first_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        try:
            for _ in fuzzing.rounds(args.seconds):
                for name, part in (*parts.items(), *[("lines", fuzz.lines)] * 5):
                    begun_s = time.perf_counter()
                    fuzz.counts[f"{name}: {part()}"] += 1
                    took_s = time.perf_counter() - begun_s
                    slowest_s = max(slowest_s, took_s)
                    if took_s > SLOWEST_S:
                        raise Failed(f"{name} took {took_s:.1f} s")
            fuzz.write()
        except Exception as error:  # noqa: BLE001  (whatever it is, it is a finding: told with the input that did it)
            print(f"{type(error).__name__}: {error}; input: {fuzz.last[:2000]!r}")
            return 1
        finally:
            store.close()
    more_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - first_bytes
    print(json.dumps(dict(sorted(fuzz.counts.items())), indent=1))
    inputs = sum(count for name, count in fuzz.counts.items() if "InfluxDB" not in name)
    memory = f"memory at most {more_bytes / 2**20:.0f} MiB more than at the start"
    print(f"seed {args.seed}: {inputs} inputs, slowest {slowest_s * 1000:.0f} ms, {memory}")
    return int(more_bytes > MORE_MEMORY_BYTES)


if __name__ == "__main__":
    sys.exit(main())
