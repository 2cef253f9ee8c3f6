"""What this machine's kernel may lack, on kernels that have it, in the virtual machine: LIA, OLIA and BALIA on those of Debian 12 and 13
(loaded, on both subflows of a transfer, removed); netem (delay and loss as the probe shapes its paths, ``tests/lab/test_shaping.py``)."""

import json
import os
from pathlib import Path

import pytest
from vm import machine

pytestmark = [pytest.mark.system, pytest.mark.slow, machine.NEEDED]
OBJECT = Path(os.environ.get("TANDEM_CONGESTION") or machine.REPOSITORY / "build/congestion/coupled.bpf.o")
SCENE = machine.REPOSITORY / "tests/system/vm/scene_congestion.py"
SHAPING = machine.REPOSITORY / "tests/lab/test_shaping.py"
QEMU = {"": (), "6.12": ("-cpu", "qemu64,-cx16", "-smp", "1")}
"""What emulation takes: with more than that 6.12 does not come up."""


@pytest.mark.timeout(1000)
@pytest.mark.skipif(not OBJECT.is_file(), reason=f"{OBJECT} is not built; hint: ./kit setup")
@pytest.mark.parametrize("kernel", QEMU)
def test_the_object_loads_and_both_subflows_have_the_controller(kernel: str) -> None:
    if kernel and not machine.later_kernel(kernel):
        pytest.skip(f"this distribution has no second kernel {kernel}")
    command = ["sh", "-c", f"TANDEM_CONGESTION={{folder}}/coupled.bpf.o exec python3 {SCENE}"]
    done = machine.run(command, {"coupled.bpf.o": OBJECT.read_bytes()}, kernel=kernel, qemu=QEMU[kernel], timeout_s=900)
    assert done.exit == 0, done.stdout + done.stderr
    loaded, *transfers, left = [json.loads(line) for line in done.stdout.splitlines()]
    assert loaded["kernel"].startswith(kernel)
    assert loaded["load"].startswith("0 loaded: lia, olia, balia"), loaded
    assert [one["controller"] for one in transfers] == ["lia", "olia", "balia"]
    assert [(one["subflows"], one["received"]) for one in transfers] == [(2, True)] * 3, transfers
    assert left["unload"] == "0 removed: lia, olia, balia\n"
    assert not {"lia", "olia", "balia"} & set(left["available"])


@pytest.mark.timeout(2500)
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
