"""The unix socket ``status.sock``: where it lies, and the lines that go over it.

One JSON object a line. The path of a unix socket holds 107 bytes at most; where the probe's folder is deeper, the socket is
reached through /proc/self/fd.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAME = "status.sock"
LONGEST_REQUEST = 4 * 1024 * 1024
"""Bytes; a campaign of the greatest length, as JSON writes it, fits."""
_LONGEST_PATH = 107


class NoCollectorError(ConnectionError):
    """No collector answers there."""


def encode(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """A name of ``path`` that fits into a socket address."""
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def listen(path: Path) -> socket.socket:
    """A listening socket, readable and writable by its owner only. A left-over of a killed collector is replaced; OSError with
    errno EADDRINUSE when a living one answers there."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.is_socket():
            try:
                connect(path, 2.0).close()
            except NoCollectorError as error:
                # Only a refusal says that nobody listens; a living collector may be busy, or another user's.
                if isinstance(error.__cause__, ConnectionRefusedError):
                    path.unlink(missing_ok=True)
        mask = os.umask(0o177)
        try:
            with short_path(path) as name:
                made.bind(name)
        finally:
            os.umask(mask)
        made.listen(8)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made


def close(listening: socket.socket, path: Path) -> None:
    listening.close()
    path.unlink(missing_ok=True)


def connect(path: Path, timeout_s: float | None) -> socket.socket:
    """A connection to a running collector; NoCollectorError when none answers."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(timeout_s)
        with short_path(path) as name:
            made.connect(name)
    except OSError as error:
        made.close()
        raise NoCollectorError(f"{path}: {error.strerror or error}") from error
    return made


def ask(path: Path, request: dict[str, Any], timeout_s: float | None = None) -> Iterator[dict[str, Any]]:
    """Send ``request``; every answer until the collector closes. NoCollectorError when none answers at all; TimeoutError when
    nothing comes for ``timeout_s`` seconds."""
    with connect(path, 5.0) as connection:
        connection.settimeout(timeout_s)
        connection.sendall(encode(request))
        with connection.makefile("rb") as lines:
            try:
                for line in lines:
                    answer = json.loads(line)
                    if isinstance(answer, dict):
                        yield answer
            except (ConnectionResetError, json.JSONDecodeError):
                return  # the collector was killed in the middle of a line
