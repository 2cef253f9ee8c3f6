"""Where the link emulator's binary is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


class LinkMissing(RuntimeError):  # noqa: N818  # read as a sentence
    """No binary; one line with the mend."""


def find_binary() -> Path:
    """``tandem-link``: what TANDEM_LINK names, else this checkout's build, else the one on PATH."""
    built = Path(__file__).parents[5] / "build/bin/tandem-link"
    for candidate in (os.environ.get("TANDEM_LINK"), str(built), shutil.which("tandem-link")):
        if candidate and os.access(candidate, os.X_OK):
            return Path(candidate)
    raise LinkMissing("no tandem-link; ./kit setup compiles it")
