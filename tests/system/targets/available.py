"""Whether targets can be had here, and where what they are made from lies."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from targets.play import program
from targets.vm_target import REPOSITORY

FOLDER = REPOSITORY / "build" / "targets"
MAKER = Path(__file__).with_name("make.py")
MEND = "./kit test tests/system/test_release_booted.py"


def lacks() -> str | None:
    """Why there can be none here; None when there can."""
    for name in ("qemu-system-x86_64", "qemu-img", "systemd-nspawn", "ssh", "dnsmasq"):
        if shutil.which(name) is None:
            return f"{name} not found; hint: {MEND}"
    if program() is None:
        return f"ansible-playbook not found; hint: {MEND}"
    return (
        None if any(FOLDER.glob("*/whole")) else f"the targets are not made; hint: {MEND} makes them, or says why not"
    )


NEEDED = pytest.mark.skipif(lacks() is not None, reason=str(lacks()))


def made() -> Path:
    """The folder that make.py made; made anew now when its sources changed. AssertionError with its own line when it cannot be."""
    done = subprocess.run([sys.executable, str(MAKER), str(FOLDER)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())
