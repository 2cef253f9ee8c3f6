"""Where the program ``tandem-link`` is."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "TANDEM_LINK"
"""Environment variable that names the program, before any other place."""


class LinkMissingError(RuntimeError):
    """There is no tandem-link to run; the message is one line with the mend."""


def find_binary() -> Path:
    """The program: what ``TANDEM_LINK`` names, else ``build/bin/tandem-link`` of the repository. LinkMissingError if none."""
    named = os.environ.get(VARIABLE)
    if named:
        return _executable(Path(named), f"the environment variable {VARIABLE} names it")
    repository = _repository()
    if repository is None:
        raise LinkMissingError(f"tandem-link not found: not run from the repository; set {VARIABLE} to the program")
    return _executable(repository / "build" / "bin" / "tandem-link", "it is built by ./kit setup")


def _executable(path: Path, why: str) -> Path:
    if path.is_file() and os.access(path, os.X_OK):
        return path.resolve()
    raise LinkMissingError(f"{path}: no such program ({why}); hint: ./kit setup")


def _repository() -> Path | None:
    """The nearest folder above this file, or above where we stand, that holds the link's source."""
    for start in (Path(__file__).resolve(), Path.cwd() / "x"):
        for folder in start.parents:
            if (folder / "firmware" / "bench" / "link" / "Cargo.toml").is_file():
                return folder
    return None
