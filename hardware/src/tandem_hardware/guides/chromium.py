"""HTML → PDF by a headless Chromium."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tandem_hardware.errors import LackError

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
"""Looked for in PATH, in this order."""

LONGEST_S = 120.0


def find() -> str | None:
    """``TANDEM_CHROMIUM``, else the first of ``PROGRAMS``; None when there is none. Ubuntu's is a snap, which may not read our folders."""
    if told := os.environ.get("TANDEM_CHROMIUM"):
        return shutil.which(told)
    return next((found for name in PROGRAMS if (found := shutil.which(name)) and not _is_snap(Path(found))), None)


def _is_snap(program: Path) -> bool:
    if "/snap" in str(program.resolve()):
        return True
    with program.open("rb") as file:
        return b"/snap/bin" in file.read(4096)


def pdf(page: str) -> bytes:
    """``page`` (HTML that needs nothing beside itself) on paper. LackError: no Chromium here, or it did not print."""
    program = find()
    if program is None:
        raise LackError(
            "no Chromium here to print with; mend: install chromium-headless-shell or chromium, set TANDEM_CHROMIUM, or --format html"
        )
    with tempfile.TemporaryDirectory(prefix="tandem-guide-") as folder:
        source, printed = Path(folder, "guide.html"), Path(folder, "guide.pdf")
        source.write_text(page, encoding="utf-8")
        command = [
            program,
            "--headless",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-dev-shm-usage",
            "--no-first-run",
            f"--user-data-dir={folder}/profile",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),  # root must not have it
            "--no-pdf-header-footer",
            f"--print-to-pdf={printed}",
            source.as_uri(),
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise LackError(
                f"{program} did not print: {error}; mend: TANDEM_CHROMIUM names another, or --format html"
            ) from error
        if done.returncode != 0 or not printed.is_file():
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise LackError(f"{program} did not print: {last}; mend: TANDEM_CHROMIUM names another, or --format html")
        return printed.read_bytes()
