"""The folder of a rehearsal, laid out as docs/reference/campaign-folder.md says, its space on disk, and the versions that it names."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from tandem_bench import UsageError, __version__
from tandem_bench.requirements import find_link
from tandem_bench.run.programs import Owner

PROBE = "probe-1"
NEEDED_BYTES = 1_000_000_000
"""A three-minute rehearsal leaves about 100 MB (captures); a third as much again passes through the database."""

RESERVE_BYTES = 64_000_000
"""Held back while it plays, so that on a disk that fills up records, manifests, truth and report still find room."""

LEAST_FREE_BYTES = 16_000_000
"""With less free than this the disk counts as full."""

_NUMBER = re.compile(r"\d+(?:\.\d+)+[\w.+~-]*")


class FolderError(UsageError):
    """The folder cannot be used; one line with the hint."""


class DemoFolder:
    """Paths below DIR. ``make`` creates them, owned by ``owner``."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.logs = self.root / "logs"
        self.server = self.root / "server"
        self.probe = self.root / "probe" / PROBE
        self.bench = self.root / "bench"
        self.campaign = self.root / "campaign.json"
        self.truth = self.root / "truth.jsonl"
        self.summary = self.root / "summary.json"
        self.report = self.root / "report.html"
        self._reserve = self.bench / "reserve"

    def make(self, owner: Owner) -> None:
        """Create the folders; an earlier rehearsal in DIR is set aside, anything else there is refused."""
        try:
            self._set_aside()
            for leaf in (self.logs, self.server, self.probe, self.bench):
                for folder in (*leaf.parents[::-1], leaf):
                    if not folder.exists():
                        folder.mkdir()
                        owner.give(folder)
            free = shutil.disk_usage(self.root).free
        except OSError as error:
            raise FolderError(f"{self.root}: {error.strerror}; name another folder with --out") from None
        if free < NEEDED_BYTES:
            raise FolderError(
                f"{self.root}: {free / 1e6:.0f} MB free, a rehearsal needs {NEEDED_BYTES / 1e6:.0f} MB; "
                "make room, or name a folder on another disk with --out"
            )
        with self._reserve.open("wb") as reserve:
            os.posix_fallocate(reserve.fileno(), 0, RESERVE_BYTES)

    def full(self) -> str | None:
        """Why the rehearsal cannot go on when the disk is full, as one line with the hint; else None."""
        if shutil.disk_usage(self.root).free >= LEAST_FREE_BYTES:
            return None
        return f"{self.root}: the disk is full; make room, or name a folder on another disk with --out"

    def release_reserve(self) -> None:
        """Give the room held back to what must be written at the end."""
        self._reserve.unlink(missing_ok=True)

    def _set_aside(self) -> None:
        if not self.root.exists():
            return
        if not self.root.is_dir():
            raise FolderError(f"{self.root} is a file; name a folder with --out")
        found = {path.name for path in self.root.iterdir()}
        if not found:
            return
        # A rehearsal that ended before it measured anything leaves some of our folders and no campaign.json.
        if self.campaign.name not in found and not found <= {"logs", "server", "probe", "bench"}:
            raise FolderError(f"{self.root} is not empty and no rehearsal of Tandem; name another folder with --out")
        written = self.campaign if self.campaign.exists() else self.root
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(written.stat().st_mtime))
        aside = self.root.with_name(f"{self.root.name}.{stamp}")
        while aside.exists():
            aside = aside.with_name(aside.name + "+")
        self.root.rename(aside)
        print(f"the earlier rehearsal is kept in {aside}", flush=True)

    def read_summary(self) -> dict[str, Any]:
        """``summary.json`` as the report wrote it."""
        loaded: dict[str, Any] = json.loads(self.summary.read_text())
        return loaded

    def write_campaign(self, campaign: dict[str, object], owner: Owner) -> None:
        """campaign.json, whole or not at all."""
        temporary = self.campaign.with_suffix(".json.tmp")
        with temporary.open("w") as out:
            json.dump(campaign, out, indent=1)
            out.write("\n")
            out.flush()
            os.fsync(out.fileno())
        owner.give(temporary)
        temporary.rename(self.campaign)

    def discard_working_files(self) -> None:
        """Remove what only the rehearsal itself needed: database, keys, token, spool, timelines (``--keep`` keeps them)."""
        for folder in (self.server, self.bench, self.probe / "spool"):
            shutil.rmtree(folder)
        (self.probe / "token").unlink(missing_ok=True)


def versions(influxd: Path) -> dict[str, str | None]:
    """Program to version; None where a program does not tell."""
    return {
        "tandem": __version__,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "influxdb": _says([str(influxd), "version"]),
        "tandem-link": _says([str(find_link()), "--version"]),
        "tcpdump": _says(["tcpdump", "--version"]),
        "iproute2": _says(["ip", "-V"]),
        "nftables": _says(["nft", "--version"]),
        "dnsmasq": _says(["dnsmasq", "--version"]),
    }


def _says(argv: list[str]) -> str | None:
    """The first version number in what ``argv`` prints; None when it cannot be run or prints none."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _NUMBER.search(done.stdout + done.stderr)
    return found.group() if found else None
