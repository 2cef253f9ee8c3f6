"""``tandem modem record``: ask a modem, show what goes on, write the transcript."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tandem.at.channel import open_port
from tandem.modem.access import access
from tandem.modem.recorder import Recorder, Turn, today, transcript


def record(port: str | None, usb: str | None, out: Path | None) -> int:
    """Record the modem at ``port`` or ``usb`` into ``out`` (whole or not at all), else on standard output. AtError when it does not
    answer, OSError when the file cannot be written, ValueError for a place that is none."""
    if port is not None and "://" in port:
        raise ValueError(
            f"{port}: only AT ports are recorded; save a web server's answer as it is and scrub it by hand"
        )
    opened = open_port(access(port, usb).look())
    try:
        recorder = Recorder(opened, _tell)
        identity, matching = recorder.record()
    finally:
        opened.close()
    text = json.dumps(transcript(identity, matching[0], recorder.turns, today()), indent=1, ensure_ascii=False) + "\n"
    if out is None:
        print(text, end="")
        return 0
    spare = out.with_name(f"{out.name}.tmp")
    with spare.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    spare.replace(out)
    print(
        f"{out}: {len(recorder.turns)} commands, driver {matching[0].name}; look it through before you give it away",
        file=sys.stderr,
    )
    return 0


def _tell(turn: Turn) -> None:
    print(f"{turn.send}  {turn.failure or 'answered'}", file=sys.stderr)
