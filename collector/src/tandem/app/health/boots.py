"""How often this machine was booted with a collector: counted in a file of the probe's folder, written once a boot."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from tandem.spool.durable import write_durably

log = logging.getLogger(__name__)

FORMAT = "tandem-boot-count/1"
NAME = "boot-count.json"


def count_boot(folder: Path, boot: str) -> int:
    """The number of this boot, from 1. What cannot be read is begun anew, what cannot be written is counted again: told both."""
    file = folder / NAME
    try:
        count, last = parse(file.read_text())
    except FileNotFoundError:
        count, last = 0, ""
    except (OSError, ValueError, RecursionError) as error:
        log.warning("%s: %s; boots are counted anew", file, error)
        count, last = 0, ""
    if last == boot:
        return count
    try:
        write_durably(file, json.dumps({"format": FORMAT, "count": count + 1, "boot": boot}).encode())
    except OSError as error:
        log.warning("%s: %s; this boot is counted again at the next start", file, error.strerror)
    return count + 1


def parse(text: str) -> tuple[int, str]:
    """The count and the boot that was counted last; ValueError when the text is not of this file."""
    told = json.loads(text)
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise ValueError(f"no {FORMAT}")
    count, boot = told.get("count"), told.get("boot")
    if type(count) is not int or count < 1 or not isinstance(boot, str):
        raise ValueError("not as it was written")
    return count, boot
