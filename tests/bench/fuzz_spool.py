"""Damages spools at random and opens them with the real code: is every one read or refused by one error, in bounded time, exactly?

    ./kit run python tests/bench/fuzz_spool.py [--seconds 60] [--seed 1]

Damage: flipped bits, cut and lengthened files, zeroed and random blocks,
pages of one file put into another or elsewhere in the same, older copies of a file, files exchanged or gone; in SQLite files, their
write-ahead logs (a spool whose process was killed has one), rejected.jsonl.

What must hold, whatever was damaged: the constructor gives a spool or a SpoolError; nothing else is raised by anything afterwards, and
nothing takes two minutes; ``made`` = ``sent`` + ``pending`` + ``rejected`` + ``dropped``, none negative, and as many records come out
as were pending; none twice; each with the content that its number was given; no number that was given out before is given out
again under the same id of the spool (when the log and the note of the last number are both damaged nobody can know: such rounds are
counted apart).
Exit status 1 when not.
"""

import random
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

import fuzzing

from tandem.schema.record import Record
from tandem.spool import Spool, SpoolError

BOOT = "b1c0ffee-0000-4000-8000-000000000001"
LONGEST_S = 120
KINDS = ("bits", "bits", "cut", "zeros", "noise", "splice", "move", "longer", "gone", "exchange", "cell")
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  its folder is made by mkdtemp
"""Where folders are made: in memory, where there is such a place."""


def radio(mark):
    return Record.make("radio", {"path": "a", "operator": "A" * (mark % 90)}, {"eci": mark, "rsrp_dbm": -90.5}, mark)


def event(mark):
    return Record.make("event", {"kind": "handover", "path": "a"}, {"from_eci": mark, "to_eci": mark + 1}, mark)


