"""getsockopt(2) with a buffer that the kernel also reads: Python's socket module gives it an empty one. For both ends."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Protocol

GetSockOpt = Callable[..., int]
"""getsockopt(2) of libc: descriptor, level, option, memory, length by reference; 0, or -1 with errno set."""
_LIBC = ctypes.CDLL(None, use_errno=True)


class HasDescriptor(Protocol):
    """A socket, or what carries one."""

    def fileno(self) -> int:
        """Its descriptor."""
        ...


class Memory:
    """A buffer that Python sees as a bytearray and the kernel by its address."""

    def __init__(self, size: int) -> None:
        self.bytes = bytearray(size)
        self.pointer = (ctypes.c_char * size).from_buffer(self.bytes)
        self.address = ctypes.addressof(self.pointer)


def ask(
    connection: HasDescriptor, level: int, option: int, memory: Memory, size: int, getsockopt: GetSockOpt | None = None
) -> int:
    """Have the kernel write an option into ``memory``, whose first ``size`` bytes it may read and write; how many it wrote. OSError."""
    length = ctypes.c_uint32(size)
    given = _LIBC.getsockopt if getsockopt is None else getsockopt
    if given(connection.fileno(), level, option, memory.pointer, ctypes.byref(length)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return length.value


class Numbers:
    """Numbers for subflows of kernels that give none: from 1 by first appearance, told apart by both ends."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, object], str] = {}

    def of(self, local: object, remote: object) -> str:
        """The subflow's."""
        return self._known.setdefault((local, remote), str(len(self._known) + 1))
