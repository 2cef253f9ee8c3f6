"""The AT engine on mutated dialogues of all families and on pure garbage, in two ways: splitter and dialogue, and a channel over a
pseudo-terminal.

What must hold: no exception but NoAnswer, no line over its limit, bounded memory, every line of a response begins with a prefix that was
requested, and after whatever came the next clean dialogue is read rightly.

    ./kit run python tests/bench/fuzz_at.py [--seconds 60] [--seed 1]
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import threading
import time
import tty
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import fuzzing

import tandem.modem
from tandem.at.channel import Channel
from tandem.at.dialogue import MAX_LINES, Dialogue, NoAnswer, Response
from tandem.at.grammar import MAX_LINE_BYTES, Command, LineSplitter

CLEAN = ("AT+CSQ;+CEREG?", ("+CSQ: 17,99", '+CEREG: 2,1,"1A2B","05A2C30B",7'))
CLEAN_BYTES = b'AT+CSQ;+CEREG?\r\r\n+CSQ: 17,99\r\n\r\n+CEREG: 2,1,"1A2B","05A2C30B",7\r\n\r\nOK\r\n'
UNASKED = (
    b"\r\nRING\r\n",
    b'\r\n+CEREG: 1,"1A2C","05A2C30C",7\r\n',
    b"\r\n^RSSI: 20\r\n",
    b"\r\nNO CARRIER\r\n",
    b"\r\n> ",
)
ENDS = (
    b"",
    b"\r\nOK\r\n",
    b"\r\nERROR\r\n",
    b"\r\n+CME ERROR: 10\r\n",
    b"\r\nCONNECT 150000000\r\n",
    b"\r\nABORTED\r\n",
)
TOKENS = (*UNASKED, *ENDS, b"\r", b"\n", b"\xdf\xff", b'"', b",,,,", b"> ", b"\x1b", b"AT+CSQ\r")


class Violation(AssertionError):  # noqa: N818 - what was found
    """An invariant that did not hold."""


@dataclass
class Counts:
    """What was fed and what came of it."""

    fed_bytes: int = 0
    responses: int = 0
    unanswered: int = 0
    longest_line: int = 0

    def hold(self, condition: bool, what: str) -> None:
        if not condition:
            raise Violation(what)


def dialogues() -> list[tuple[str, bytes]]:
    """Every family's recorded and made turns."""
    found: list[tuple[str, bytes]] = []
    for file in sorted(Path(tandem.modem.__file__).parent.glob("families/transcripts/*/*.json")):
        turns = json.loads(file.read_text())["dialogue"]
        found += [(t["send"], t["receive"].encode("utf-8")) for t in turns if t["send"].startswith("AT")]
    return found


