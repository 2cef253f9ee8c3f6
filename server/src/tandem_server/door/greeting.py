"""Accepts connections, lets the door choose, and begins TLS with those that come in."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable

from tandem_server.door.admission import Admitted, Door

_LOG = logging.getLogger("tandem.door")
_AT_ONCE = 64
"""So many accepted in one go; then the loop's other work has its turn."""

_BACKLOG = 1024
_PAUSE_S = 1.0
_GOODBYE_S = 5.0


class Greeter:
    """``accept`` and TLS's handshake for one listening socket, within the event loop, whichever it is: uvicorn's own way counts a
    connection only after its handshake. ``factory`` makes the protocol of each. ``context`` None: without TLS."""

    def __init__(
        self,
        listening: socket.socket,
        door: Door,
        context: ssl.SSLContext | None,
        factory: Callable[[], asyncio.Protocol],
    ) -> None:
        self._listening, self._door, self._context, self._factory = listening, door, context, factory
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        listening.setblocking(False)
        listening.listen(_BACKLOG)
        self._attend()

    def stop(self) -> None:
        """Accept no more; handshakes under way are given up."""
        self._loop.remove_reader(self._listening.fileno())
        self._stopped = True
        for task in self._tasks:
            task.cancel()

    _stopped = False

    def _attend(self) -> None:
        if not self._stopped:
            self._loop.add_reader(self._listening.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, peer = self._listening.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    _LOG.warning("accept: %s; again in %g s", error.strerror, _PAUSE_S)
                    self._loop.remove_reader(self._listening.fileno())
                    self._loop.call_later(_PAUSE_S, self._attend)
                    return
                continue  # it was reset before it was accepted
            admitted = self._door.admit(connection, peer)
            if admitted is not None:
                task = self._loop.create_task(self._greet(admitted))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _greet(self, admitted: Admitted) -> None:
        admitted.socket.setblocking(False)
        greeted = False
        try:
            await self._loop.connect_accepted_socket(
                self._factory,
                admitted.socket,
                ssl=self._context,
                ssl_handshake_timeout=None if self._context is None else self._door.bounds.head_s,
                ssl_shutdown_timeout=None if self._context is None else _GOODBYE_S,
            )
            greeted = True  # from here on the protocol is told of its end
        except OSError as error:
            _LOG.debug("%s: no TLS: %s", admitted.address, error)
        finally:
            if not greeted:
                self._door.left(admitted)
                admitted.socket.close()
