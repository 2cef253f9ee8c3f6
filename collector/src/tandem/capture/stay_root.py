"""Start tcpdump as a root that may not change its groups: ``python stay_root.py PROGRAM ARGUMENT…``

tcpdump started by uid 0 always sets its groups anew, also with ``-Z root``, and ends when it may not; a collector that runs as
uid 0 with nothing but CAP_NET_ADMIN and CAP_NET_RAW may not. Here the kernel is told, by a seccomp filter on this process, to
answer that one call, setgroups, with success and to do nothing. Nothing is gained by it: the groups stay as they are.
An ordinary user with these capabilities as ambient ones needs none of this. Standard library only, and nothing of ours.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
_ALLOW = 0x7FFF0000
_RETURN_0 = 0x00050000

# machine: (audit architecture, number of the setgroups call that its C library uses), from the kernel's tables of calls
CALLS = {
    "x86_64": (0xC000003E, 116),
    "aarch64": (0xC00000B7, 159),
    "armv7l": (0x40000028, 206),
    "armv6l": (0x40000028, 206),
}


def program(machine: str) -> bytes:
    """The filter for ``machine`` as classic BPF; KeyError where its call number is not known."""
    architecture, number = CALLS[machine]
    load, equal, give = 0x20, 0x15, 0x06
    steps = (
        (load, 0, 0, 4),  # seccomp_data.arch
        (equal, 0, 3, architecture),
        (load, 0, 0, 0),  # seccomp_data.nr
        (equal, 0, 1, number),
        (give, 0, 0, _RETURN_0),
        (give, 0, 0, _ALLOW),
    )
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


def pretend() -> None:
    """Let setgroups succeed without effect, in this process and what it starts. OSError when the kernel refuses."""
    machine = platform.machine()
    if machine == "aarch64" and struct.calcsize("P") == 4:
        machine = "armv7l"  # Raspberry Pi OS: 32-bit programs on a 64-bit kernel
    code = program(machine)
    text = ctypes.create_string_buffer(code, len(code))
    filter_ = struct.pack("@HP", len(code) // 8, ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    for option, value, pointer in ((_PR_SET_NO_NEW_PRIVS, 1, None), (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, filter_)):
        if libc.prctl(option, ctypes.c_ulong(value), pointer, ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    try:
        pretend()
    except (OSError, KeyError) as error:
        sys.exit(
            f"uid 0 without CAP_SETGID on {platform.machine()}: {error}; hint: run as an ordinary user with ambient CAP_NET_RAW"
        )
    os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606  the point of this file: become tcpdump
