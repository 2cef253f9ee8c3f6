"""``tandem modem record``: ask a modem, show what goes on, write the transcript."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from tandem.at.channel import open_port
from tandem.modem.recorder import Recorder, Turn, WebRecorder, today, transcript
from tandem.modem.session import access


def record(port: str | None, usb: str | None, out: Path | None, interface: str | None = None) -> int:
    """Record the modem at ``port`` (an AT port, or ``http://ADDRESS`` over ``interface``) or ``usb`` into ``out`` (whole or not at
    all), else on standard output. AtError when it does not answer, OSError when the file cannot be written, ValueError for a place
    that is none."""
    made = _web(port, interface) if port is not None and "://" in port else _at(port, usb)
    text = json.dumps(made, indent=1, ensure_ascii=False) + "\n"
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
        f"{out}: {len(made['further'])} commands, driver {made['driver']}; look it through before you give it away",
        file=sys.stderr,
    )
    return 0


def _at(port: str | None, usb: str | None) -> dict[str, Any]:
    opened = open_port(access(port, usb).look())
    try:
        recorder = Recorder(opened, _tell)
        identity, matching = recorder.record()
    finally:
        opened.close()
    return transcript(identity, matching[0], recorder.turns, today())


def _web(url: str, interface: str | None) -> dict[str, Any]:
    return {**WebRecorder(url, interface, _tell).record(), "recorded": today()}


def _tell(turn: Turn) -> None:
    print(f"{turn.send[:120]}  {turn.failure or 'answered'}", file=sys.stderr)
