"""The fleet's CA in the browsers of whoever calls: NSS keeps their certificates, in one database each."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tandem_fleet.files import FleetError

FIREFOX = (
    ".mozilla/firefox",
    "snap/firefox/common/.mozilla/firefox",
    ".var/app/org.mozilla.firefox/.mozilla/firefox",
    ".config/mozilla/firefox",
)
"""Where the distribution's package, Ubuntu's snap, Flatpak and newer versions keep their profiles."""


def trust(fleet: Path, home: Path) -> list[Path]:
    """Add ``ca.pem`` to the databases of Firefox and Chromium below ``home``; which they are. FleetError: none, or it failed."""
    certificate, program = fleet / "ca.pem", shutil.which("certutil")
    if not certificate.is_file():
        raise FleetError(certificate, "no such file", "a fleet with certificate_kind acme needs no trust")
    if program is None:
        raise FleetError("certutil", "not installed", "sudo apt-get install libnss3-tools")
    chromium = home / ".pki/nssdb"
    chromium.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (chromium / "cert9.db").exists():
        _run(program, "-N", "-d", f"sql:{chromium}", "--empty-password")
    profiles = (file.parent for place in FIREFOX for file in home.glob(f"{place}/*/cert9.db"))
    found = [chromium, *sorted(profiles)]
    name = f"Tandem {fleet.resolve().name}"
    for place in found:
        _run(program, "-A", "-d", f"sql:{place}", "-n", name, "-t", "C,,", "-i", str(certificate))
    return found


def _run(*command: str) -> None:
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise FleetError(
            " ".join(command[1:4]), ran.stderr.strip().splitlines()[-1], "close the browser and start again"
        )
