"""How many bytes a day does the spool write to the card, for 40 records a second?

``python tests/bench/bench_spool_written.py [--seconds 900] [--against FOLDER] [--json]``, root. Each variant has an ext4 of its own (mkfs's
defaults) on a loop device in memory, and a process that does what the collector does: once a second, by the clock, a second's records
appended (``a_second.py``) and those of the second before acknowledged. All variants run side by side, in real time, since ext4's own
commits (every 5 s) and the kernel's write-back (after 30 s) count too. Counted are the sectors that the block layer wrote, and its flushes,
from the 300th second on (``/sys/block/*/stat``). ``--against``: another checkout, whose spool is a variant too.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
WARM_S = 300
"""Until then the write-ahead log grows to its size, and each growth is a commit of ext4's as well; afterwards it is written over."""
SECTOR = 512

WRITER = """
import random, sys, time
sys.path.insert(0, {here!r})
from pathlib import Path
from a_second import a_second
from tandem.spool import Spool, dayfile
page, checkpoint = {page}, {checkpoint}
if page: dayfile.PAGE_BYTES = page
if checkpoint:
    opened = dayfile.DayFile.__init__
    def with_checkpoint(self, *args):
        opened(self, *args)
        self._db.execute(f"PRAGMA wal_autocheckpoint={{checkpoint}}")
    dayfile.DayFile.__init__ = with_checkpoint
chance = random.Random(1)
spool = Spool(Path(sys.argv[1]) / "spool", "b1c0ffee-0000-4000-8000-000000000001")
began = time.monotonic()
for second in range({seconds}):
    time.sleep(max(0.0, began + second - time.monotonic()))
    spool.append(a_second(second, 1_790_000_000 * 10**9 + second * 10**9, chance))
    batch = spool.take(1000)
    if second % 97 == 50: spool.release(batch)
    else: spool.acknowledge(batch)
    print(second, flush=True)
"""


class Variant:
    def __init__(self, name, stack, root, seconds, sources=None, page=0, checkpoint=0, options=""):
        self.name = name
        image, place = root / f"{name}.img", root / name
        place.mkdir()
        with image.open("wb") as file:
            file.truncate(256 << 20)
        subprocess.run(
            ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(image)], check=True
        )
        mount = ["mount", "-o", f"loop{options}", str(image), str(place)]
        subprocess.run(mount, check=True)
        stack.callback(subprocess.run, ["umount", str(place)], check=True)
        device = next(
            line.split()[0] for line in Path("/proc/mounts").read_text().splitlines() if line.split()[1] == str(place)
        )
        self.stat = Path("/sys/block") / device.rpartition("/")[2] / "stat"
        code = WRITER.format(here=str(HERE), page=page, checkpoint=checkpoint, seconds=seconds)
        path = f"{sources}:{os.environ.get('PYTHONPATH', '')}" if sources else os.pathsep.join(sys.path)
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, str(place)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        stack.callback(self.process.wait)
        stack.callback(self.process.kill)
        self.before = None

    def read(self):
        fields = self.stat.read_text().split()
        return {"writes": int(fields[4]), "bytes": int(fields[6]) * SECTOR, "flushes": int(fields[15])}

    def wait(self, second):
        for line in self.process.stdout:
            if int(line) == second:
                return
        raise SystemExit(f"{self.name} ended early")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=900, help="at least 400 (default 900)")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="a checkout of another version")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spool-written-", dir="/dev/shm")))
        inner = stack.enter_context(contextlib.ExitStack())
        wanted = {
            "as-it-is": {},
            **({"other-version": {"sources": args.against / "collector/src"}} if args.against else {}),
            **{f"pages-{page}": {"page": page} for page in (1024, 4096)},
            "checkpoint-4000": {"checkpoint": 4000},
            "lazytime": {"options": ",lazytime,noatime"},
        }
        variants = [Variant(name, inner, root, args.seconds, **how) for name, how in wanted.items()]
        for variant in variants:
            variant.wait(WARM_S)
            variant.before, variant.began = variant.read(), time.monotonic()
        rows = []
        for variant in variants:
            variant.wait(args.seconds - 1)
            after, seconds = variant.read(), time.monotonic() - variant.began
            grown = {name: after[name] - variant.before[name] for name in after}
            rows.append({
                "variant": variant.name,
                "megabytes_a_day": round(grown["bytes"] / seconds * 86_400 / 1e6),
                "bytes_a_second": round(grown["bytes"] / seconds),
                "writes_a_second": round(grown["writes"] / seconds, 2),
                "flushes_a_second": round(grown["flushes"] / seconds, 2),
            })  # fmt: skip
        for row in rows:
            row["ratio"] = round(row["megabytes_a_day"] / rows[0]["megabytes_a_day"], 2)
    if args.json:
        print(json.dumps({"seconds": args.seconds, "variants": rows}, indent=1))
        return
    print(f"{args.seconds} s, 40 records a second, one append a second, the second before acknowledged")
    for row in rows:
        print("  ".join(f"{name}={value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
