"""What ``chronyc -c tracking`` prints, and a chronyc that prints it."""

from pathlib import Path


def line(
    reference: str = "C0A80001",
    stratum: int = 2,
    correction: float = 0.0,
    delay: float = 0.02,
    dispersion: float = 0.001,
    leap: str = "Normal",
) -> str:
    offsets = (1_790_000_000.0, correction, -0.0005, 0.0003)
    words = [f"{n:.9f}" for n in offsets] + ["-12.500", "0.000", "0.750", f"{delay:.9f}", f"{dispersion:.9f}", "64.2"]
    return ",".join([reference, "192.168.0.1", str(stratum), *words, leap]) + "\n"


def install(folder: Path, printed: str, status: int = 0) -> None:
    """For the first place of PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / "chronyc.tmp"
    draft.write_text(f"#!/bin/sh\nprintf '%s\\n' '{printed.strip()}'\nexit {status}\n")
    draft.chmod(0o755)
    draft.replace(folder / "chronyc")
