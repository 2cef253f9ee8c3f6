"""LIA, OLIA and BALIA on the kernels of Debian 12 and 13, in the virtual machine: loaded, on both subflows of a transfer, removed."""

import json
import os
from pathlib import Path

import pytest
from vm import machine

OBJECT = Path(os.environ.get("TANDEM_CONGESTION") or machine.REPOSITORY / "build/congestion/coupled.bpf.o")
LACK = machine.lacks() or (None if OBJECT.is_file() else f"{OBJECT} is not built; hint: ./kit setup")
pytestmark = [
    pytest.mark.system,
    pytest.mark.slow,
    pytest.mark.timeout(1000),
    pytest.mark.skipif(LACK is not None, reason=str(LACK)),
]
SCENE = machine.REPOSITORY / "tests/system/vm/scene_congestion.py"
QEMU = {"": (), "6.12": ("-cpu", "qemu64,-cx16", "-smp", "1")}
"""What emulation takes: with more than that 6.12 does not come up."""


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
