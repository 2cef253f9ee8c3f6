"""A user's kernel image: what it says of itself before it is started, and why it did not come up."""

from __future__ import annotations

import hashlib
import re
import struct
from dataclasses import dataclass
from pathlib import Path

from tandem_bench import UsageError

STOCK = "stock"
WANTED = "4.14"
"""The Linux of Multipath TCP v0.94."""


class ImageError(UsageError):
    """The image cannot be used; one line with the hint."""


@dataclass(frozen=True, slots=True)
class Image:
    """``file`` None: the distribution's stock kernel. ``release``: as ``uname -r``, None for the stock one until it runs."""

    file: Path | None
    release: str | None
    sha256: str | None

    @property
    def stock(self) -> bool:
        """Whether it is the distribution's."""
        return self.file is None


def read(name: str) -> Image:
    """The image that ``name`` means: ``stock``, or a file, which must be a v0.94 kernel's for x86 (bzImage). ImageError says why not."""
    if name == STOCK:
        return Image(None, None, None)
    file = Path(name)
    hint = f"hint: a bzImage of Multipath TCP v0.94 (Linux {WANTED}), or --image {STOCK}"
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ImageError(f"{file}: {error.strerror}; {hint}") from error
    release = release_of(content)
    if release is None:
        raise ImageError(f"{file}: no Linux image for x86; {hint}")
    if not re.match(rf"{re.escape(WANTED)}\.\d", release):
        raise ImageError(f"{file}: Linux {release}, not {WANTED}; {hint}")
    return Image(file.absolute(), release, hashlib.sha256(content).hexdigest())


def release_of(content: bytes) -> str | None:
    """The release that a bzImage says in its setup header (Documentation/arch/x86/boot.rst: HdrS at 0x202, kernel_version at 0x20e);
    None when it is none."""
    if content[0x202:0x206] != b"HdrS" or len(content) < 0x210:
        return None
    place = struct.unpack_from("<H", content, 0x20E)[0] + 0x200
    text = content[place : place + 256].split(b"\0")[0].decode("ascii", "replace")
    return text.split()[0] if text.split() and place > 0x200 else None


_LACKS = (
    (r"\bno root$", "no disk: CONFIG_VIRTIO_PCI, CONFIG_VIRTIO_BLK, CONFIG_EXT4_FS, CONFIG_DEVTMPFS"),
    (r"mount: /run/(vm|lent/\S+): ", "no shared folder: CONFIG_NET_9P_VIRTIO, CONFIG_9P_FS"),
    (r"mount: .*unknown filesystem type 'overlay'", "no overlay: CONFIG_OVERLAY_FS"),
    (r"VFS: Unable to mount root fs|Failed to execute /init", "no initramfs: CONFIG_BLK_DEV_INITRD, CONFIG_BINFMT_SCRIPT"),
)  # fmt: skip
"""On the console → what is not built in; ``init.sh`` and its mount say most of it, since ``quiet`` lets a kernel's errors through and no
more. The initramfs brings modules of the distribution's kernel, which no other takes."""


def lack(console: str) -> str | None:
    """The driver that a machine did not come up for, by what the kernel said; None when it does not say."""
    for pattern, what in _LACKS:
        if re.search(pattern, console, re.MULTILINE):
            return f"the kernel lacks a driver: {what}; hint: build it in (=y)"
    return None


def panic(console: str) -> str | None:
    """That the kernel panicked, in its words; None when it did not."""
    found = re.search(r"Kernel panic - not syncing: (.*)", console)
    return None if found is None else f"the kernel panicked: {found[1].strip()}"
