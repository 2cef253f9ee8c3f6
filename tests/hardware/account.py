"""What the tests saw of a probe, for people and for whoever writes a driver."""

import platform
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import tandem


class Account:
    """Filled by the tests, printed at the end. Identities (IMEI, IMSI, ICCID) must have been removed by who fills it."""

    def __init__(self) -> None:
        self.modems: dict[str, dict[str, Any]] = defaultdict(dict)
        self.paths: dict[str, dict[str, Any]] = defaultdict(dict)

    def as_json(self) -> dict[str, Any]:
        return {"machine": machine(), "modems": dict(self.modems), "paths": dict(self.paths)}

    def lines(self) -> list[str]:
        """All of it but the dialogues."""
        told = [", ".join(f"{name} {value}" for name, value in machine().items() if value is not None)]
        for kind, found in (("modem", self.modems), ("path", self.paths)):
            for name, facts in found.items():
                told.append(f"{kind} {name}")
                told += [f"  {key}: {value}" for key, value in facts.items() if key != "transcript"]
        return told


def machine() -> dict[str, str | None]:
    """What it runs on. ``throttled``: the firmware's word (bit 0: too little voltage now, bit 16: since boot)."""
    model = Path("/proc/device-tree/model")
    return {
        "tandem": tandem.__version__,
        "model": model.read_text().rstrip("\0\n") if model.exists() else platform.machine(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "throttled": throttled(),
    }


def throttled() -> str | None:
    """``vcgencmd get_throttled``; None where there is none."""
    program = shutil.which("vcgencmd")
    if program is None:
        return None
    done = subprocess.run([program, "get_throttled"], capture_output=True, text=True, timeout=10, check=False)
    return done.stdout.strip() or None
