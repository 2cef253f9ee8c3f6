"""In the machine: one start of a probe whose root is read-only below a layer of memory (``test_read_only_root.py`` tells the story of its
starts). Prints what was seen as one line of JSON. Each start ends as a power cut does: nothing is written that was not synced.

Arguments: which start it is, the folder of the role's programs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

SPOOL = Path("/var/lib/tandem")
LOWER = Path("/media/root-ro")
KEPT = ("/var/lib/chrony", "/var/lib/systemd/random-seed", "/var/lib/not-there")


def told(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


def root(*words: str) -> tuple[int, str]:
    """The exit status of ``tandem-root``, and what it says."""
    done = subprocess.run(["/usr/local/sbin/tandem-root", *words], capture_output=True, text=True, check=False)
    return done.returncode, (done.stdout + done.stderr).strip()


def written(file: Path, text: str) -> None:
    """And on the disk, as far as there is one below it."""
    file.write_text(text)
    os.sync()


def set_up(programs: Path) -> dict[str, Any]:
    """What the role does, on a root that is writable."""
    for folder in ("/boot", "/etc/tandem", "/usr/local/sbin", "/var/lib/systemd", SPOOL):
        Path(folder).mkdir(parents=True, exist_ok=True)
    Path(shutil.copy(programs / "tandem-root", "/usr/local/sbin")).chmod(0o755)
    Path("/etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    Path("/etc/tandem-kept").write_text("\n".join(KEPT) + "\n")
    Path("/etc/fstab").write_text("/dev/vda / ext4 defaults,noatime 0 1\n")
    Path("/var/lib/systemd/random-seed").write_text("first")
    # The machine's own first process, by the shell that it is written for.
    Path("/read-only-init").write_text("#!/bin/sh\nexec /bin/sh /vm-init\n")
    Path("/read-only-init").chmod(0o755)
    refused = [root("read-only")]
    told("mount", "/dev/vdb", str(SPOOL))
    code = Path("/etc/tandem/enrol.json")
    code.write_text("{}")
    refused.append(root("read-only"))
    code.unlink()
    refused.append(root("read-only"))
    shutil.copy("initrd", f"/boot/initrd.img-{os.uname().release}")
    return {"refused": refused, "armed": root("read-only")}


def look() -> dict[str, Any]:
    return {
        "root": told("findmnt", "-n", "-o", "FSTYPE", "/").strip(),
        "status": root("status"),
        "files": {name: Path(name).exists() for name in ("/etc/lost", "/etc/stays", "/var/lib/tandem/spooled")},
        "kept": {
            name: Path(name).read_text()
            for name in ("/var/lib/chrony/drift", "/var/lib/systemd/random-seed")
            if Path(name).exists()
        },
    }


def main(start: str, programs: Path) -> dict[str, Any]:
    if start == "set up":
        seen = set_up(programs)
        os.sync()
        return seen
    told("mount", "/dev/vdb", str(SPOOL))
    if start in ("writable", "as before"):
        told("mount", "-o", "remount,rw", "/")  # as systemd-remount-fs does
    told("/usr/local/sbin/tandem-root", "start")
    seen = look()
    if seen["root"] == "overlay":
        seen["lower"] = told("findmnt", "-n", "-o", "OPTIONS", str(LOWER)).strip().split(",")
    if start == "first":
        written(Path("/etc/lost"), "x")
        written(SPOOL / "spooled", "x")
        written(Path("/var/lib/chrony/drift"), "1.5")
        written(Path("/var/lib/systemd/random-seed"), "second")
        # The power goes while the disk is open and half of what the program writes is there.
        told("mount", "-o", "remount,rw", str(LOWER))
        written(LOWER / "etc/overlayroot.local.conf.tmp", "overlay")
    elif start == "second":
        seen["asked"] = root("writable")
        seen["lower after"] = told("findmnt", "-n", "-o", "OPTIONS", str(LOWER)).strip().split(",")
    elif start == "writable":
        written(Path("/etc/stays"), "x")
    elif start == "last":
        seen["stays"] = root("writable", "--stay")
    return seen


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
