"""At least 200 power cuts while recording: no acknowledged record lost, no number twice, no spool unreadable.

How unsynced writes are discarded: the probe's code runs on an ext4 of this machine's kernel, on a loop device whose file is a FUSE file
system of ours. That one sees every block write and every flush (the loop device has a write cache and no FUA) and keeps them in their
order. A cut is a moment of that order. The disk is then made anew as a disk with a volatile write cache may be: all writes up to the
last flush, and of those after it nothing, all, the first ones, a random choice, or a random choice of their 512-byte sectors (torn
writes; of a sector written twice the older may have stayed). That disk is mounted (the kernel replays the journal; where the superblock
itself is torn, e2fsck runs first, as at boot) and opened by the real code. What was in the page cache only is gone with the machine.

What it cannot show: a disk that lies about flushes, one that damages what it was not writing, file systems other than ext4.

While recording: appends of 1 to 120 records, an exporter that acknowledges, rejects and releases, a cap that is reached,
restarts, the kernel's own write-back, manifests, pending runs, captures, small files. Chains: what is left after a cut is recorded on
and cut again, also during the recovery itself.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent / "powercut"
FAULTS = ("lost records", "duplicates", "unreadable spools", "lost or torn files", "wrong counts")

pytestmark = [pytest.mark.system, pytest.mark.skipif(os.geteuid() != 0, reason="mounts a disk of its own: needs root")]


def cuts(*args):
    for program in ("mkfs.ext4", "e2fsck", "losetup", "unshare"):
        if shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None:
            pytest.skip(f"{program} is not installed (e2fsprogs, mount, util-linux)")
    for device in ("/dev/fuse", "/dev/loop-control"):
        if not Path(device).exists():
            pytest.skip(f"this kernel or container has no {device}")
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    words = ["unshare", "--mount", "--fork", "--kill-child", sys.executable, str(HERE / "power_cuts.py"), *args]
    environment = {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.timeout(1200)  # half a minute on a machine of one's own
def test_power_cuts_lose_nothing_that_was_acknowledged(capsys):
    seen = cuts("--lives", "18", "--cuts", "12")
    with capsys.disabled():
        print(f"\npower cuts: {json.dumps(seen)}")
    assert seen["cuts"] >= 200
    assert {fault: seen[fault] for fault in FAULTS} == dict.fromkeys(FAULTS, 0)
    # The cuts were where it matters, and something was unsynced.
    assert seen["unsynced"] > 50
    assert seen["cuts in the middle of an append"] > 50
    assert seen["records owed"] > 20 * 200
