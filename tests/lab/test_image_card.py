"""Writing a real block device, which the kernel guards; and the password that bookworm's own tool makes of userconf.txt's."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tandem_image import bookworm, card
from tandem_image.errors import RefusedError

MIB = 1 << 20


@pytest.fixture
def device(tmp_path) -> Iterator[Path]:
    """A block device of 64 MiB."""
    (tmp_path / "behind").write_bytes(b"")
    os.truncate(tmp_path / "behind", 64 * MIB)
    if os.geteuid() != 0 or shutil.which("losetup") is None:
        pytest.skip("needs root and losetup")
    made = subprocess.run(
        ["losetup", "--show", "--find", str(tmp_path / "behind")], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        pytest.skip(f"no loop device here: {made.stderr.strip()}")
    yield Path(made.stdout.strip())
    subprocess.run(["losetup", "--detach", made.stdout.strip()], check=True)


def test_a_block_device_is_written_and_read_back_past_the_kernels_memory(device, tmp_path):
    image = tmp_path / "image"
    image.write_bytes(os.urandom(9 * MIB))
    card.write(image, device, lambda *_: None)
    with device.open("rb") as file:
        assert file.read(9 * MIB) == image.read_bytes()


def test_an_image_larger_than_the_device_is_told(device, tmp_path):
    image = tmp_path / "image"
    image.write_bytes(b"x" * 65 * MIB)
    with pytest.raises(RefusedError, match="mend"):
        card.write(image, device, lambda *_: None)


def test_the_kernel_refuses_a_device_of_which_something_is_mounted(device, tmp_path):
    image, place = tmp_path / "image", tmp_path / "place"
    image.write_bytes(b"x" * MIB)
    place.mkdir()
    subprocess.run(["mkfs.ext4", "-q", str(device)], check=True)
    subprocess.run(["mount", str(device), str(place)], check=True)
    try:
        with pytest.raises(RefusedError, match="unmount it first"):
            card.write(image, device, lambda *_: None)
    finally:
        subprocess.run(["umount", str(place)], check=True)
    assert subprocess.run(["e2fsck", "-fn", str(device)], capture_output=True, check=False).returncode == 0


def test_bookworms_tool_makes_an_account_without_a_password_that_is_not_locked(tmp_path):
    """userconf does this with what stands behind the name in userconf.txt (userconf-pi)."""
    if os.geteuid() != 0 or shutil.which("chpasswd") is None:
        pytest.skip("needs root and chpasswd (package passwd)")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text(
        "root:x:0:0:root:/root:/bin/sh\ntandem-admin:x:1000:1000:,,,:/home/tandem-admin:/bin/bash\n"
    )
    (tmp_path / "etc/shadow").write_text("root:*:20000:0:99999:7:::\ntandem-admin:!:20000:0:99999:7:::\n")
    line = f"tandem-admin:{bookworm.NO_PASSWORD}\n"
    done = subprocess.run(
        ["chpasswd", "-e", "-R", str(tmp_path)], input=line, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (entry,) = [line for line in (tmp_path / "etc/shadow").read_text().splitlines() if line.startswith("tandem-admin:")]
    assert entry.split(":")[1] == "*"  # neither empty (no password asked) nor begun by ! (locked)
