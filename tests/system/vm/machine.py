"""The virtual machine of the system tests: the bench's (``tandem_bench.kernel.machine``), and when a test cannot have it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tandem_bench.kernel import machine
from tandem_bench.kernel.machine import BESIDE, FOLDER, REPOSITORY, Done, VmError, accelerator, built

__all__ = ["BESIDE", "REPOSITORY", "Done", "VmError", "accelerator", "built"]
"""What tests use of the bench's module; the rest is this one's own."""


def lacks() -> str | None:
    """Why there can be no machine here; None when there can."""
    why = machine.lacks()
    if why is None and not FOLDER.is_dir():
        return (
            "the virtual machine is not made; hint: ./kit test tests/system/test_vm_modems.py makes it, or says why not"
        )
    return why


NEEDED = pytest.mark.skipif(lacks() is not None, reason=str(lacks()))


def later_kernel(name: str) -> bool:
    """Whether the machine has that kernel besides: Debian 12's has 6.12."""
    return (built() / f"vmlinuz-{name}").exists()


def run(
    command: Sequence[str],
    files: Mapping[str, str | bytes] | None = None,
    *,
    kernel: str = "",
    initrd: Path | None = None,
    **settings: Any,
) -> Done:
    """As the bench's ``run``. ``kernel``: ``6.12`` for that one in place of the distribution's own (``later_kernel``: whether it was
    made)."""
    if kernel and initrd is None:
        initrd = built() / f"initramfs-{kernel}"
    image = built() / f"vmlinuz-{kernel}" if kernel else None
    return machine.run(command, files, initrd=initrd, kernel=image, **settings)


def played(command: Sequence[str], files: Mapping[str, str | bytes] | None = None, **settings: Any) -> dict[str, Any]:
    """As ``run``, of a scene that must come to a good end: what its last line says. AssertionError with all that it said, and its logs."""
    done = run(command, files, **settings)
    print(f"boot {done.boot_s:.0f} s, scene {done.command_s:.0f} s, {done.cpu_s:.0f} s of processor")
    logs = "".join(
        f"\n--- {name}\n{text.decode(errors='replace')[-3000:]}"
        for name, text in done.files.items()
        if name.endswith(".log")
    )
    assert done.exit == 0, done.stdout + done.stderr + logs
    print(done.stderr, logs, file=sys.stderr)  # shown where a test of what was seen fails
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen
