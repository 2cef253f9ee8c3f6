"""The netem link on a kernel that has netem: ``netem_link.py``'s checks, in the virtual machine."""

import pytest
from vm import machine

pytestmark = [
    pytest.mark.system,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(machine.lacks() is not None, reason=str(machine.lacks())),
]
CHECK = machine.REPOSITORY / "tests" / "system" / "netem_link.py"
SOURCES = machine.REPOSITORY / "firmware" / "bench" / "src"
CHECKS = 7


def test_the_link_holds_what_is_set_on_it() -> None:
    command = ["sh", "-c", f"modprobe -a sch_netem sch_tbf veth && exec python3 {CHECK}"]
    done = machine.run(command, env={"PYTHONPATH": str(SOURCES)}, timeout_s=500)
    print(f"boot {done.boot_s:.0f} s, checks {done.command_s:.0f} s\n{done.stdout}")
    assert done.exit == 0, done.stdout + done.stderr
    held = [line for line in done.stdout.splitlines() if line.startswith("ok ")]
    assert len(held) == CHECKS, done.stdout
