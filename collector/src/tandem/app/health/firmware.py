"""Ask a Raspberry Pi's firmware through ``/dev/vcio``: one ioctl, as ``vcgencmd`` does it, without starting a process.

Source: the mailbox property interface (wiki of raspberrypi/firmware) and the kernel's ``vcio`` driver. A message is in 32-bit words:
size of all, 0 (the answer has 0x80000000), then a tag: its number, the room for its value in bytes, 0 (the answer: bit 31 and the
length), the value; then 0. Takes a member of the group ``video``.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
from datetime import UTC, datetime
from pathlib import Path

REVISION = 0x0000_0001
"""Its value: the time at which the firmware was built, seconds since 1970."""
COMMAND = 0x0003_0080
"""Its value: an error number, and a command's text, or the answer's, ended by a NUL."""
ROOM = 1024
_DONE = 0x8000_0000
_IOCTL = 3 << 30 | ctypes.sizeof(ctypes.c_void_p) << 16 | 100 << 8
"""_IOWR(100, 0, char *)."""


def message(tag: int, value: bytes, room: int) -> bytes:
    """A message with one tag; ``room`` (a multiple of 4): for its value and the answer's."""
    return struct.pack("=5I", 24 + room, 0, tag, room, 0) + value.ljust(room, b"\0") + struct.pack("=I", 0)


def value_of(answer: bytes, tag: int, room: int) -> bytes:
    """The value in an answer; ValueError when it is none to such a message, or the firmware refused."""
    if len(answer) != 24 + room:
        raise ValueError(f"an answer of {len(answer)} bytes")
    size, status, told, has, _ = struct.unpack_from("=5I", answer)
    if (size, told, has) != (24 + room, tag, room) or status != _DONE:
        raise ValueError(f"the firmware refuses tag {tag:#x}: status {status:#x}")
    return answer[20 : 20 + room]


def text_in(value: bytes) -> str:
    """What a command answered; ValueError for an error number or for what is no text."""
    (error,) = struct.unpack_from("=I", value)
    if error:
        raise ValueError(f"the firmware's error {error}")
    try:
        return value[4:].partition(b"\0")[0].decode("ascii").strip()
    except UnicodeDecodeError as no_text:
        raise ValueError("an answer that is no text") from no_text


def command(device: Path, words: str) -> str:
    """As ``vcgencmd WORDS``; OSError without the device or the right to it, ValueError for an error."""
    value = struct.pack("=I", 0) + words.encode("ascii")
    return text_in(_ask(device, COMMAND, value, ROOM))


def revision(device: Path) -> str:
    """The day (UTC) on which the firmware was built, as ``2023-10-30``; errors as of ``command``."""
    (built_s,) = struct.unpack("=I", _ask(device, REVISION, b"", 4))
    return datetime.fromtimestamp(built_s, UTC).date().isoformat()


def _ask(device: Path, tag: int, value: bytes, room: int) -> bytes:
    buffer = bytearray(message(tag, value, room))
    opened = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(opened, _IOCTL, buffer, True)
    finally:
        os.close(opened)
    return value_of(bytes(buffer), tag, room)
