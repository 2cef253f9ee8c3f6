"""This probe's secret for its home zones: made once, never sent."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
from pathlib import Path

log = logging.getLogger(__name__)

BYTES = 32


def own_key(file: Path) -> bytes:
    """The key in ``file``, made (mode 0600) when there is none. A disk that takes none gives one for this start only: the hidden
    circles then move with the next start, which shows more of them, so the log says it."""
    with contextlib.suppress(OSError):
        found = file.read_bytes()
        if len(found) == BYTES:
            return found
    key = secrets.token_bytes(BYTES)
    unfinished = file.with_name(file.name + ".tmp")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished.unlink(missing_ok=True)
        fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as out:
            out.write(key)
            out.flush()
            os.fsync(fd)
        unfinished.replace(file)
    except OSError as error:
        log.warning(
            "%s: %s; home zones are hidden differently at each start; mend: free disk space", file, error.strerror
        )
    return key