class Fuzz:
    def __init__(self, root, chance):
        self.root, self.chance = root, chance
        self.seen = Counter()

    def models(self):
        """A few spools as they are left by a killed process: some drained, all with a log."""
        made = []
        for number in range(6):
            live = self.root / f"live-{number}"
            spool = Spool(live, BOOT)
            marks = {}
            mark = 0
            for step in range(150):
                records = [radio(mark + n) for n in range(1, 1 + self.chance.choice([1, 9, 40]))]
                mark += len(records)
                records += [event(mark + 1)] if step % 5 == 0 else []
                mark += step % 5 == 0
                first = spool.counts().made
                spool.append(records)
                kept_first = sorted(records, key=lambda r: r.measurement != "event")
                marks |= {first + 1 + n: r.monotonic_ns for n, r in enumerate(kept_first)}
                if number % 2 and self.chance.random() < 0.5:
                    batch = spool.take(100)
                    if self.chance.random() < 0.3:
                        spool.reject(batch, batch.items[0].seq, "no")
                    spool.acknowledge(batch)
            folder = self.root / f"model-{number}"
            shutil.copytree(live, folder)  # as it is on disk now: nothing closed
            spool.close()
            made.append((folder, marks, spool.identity))
        return made

    def damage(self, folder, others):
        """Damage a file or three; what was done, as words."""
        chance, done = self.chance, []
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            files = [p for p in sorted(folder.rglob("*")) if p.is_file() and p.stat().st_size]
            file = chance.choice(files)
            raw = bytearray(file.read_bytes())
            kind = chance.choice(KINDS)
            at = chance.randrange(len(raw))
            page = at // 4096 * 4096
            if kind == "bits":
                for _ in range(chance.choice([1, 1, 8, 100])):
                    raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
            elif kind == "cut":
                del raw[at:]
            elif kind == "zeros":
                raw[page : page + 4096] = bytes(len(raw[page : page + 4096]))
            elif kind == "noise":
                raw[page : page + 512] = chance.randbytes(len(raw[page : page + 512]))
            elif kind == "cell":  # the first bytes of a page: its kind, its cells, their places
                for _ in range(3):
                    raw[min(len(raw) - 1, page + chance.randrange(40))] = chance.randrange(256)
            elif kind in ("splice", "move"):
                from_others = [p for p in sorted(others.glob("*.sqlite*")) if p.stat().st_size]
                told = (chance.choice(from_others) if kind == "splice" else file).read_bytes()
                start = chance.randrange(max(1, len(told) // 4096)) * 4096
                piece = told[start : start + 4096]
                raw[page : page + len(piece)] = piece
            elif kind == "longer":
                raw += chance.randbytes(chance.randrange(9000))
            elif kind == "gone":
                file.unlink()
                done.append(f"gone {file.name}")
                continue
            elif kind == "exchange":
                other = chance.choice(files)
                raw[:] = other.read_bytes()
            file.write_bytes(raw)
            done.append(f"{kind} {file.name}")
        return done

    def round(self, model, marks, identity, others):
        """One damaged spool; a complaint, or None."""
        folder = self.root / "now"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(model, folder)
        done = self.damage(folder, others)
        self.seen.update(word.split()[0] for word in done)
        hurt = {word.split()[1] for word in done}
        try:
            complaint = self.read(folder, marks, identity, blind={"lock", "queue.sqlite-wal"} <= hurt)
        except SpoolError as error:
            self.seen["refused"] += 1
            complaint = None if "hint:" in str(error) and "\n" not in str(error) else f"no hint: {error}"
        return f"{complaint}; damage: {done}" if complaint else None

    def read(self, folder, marks, identity, *, blind):
        spool = Spool(folder, BOOT)
        try:
            spool.oldest()
            batches, out = [], {}
            while (batch := spool.take(400)) is not None:
                batches.append(batch)
                for item in batch.items:
                    if item.seq in out:
                        return f"number {item.seq} comes out twice"
                    out[item.seq] = item.record.monotonic_ns
                    if marks.get(item.seq) != item.record.monotonic_ns:
                        return f"number {item.seq} is another record"
            before = spool.counts()
            if min(before.made, before.sent, before.pending, before.rejected, before.dropped) < 0:
                return f"negative counts: {before}"
            if before.pending != len(out):
                return f"{before.pending} pending, {len(out)} came out"
            self.seen["records saved"] += len(out)
            for number, batch in enumerate(batches):
                (spool.acknowledge if number % 3 else spool.release)(batch)
            spool.append([radio(7)])
            fresh = spool.counts().made
            self.seen["another spool"] += spool.identity != identity
            if fresh <= max(marks) and spool.identity == identity:
                self.seen["blind reuse"] += blind
                if not blind:
                    return f"number {fresh} is used again, the last was {max(marks)}"
            spool.flush()
            spool.notices()
            counts = spool.counts()
        finally:
            spool.close()
        again = Spool(folder, BOOT)
        try:
            if again.counts() != counts:
                return f"counts changed by a restart: {counts}, {again.counts()}"
            if any("damaged" in n.detail for n in again.notices()):
                return "it is damaged still after it was mended"
        finally:
            again.close()
        return None


def main():
    parser = fuzzing.parser(__doc__)
    parser.add_argument("--rounds", type=int, help="end after so many, whatever the time")
    args = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory(prefix="fuzz-spool-", dir=MEMORY) as name:
        fuzz = Fuzz(Path(name), random.Random(args.seed))
        models = fuzz.models()

        def slow(*_):
            raise TimeoutError(f"longer than {LONGEST_S} s")

        signal.signal(signal.SIGALRM, slow)
        for number in range(args.rounds) if args.rounds else fuzzing.rounds(args.seconds):
            model, marks, identity = fuzz.chance.choice(models)
            others, _, _ = fuzz.chance.choice(models)
            signal.alarm(LONGEST_S)
            try:
                complaint = fuzz.round(model, marks, identity, others)
            except Exception:  # noqa: BLE001  whatever comes out is what is looked for
                complaint = traceback.format_exc()
            signal.alarm(0)
            if complaint:
                bad += 1
                print(f"round {number}, {model.name}: {complaint}", file=sys.stderr)
                if bad > 10:
                    break
    print(f"seed {args.seed}: {number + 1} damaged spools, {bad} wrong; {dict(fuzz.seen)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