class Source:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.known = dialogues()

    def next(self) -> tuple[str, bytes]:
        """A command and what pretends to be its answer."""
        command, answer = self.random.choice(self.known)
        return command, self.garbage() if self.random.random() < 0.3 else self.mutated(answer)

    def garbage(self) -> bytes:
        r, size = self.random, int(2 ** self.random.uniform(0, 14))
        kind = r.randrange(6)
        if kind == 0:
            return r.randbytes(size)
        if kind == 1:
            return bytes(r.choices(b'+CSQERG:OK?0123,"\r\n', k=size))
        if kind == 2:
            return r.choice((b"+CSQ: 1\r\n", b"+", b'"', b"A", b"\r", b"\n\r", b"\xdf", b"OK")) * (size // 4 + 1)
        if kind == 3:
            return b"+QENG: " + b"9" * size
        if kind == 4:
            return b"\x00" * size + r.choice(ENDS)
        return bytes(r.choices(range(0x20, 0x100), k=size))

    def mutated(self, answer: bytes) -> bytes:
        """Scratched, perhaps with another answer in it, perhaps cut off."""
        r = self.random
        tokens = (*TOKENS, r.choice(self.known)[1], r.randbytes(r.randrange(20)))
        out = fuzzing.scratched(r, answer, tokens)
        return (out if r.random() < 0.7 else out[: r.randrange(len(out) + 1)] + r.choice(ENDS))[:20_000]


def through_dialogue(source: Source, at_least_bytes: int) -> Counts:
    counts, splitter = Counts(), LineSplitter()
    while counts.fed_bytes < at_least_bytes:
        text, stream = source.next()
        command = Command(text)
        for response in _fed(source, counts, splitter, command, stream):
            _check(counts, command, response)
        for _ in splitter.feed(b"\r\n"):
            pass  # what garbage left of a line ends here
        clean = list(_fed(source, counts, splitter, Command(CLEAN[0]), CLEAN_BYTES, plain=True))
        counts.hold(len(clean) == 1 and clean[0].lines == CLEAN[1], f"after {stream[:200]!r}: {clean}")
    return counts


def _fed(
    source: Source, counts: Counts, splitter: LineSplitter, command: Command, stream: bytes, plain: bool = False
) -> Iterator[Response]:
    """The responses in ``stream`` fed in random pieces, a new dialogue behind each; some of them wary of older answers."""
    counts.fed_bytes += len(stream)
    dialogue = Dialogue(command)
    piece = source.random.choice((1, 3, 64, 4096, 100_000))
    for start in range(0, len(stream), piece):
        for line in splitter.feed(stream[start : start + piece]):
            counts.longest_line = max(counts.longest_line, len(line))
            counts.hold(len(line) <= MAX_LINE_BYTES, "a line over its limit")
            response = dialogue.feed(line)
            if response is not None:
                yield response
                wary = not plain and source.random.random() < 0.2
                dialogue = Dialogue(command, ("+CMEE",) if wary else (), wary=wary)
        counts.hold(splitter.pending_bytes <= MAX_LINE_BYTES, "a partial line over its limit")
        splitter.take_prompt()


def _check(counts: Counts, command: Command, response: Response) -> None:
    counts.responses += 1
    counts.hold(len(response.lines) <= MAX_LINES, "too many lines kept")
    if not command.takes_bare_lines:
        named = all(line.upper().startswith(tuple(f"{p}:" for p in command.prefixes)) for line in response.lines)
        counts.hold(named, f"{command.text}: {response.lines}")


class _Pty:
    def __init__(self, fd: int) -> None:
        self._fd = fd
        os.set_blocking(fd, False)

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        os.close(self._fd)


@contextmanager
def _ends() -> Iterator[tuple[_Pty, int]]:
    """A port for the channel and the modem's descriptor."""
    master, slave = os.openpty()
    tty.setraw(slave)
    try:
        yield _Pty(slave), master
    finally:
        os.close(master)


class _Modem(threading.Thread):
    """Answers the next command with what ``play`` was given, everything after it cleanly, until told again."""

    def __init__(self, fd: int) -> None:
        super().__init__()
        self._fd = fd
        self._stream: bytes | None = None
        self.sent = threading.Event()

    def play(self, stream: bytes) -> None:
        self._stream = stream
        self.sent.clear()

    def run(self) -> None:
        heard = b""
        while True:
            try:
                chunk = os.read(self._fd, 4096)
            except OSError:
                return
            if not chunk:
                return
            *commands, heard = (heard + chunk.replace(b"\x1b", b"")).split(b"\r")
            try:
                for command in commands:
                    self._answer(command)
            except OSError:
                return

    def _answer(self, command: bytes) -> None:
        stream, self._stream = self._stream, None
        if stream is None:
            stream = b"\r\n+CMEE: 1\r\n\r\nOK\r\n" if command == b"AT+CMEE?" else CLEAN_BYTES
        while stream:
            stream = stream[os.write(self._fd, stream) :]
        self.sent.set()


def through_channel(source: Source, at_least_bytes: int, deadline_s: float = 0.01) -> Counts:
    """A whole channel over a pseudo-terminal. The modem behaves again after each stream."""
    counts = Counts()
    with _ends() as (port, theirs):
        channel = Channel(port, lambda _unsolicited: None)
        modem = _Modem(theirs)
        modem.start()
        try:
            while counts.fed_bytes < at_least_bytes:
                _round(source, counts, channel, modem, deadline_s)
        finally:
            channel.close()
            os.write(theirs, b"")  # the other end is closed: reading there fails and ends the thread
            modem.join(60)
    return counts


def _round(source: Source, counts: Counts, channel: Channel, modem: _Modem, deadline_s: float) -> None:
    text, stream = source.next()
    modem.play(stream)
    counts.fed_bytes += len(stream)
    try:
        _check(counts, Command(text), channel.ask(text, deadline_s))
    except NoAnswer:
        counts.unanswered += 1
    while not modem.sent.is_set():
        channel.listen(time.monotonic() + 0.001)
    channel.listen(time.monotonic() + 0.0005)
    os.write(modem._fd, b"\r\n")
    counts.fed_bytes += len(CLEAN_BYTES)
    clean = _clean(channel)
    counts.hold(clean.lines == CLEAN[1], f"after {stream[:200]!r}: {clean}")


def _clean(channel: Channel) -> Response:
    """What a busy machine delivers behind the marker may take the marker's OK for its own; the next ask sends another."""
    end_s = time.monotonic() + 60
    while True:
        try:
            return channel.ask(CLEAN[0], 2.0)
        except NoAnswer:
            if time.monotonic() > end_s:
                raise


WAYS: dict[str, Callable[[Source, int], Counts]] = {
    "splitter and dialogue": through_dialogue,
    "channel over a pseudo-terminal": through_channel,
}
EACH_BYTES = (200_000, 100_000)


def main() -> int:
    args = fuzzing.parser(__doc__).parse_args()
    done, longest = Counter[str](), 0
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in fuzzing.rounds(args.seconds):
        for (name, way), count in zip(WAYS.items(), EACH_BYTES, strict=True):
            try:
                counts = way(Source(args.seed * 1_000_003 + number), count)
            except Violation as found:
                print(f"{name}, seed {args.seed}, round {number}: {found}")
                return 1
            done += Counter(bytes=counts.fed_bytes, responses=counts.responses, unanswered=counts.unanswered)
            longest = max(longest, counts.longest_line)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    answers = f"{done['responses']} responses, {done['unanswered']} unanswered, longest line {longest}"
    print(f"seed {args.seed}: {done['bytes']} bytes, {answers}, memory {grown_kib} KiB more; every invariant held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
