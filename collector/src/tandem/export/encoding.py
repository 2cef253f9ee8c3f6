"""Offers and chunks from the encoder's process, which is stopped while something is measured."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from tandem.export.outgoing import Interrupted
from tandem.export.sending import Later
from tandem.schema.trace import Encoding, Offer, TraceError, read_offer

_LOOK_S, _AGAIN_S = 0.2, 60.0
_PROGRAM = Path(__file__).with_name("encoder.py")
_LONGEST_LINE = 16 * 1024 * 1024


class UnreadableError(Exception):
    """The file cannot be read; ``gone``: it is not there."""

    def __init__(self, reason: str, *, gone: bool) -> None:
        super().__init__(reason)
        self.gone = gone


@dataclass(frozen=True, slots=True)
class _Child:
    process: subprocess.Popen[bytes]
    asked: BinaryIO
    told: BinaryIO


def _child() -> _Child:
    to_read, asked = os.pipe2(os.O_CLOEXEC)
    told, to_write = os.pipe2(os.O_CLOEXEC)
    try:
        # -P: beside the program lie modules of ours, which are no top-level ones.
        argv = [sys.executable, "-P", str(_PROGRAM), str(os.getpid())]
        process = subprocess.Popen(argv, stdin=to_read, stdout=to_write)
    except OSError:
        os.close(asked)
        os.close(told)
        raise
    finally:
        os.close(to_read)
        os.close(to_write)
    return _Child(process, os.fdopen(asked, "wb", buffering=0), os.fdopen(told, "rb", buffering=0))


class Encoder:
    """Begun when it is first asked. ``stopped``: whether the processor is somebody else's now; then it rests, or, where ``ended`` says
    so, gives up by Interrupted. For one thread, with which the process leaves."""

    def __init__(self, stopped: Callable[[], bool], ended: Callable[[], bool]) -> None:
        self._stopped, self._ended = stopped, ended
        self._child: _Child | None = None
        self._read = bytearray()

    def offer(self, file: Path, name: str, run: str | None, encoding: Encoding) -> Offer:
        """The offer of a file, read as a whole."""
        told = self._ask({"op": "offer", "file": str(file), "name": name, "run": run, "encoding": encoding})
        try:
            return read_offer(told)
        except TraceError as error:
            raise UnreadableError(f"it cannot be offered: {error}", gone=False) from error

    def chunk(self, file: Path, offer: Offer, number: int) -> bytes:
        """A chunk of its stream; Interrupted when something is measured, since a connection waits for it."""
        asked = {"op": "chunk", "file": str(file), "encoding": offer.encoding, "chunk_bytes": offer.chunk_bytes}
        told = self._ask({**asked, "number": number}, rests=False)
        return self._take(int(told["bytes"]))

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.process.kill()
            self._child.process.wait()
            self._child.asked.close()
            self._child.told.close()
        self._child = None
        self._read.clear()

    def _ask(self, asked: dict[str, Any], *, rests: bool = True) -> dict[str, Any]:
        try:
            if self._child is None:
                self._child = _child()
                self._line(rests=None)  # it is there, and knows what to do when who asked dies
            self._child.asked.write(json.dumps(asked).encode() + b"\n")
            told: dict[str, Any] = json.loads(self._line(rests=rests))
        except (OSError, ValueError) as error:
            self.close()
            raise Later(f"the encoder ended: {error}", _AGAIN_S) from error
        except BaseException:
            self.close()
            raise
        if "error" in told:
            raise UnreadableError(str(told["error"]), gone=told.get("errno") == 2)
        return told

    def _line(self, *, rests: bool | None) -> bytes:
        while (end := self._read.find(b"\n")) < 0:
            self._more(rests=rests)
            if len(self._read) > _LONGEST_LINE:
                raise ValueError("a line without an end")
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        return line

    def _take(self, count: int) -> bytes:
        try:
            while len(self._read) < count:
                self._more(rests=False)
        except OSError as error:
            self.close()
            raise Later(f"the encoder ended: {error}", _AGAIN_S) from error
        except BaseException:
            self.close()
            raise
        taken = bytes(self._read[:count])
        del self._read[:count]
        return taken

    def _more(self, *, rests: bool | None) -> None:
        """Read on; while something is measured the process sleeps, or all is given up; None: neither yet."""
        child = self._child
        if child is None:
            raise ValueError("it was closed")
        resting = False
        while True:
            measured = rests is not None and self._stopped()
            if self._ended() or (measured and not rests):
                raise Interrupted
            if measured != resting:
                resting = not resting
                child.process.send_signal(signal.SIGSTOP if resting else signal.SIGCONT)
            if select.select([child.told], [], [], _LOOK_S)[0]:
                break
        if resting:
            child.process.send_signal(signal.SIGCONT)
        piece = os.read(child.told.fileno(), 1 << 20)
        if not piece:
            raise OSError(f"exit status {child.process.wait()}")
        self._read += piece
