"""In the virtual machine: the status LED on LEDs of the real kernel, whose class, triggers and rights are what a Raspberry Pi has.

They are the activity LEDs of three SD host controllers (QEMU's sdhci-pci), since Debian's kernels have neither uleds nor gpio-sim. They
have the kernel's names; a folder of links gives them ours.
"""

from __future__ import annotations

import grp
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from vm.guest import awaited, told

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # in the machine nobody says where the tests are

from support.service_stop_post import command

CLASS = Path("/sys/class/leds")
MODULES = ("ledtrig-timer", "ledtrig-default-on", "sdhci-pci")
QEMU = [word for _ in range(3) for word in ("-device", "sdhci-pci")]
PLAY = """
import sys
from pathlib import Path
from tandem.indicator.lamp import Lamp, Leds, missing_leds
leds = Leds(Path(sys.argv[1]))
lamp = Lamp(leds)
print(missing_leds(leds))
for colour in sys.argv[2:]:
    lamp.show(colour)
    print(sorted(n.split(":")[1] for n in leds.names if (leds.folder / n / "brightness").read_text().strip() != "0"))
print(lamp.failures)
"""


def leds(rules: bytes) -> dict[str, Any]:
    """``rules``: the role's, whose LEDs are then these."""
    Path("/etc/udev/rules.d/99-tandem-indicator.rules").write_bytes(rules.replace(b"tandem:*:status", b"mmc*"))
    told(["udevadm", "control", "--reload"])
    told(["modprobe", "-a", *MODULES])
    told(["udevadm", "trigger", "--action=add", "--subsystem-match=leds"])
    found = sorted(awaited("the LEDs", lambda: len(f := list(CLASS.glob("mmc*"))) == 3 and f))
    told(["udevadm", "settle"])
    group = grp.getgrnam("tandem").gr_gid
    awaited("their group", lambda: all((led / "trigger").stat().st_gid == group for led in found))
    links = Path("/run/leds")
    links.mkdir(mode=0o755)
    for channel, led in zip(("red", "green", "blue"), found, strict=True):
        (links / f"tandem:{channel}:status").symlink_to(led)
    red = links / "tandem:red:status"
    (red / "trigger").write_text("default-on\n")  # as the overlay has it from power-on
    seen: dict[str, Any] = {"at power-on": brightness(links)}
    seen["played"] = subprocess.run(
        [sys.executable, "-c", PLAY, str(links), "yellow", "dark", "white"],
        user=65534, group=group, extra_groups=[], capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    programs = Path("/run/programs")
    programs.mkdir()
    for machine in ("running", "stopping"):
        (programs / "systemctl").write_text(f"#!/bin/sh\necho {machine}\n")
        (programs / "systemctl").chmod(0o755)
        told(["sh", "-c", f"PATH={programs}:$PATH exec {shlex.join(command(links))}"])
        seen[machine] = {
            "lit": brightness(links) if machine == "running" else None,
            "trigger": sorted({chosen(led) for led in links.iterdir()}),
            "delays": sorted({f.read_text().strip() for led in links.iterdir() for f in led.glob("delay_*")}),
        }
    return seen


def brightness(links: Path) -> list[str]:
    """The channels that the kernel says are lit."""
    return sorted(led.name.split(":")[1] for led in links.iterdir() if (led / "brightness").read_text().strip() != "0")


def chosen(led: Path) -> str:
    return (led / "trigger").read_text().partition("[")[2].partition("]")[0]
