"""On a kernel that has netem, in the virtual machine: delay and loss as the probe shapes its own paths (``tests/lab/test_shaping.py``)."""

import pytest
from vm import machine

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(2500), machine.NEEDED]
SHAPING = machine.REPOSITORY / "tests" / "lab" / "test_shaping.py"


def test_the_probe_shapes_delay_and_loss() -> None:
    """Rates are left out: an emulated machine's mean nothing."""
    modules = "sch_netem sch_tbf sch_htb sch_ingress ifb cls_u32 act_mirred veth"
    script = (
        f"modprobe -a {modules}\n"
        f"cd {machine.REPOSITORY}; python3 -m pytest -p no:cacheprovider --noconftest --timeout=0 -rsP -k 'not rate' {SHAPING}"
    )
    done = machine.run(["sh", "-c", script], timeout_s=2400)
    assert done.exit == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout.splitlines()[-1], done.stdout
    assert "of 2000 datagrams" in done.stdout, done.stdout  # made, and not only found to be lacking
