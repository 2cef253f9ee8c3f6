"""The process that reads, deflates and hashes what goes up: ``python encoder.py PARENT``, asked by lines of JSON on its standard input.

``{"op": "offer", "file", "name", "run", "encoding"}`` is answered by a line with the offer;
``{"op": "chunk", "file", "encoding", "chunk_bytes", "number"}`` by a line ``{"bytes": N}`` and N bytes of the stream; either by a line
``{"error": …}`` when the file cannot be read. A process of its own and of the idle class: a poll must not wait for an interpreter that
deflates, and whoever measures has the processor. It works half of the time at most, for the heat and the battery.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO

from tandem.schema.trace import chunk_bytes_of, encoded, offer_of

_PR_SET_PDEATHSIG = 1


class Unhurried(io.RawIOBase):
    """``file``, read no faster than that as much time is rested as was worked between two reads."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._since_s = file, time.thread_time()

    def read(self, size: int = -1) -> bytes:
        """As of a file."""
        time.sleep(min(1.0, time.thread_time() - self._since_s))
        self._since_s = time.thread_time()
        return self._file.read(size)


def _answer(asked: dict[str, Any], out: BinaryIO) -> None:
    try:
        with Path(asked["file"]).open("rb") as file:
            if asked["op"] == "offer":
                slow: Any = Unhurried(file)
                size = chunk_bytes_of(os.fstat(file.fileno()).st_size)
                told, part = offer_of(slow, asked["name"], asked["run"], asked["encoding"], size).as_json(), b""
            else:
                file.seek(asked["number"] * asked["chunk_bytes"])
                part = encoded(file.read(asked["chunk_bytes"]), asked["encoding"])
                told = {"bytes": len(part)}
    except OSError as error:
        told, part = {"error": error.strerror or str(error), "errno": error.errno}, b""
    out.write(json.dumps(told, separators=(",", ":")).encode() + b"\n" + part)
    out.flush()


def main() -> None:
    """Answer until nobody asks any more."""
    # Also when it is stopped while whoever asks dies.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != int(sys.argv[1]):
        return  # dead already
    os.nice(19)
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks ends it
    sys.stdout.buffer.write(b"{}\n")  # from now on it may be stopped
    sys.stdout.buffer.flush()
    for line in sys.stdin.buffer:
        _answer(json.loads(line), sys.stdout.buffer)


if __name__ == "__main__":
    main()
