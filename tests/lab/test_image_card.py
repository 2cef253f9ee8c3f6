"""Writing a real block device, which the kernel guards."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tandem_image import ImageError, card

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
    card.write(image, device)
    with device.open("rb") as file:
        assert file.read(9 * MIB) == image.read_bytes()


def test_an_image_larger_than_the_device_is_told(device, tmp_path):
    image = tmp_path / "image"
    image.write_bytes(b"x" * 65 * MIB)
    with pytest.raises(ImageError, match="cannot be written; hint: "):
        card.write(image, device)


def test_the_kernel_refuses_a_device_of_which_something_is_mounted(device, tmp_path):
    image, place = tmp_path / "image", tmp_path / "place"
    image.write_bytes(b"x" * MIB)
    place.mkdir()
    subprocess.run(["mkfs.ext4", "-q", str(device)], check=True)
    subprocess.run(["mount", str(device), str(place)], check=True)
    try:
        with pytest.raises(ImageError, match="Device or resource busy; hint: umount "):
            card.write(image, device)
    finally:
        subprocess.run(["umount", str(place)], check=True)
    assert subprocess.run(["e2fsck", "-fn", str(device)], capture_output=True, check=False).returncode == 0


def test_a_disk_of_another_kind_is_refused_by_the_writer_too(device, tmp_path):
    """As it is started with root's rights."""
    (tmp_path / "image").write_bytes(b"x" * MIB)
    command = [sys.executable, "-m", "tandem_image.card", str(tmp_path / "image"), str(device)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "is no disk but loop; hint: " in done.stderr
