"""On a kernel that has netem, in the virtual machine: the bench's netem link (``netem_link.py``), and delay and loss as the probe shapes
its own paths (``tests/lab/test_shaping.py``)."""

import pytest
from vm import machine

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(2500), machine.NEEDED]
CHECK = machine.REPOSITORY / "tests" / "support/netem_link.py"
SHAPING = machine.REPOSITORY / "tests" / "lab" / "test_shaping.py"
CHECKS = 7


@pytest.fixture(scope="module")
def done() -> machine.Done:
    """Both in one machine. Rates are left out of the second: an emulated machine's mean nothing."""
    modules = "sch_netem sch_tbf sch_htb sch_ingress ifb cls_u32 act_mirred veth"
    script = (
        f"modprobe -a {modules}; python3 {CHECK} >{{folder}}/link; echo $? >{{folder}}/link-exit\n"
        f"cd {machine.REPOSITORY}; python3 -m pytest -p no:cacheprovider --noconftest --timeout=0 -rsP -k 'not rate' {SHAPING}"
    )
    made = machine.run(["sh", "-c", script], timeout_s=2400)
    print(f"boot {made.boot_s:.0f} s, checks {made.command_s:.0f} s")
    return made


def test_the_link_holds_what_is_set_on_it(done: machine.Done) -> None:
    told = done.files["link"].decode()
    assert done.files["link-exit"] == b"0\n", told + done.stderr
    held = [line for line in told.splitlines() if line.startswith("ok ")]
    assert len(held) == CHECKS, told


def test_the_probe_shapes_delay_and_loss(done: machine.Done) -> None:
    assert done.exit == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout.splitlines()[-1], done.stdout
    assert "of 2000 datagrams" in done.stdout, done.stdout  # made, and not only found to be lacking
