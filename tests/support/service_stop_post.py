"""What tandem.service does when the collector has ended, run on a folder that stands for /sys/class/leds."""

import os
import re
import shlex
import subprocess
from pathlib import Path

UNIT = Path(__file__).parents[2] / "collector/system/tandem.service"


def command(leds: Path) -> list[str]:
    """The ExecStopPost= of the unit, as systemd reads it, with that folder instead of the kernel's."""
    text = re.sub(r"\\\n\s*", " ", UNIT.read_text())
    (line,) = re.findall(r"(?m)^ExecStopPost=[-+]*(.*)$", text)
    argv = shlex.split(line.replace("$$", "$"))
    assert argv[:2] == ["/bin/sh", "-c"]
    assert argv[2].count("/sys/class/leds") == 1
    return [*argv[:2], argv[2].replace("/sys/class/leds", shlex.quote(str(leds)))]


def stopped(leds: Path, machine: str = "running") -> None:
    """Run it; ``machine``: what `systemctl is-system-running` says."""
    programs = leds.parent / "programs"
    programs.mkdir(exist_ok=True)
    (programs / "systemctl").write_text(f'#!/bin/sh\ntest "$*" = is-system-running && echo {machine}\n')
    (programs / "systemctl").chmod(0o755)
    subprocess.run(
        command(leds), check=True, timeout=60, env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    )
