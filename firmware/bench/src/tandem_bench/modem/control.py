"""The control socket: one JSON line a wish, one JSON line an answer, ``{"ok": true}`` or ``{"ok": false, "error": …}``."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

LONGEST_LINE = 4096


_LONGEST_NAME = 107
"""Bytes that the kernel's address of a Unix socket holds."""


@contextlib.contextmanager
def _name_that_fits(path: Path) -> Iterator[str]:
    """``path``, or where it is too long the same file by way of its open folder."""
    if len(os.fsencode(path)) <= _LONGEST_NAME:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


class ControlError(OSError):
    """The socket cannot be made; the message is one line with the hint."""


class Control:
    """Listens on a Unix stream socket. ``obey`` gets each decoded object and raises ValueError to refuse it."""

    def __init__(self, path: Path, selector: selectors.BaseSelector, obey: Callable[[object], None]) -> None:
        self._path, self._selector, self._obey = path, selector, obey
        self._lines: dict[socket.socket, bytes] = {}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._claim()
        except OSError as error:
            self._socket.close()
            raise ControlError(f"{path}: {error.strerror or error}; give another --control") from None
        selector.register(self._socket, selectors.EVENT_READ, self._accept)

    def _claim(self) -> None:
        """Bind, taking over the name that a killed modem left behind but not one that somebody answers."""
        with _name_that_fits(self._path) as name:
            try:
                self._socket.bind(name)
            except OSError:
                if not self._path.is_socket():
                    raise
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
                    try:
                        asked.connect(name)
                    except ConnectionRefusedError:
                        self._path.unlink()
                    else:
                        raise
                self._socket.bind(name)
        self._socket.listen(4)
        self._socket.setblocking(False)

    def close(self) -> None:
        """Hang up, and remove the socket's name."""
        for client in list(self._lines):
            self._hang_up(client)
        self._selector.unregister(self._socket)
        self._socket.close()
        self._path.unlink(missing_ok=True)

    def _accept(self) -> None:
        client, _ = self._socket.accept()
        client.setblocking(False)
        self._lines[client] = b""
        self._selector.register(client, selectors.EVENT_READ, lambda: self._read(client))

    def _read(self, client: socket.socket) -> None:
        try:
            received = client.recv(LONGEST_LINE)
        except BlockingIOError:
            return
        except ConnectionError:
            received = b""
        *lines, rest = (self._lines[client] + received).split(b"\n")
        self._lines[client] = rest
        try:
            for line in lines:
                client.sendall(json.dumps(self._answer(line)).encode() + b"\n")
        except (ConnectionError, BlockingIOError):
            received = b""  # gone, or not reading: nothing is owed to it
        if not received or len(rest) > LONGEST_LINE:
            self._hang_up(client)

    def _answer(self, line: bytes) -> dict[str, object]:
        try:
            self._obey(json.loads(line))
        except (ValueError, RecursionError) as refusal:
            return {"ok": False, "error": str(refusal)}
        return {"ok": True}

    def _hang_up(self, client: socket.socket) -> None:
        self._selector.unregister(client)
        client.close()
        del self._lines[client]
