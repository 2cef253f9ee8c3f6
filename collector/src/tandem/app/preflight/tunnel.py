"""The WireGuard tunnel by which people reach the kit: when its two ends last shook hands."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

from tandem.app.preflight.facts import Tunnel

INTERFACE = "wg-tandem"
FRESH_S = 180.0
"""With a keepalive the ends shake hands every two minutes; after three a session is dead (WireGuard's REJECT_AFTER_TIME)."""
_SHOWN = re.compile(r"[A-Za-z0-9+/]{43}=\t([0-9]{1,12})")


def tunnel(sys: Path = Path("/sys")) -> Tunnel | None:
    """None where there is none, or nobody may ask: ``wg show`` takes the capability NET_ADMIN."""
    program = shutil.which("wg")
    if not (sys / "class" / "net" / INTERFACE).exists() or program is None:
        return None
    argv = [program, "show", INTERFACE, "latest-handshakes"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode != 0 else judged(done.stdout, time.time())


def judged(shown: str, now_s: float) -> Tunnel:
    """From what ``wg show INTERFACE latest-handshakes`` prints: a peer a line, its key and seconds since 1970, 0 for never."""
    last_s = max((int(match[1]) for line in shown.splitlines() if (match := _SHOWN.fullmatch(line))), default=0)
    if last_s == 0:
        return Tunnel(False, "its ends never shook hands since it is up")
    age_s = now_s - last_s
    if age_s > FRESH_S:
        return Tunnel(False, f"its ends last shook hands {age_s / 60:.0f} min ago")
    return Tunnel(True, "its ends shook hands within the last minutes")
