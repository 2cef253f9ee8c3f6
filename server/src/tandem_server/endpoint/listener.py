"""The measurement listener: accepts Multipath TCP and plain TCP, one thread a connection, within its limits on connections."""

from __future__ import annotations

import errno
import logging
import os
import select
import socket
import threading
from collections.abc import Callable, Sequence

from tandem_server.endpoint.sockets import HINT, choose_controller, effective, open_socket
from tandem_server.http.connections import Connection, ConnectionLimiter

_LOG = logging.getLogger("tandem.endpoint.listener")
_NO_MULTIPATH = (errno.ENOPROTOOPT, errno.EPROTONOSUPPORT, errno.EINVAL, errno.EPERM)


class ListenError(RuntimeError):
    """The port cannot be had; the message is one line with a hint."""


class NoMultipathError(ListenError):
    """This kernel, or this network namespace, has no Multipath TCP."""


def listen(host: str, port: int, *, multipath: bool = True, shared: bool = False) -> socket.socket:
    """A listening socket, ``shared`` with others of this account that say so; NoMultipathError, ListenError. ``host`` ``::`` takes IPv4
    too; with ``multipath`` plain TCP too."""
    host, family = family_of(host, multipath=multipath)
    try:
        listener = open_socket(family, multipath=multipath)
    except OSError as error:
        if multipath and error.errno in _NO_MULTIPATH:
            raise NoMultipathError(
                f'the kernel has no Multipath TCP here; hint: {HINT}, or [listen] multipath = "optional"'
            ) from error
        raise ListenError(f"no socket: {error.strerror}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind((host, port))
        listener.listen(256)
    except OSError as error:
        listener.close()
        hint = "end what listens there, or set another port" if error.errno == errno.EADDRINUSE else "correct [listen]"
        raise ListenError(f"{host}:{port}: {error.strerror}; hint: {hint}") from error
    return listener


def family_of(host: str, *, multipath: bool) -> tuple[str, socket.AddressFamily]:
    """Where to listen for ``host``, and the socket's family: for ``::`` everything that this kernel has of the protocol, which is IPv4
    alone where it has no IPv6 (Raspberry Pi OS builds Multipath TCP without)."""
    if ":" not in host:
        return host, socket.AF_INET
    if host == "::" and not _has(socket.AF_INET6, multipath=multipath) and _has(socket.AF_INET, multipath=multipath):
        _LOG.warning("IPv4 alone: this kernel has no IPv6%s", " for Multipath TCP" * multipath)
        return "0.0.0.0", socket.AF_INET  # noqa: S104  (as requested: every address)
    return host, socket.AF_INET6


def _has(family: socket.AddressFamily, *, multipath: bool) -> bool:
    try:
        open_socket(family, multipath=multipath).close()
    except OSError:
        return False
    return True


class Controllers:
    """The congestion controller of the measurement ``listeners``, on the v0.94 kernel: what is set on an accepted connection does not
    reach its first subflow, what the listener has reaches all. So sessions of Multipath TCP with different ones are not open at once."""

    def __init__(self, listeners: Sequence[socket.socket]) -> None:
        self._listeners = tuple(listeners)
        self._own = [effective(one).congestion_control for one in listeners]

    def choose(self, name: str | None) -> None:
        """For connections that begin from now on; None: the system's own. OptionsError when the kernel refuses."""
        for listener, own in zip(self._listeners, self._own, strict=True):
            choose_controller(listener, own if name is None else name)


Entered = Callable[[str], bool]
"""Called with the probe in whose session the connection is; False: there are more of them than may be."""

Serve = Callable[[socket.socket, str, int, threading.Event, Entered], None]
"""Serves one connection: the socket, the peer's address and port, and what says that the endpoint stops."""


class Acceptor:
    """Runs ``serve(connection, address, port, stopped, entered)`` in a thread for each connection; closes it afterwards. ``further``:
    more listeners, each with its own ``serve``, within the same limits.

    ``stop`` ends accepting, sets ``stopped`` and waits for the threads.
    """

    def __init__(
        self,
        listener: socket.socket,
        serve: Serve,
        limiter: ConnectionLimiter,
        further: Sequence[tuple[socket.socket, Serve]] = (),
    ) -> None:
        self._listeners = {one.fileno(): (one, serving) for one, serving in ((listener, serve), *further)}
        self._limiter = limiter
        self._stopped = threading.Event()
        self._lock = threading.Condition()
        self._thread = threading.Thread(target=self._accept, name="acceptor", daemon=True)
        self._wake_read, self._wake_write = os.pipe()
        for one, _ in self._listeners.values():
            one.setblocking(False)
        self._thread.start()

    def stop(self, timeout_s: float = 3.0) -> None:
        """End accepting, tell the connections, and wait for them up to ``timeout_s``."""
        self._stopped.set()
        os.close(self._wake_write)
        self._thread.join()
        os.close(self._wake_read)
        for one, _ in self._listeners.values():
            one.close()
        with self._lock:
            self._lock.wait_for(lambda: not self._limiter.unauthenticated + self._limiter.authenticated, timeout_s)

    def _accept(self) -> None:
        poll = select.poll()
        for number in (*self._listeners, self._wake_read):
            poll.register(number, select.POLLIN)
        while not self._stopped.is_set():
            for number, _ in poll.poll():
                if number in self._listeners:
                    self._accept_one(*self._listeners[number])

    def _accept_one(self, listener: socket.socket, serve: Serve) -> None:
        try:
            accepted, peer = listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            # A connection reset before it was accepted, or descriptors used up: neither ends the listener.
            _LOG.warning("accept: %s", error)
            self._stopped.wait(0.05)
            return
        accepted.setblocking(True)
        with self._lock:
            connection = self._limiter.admit(accepted, peer)
        if connection is None:
            return
        address, port = str(peer[0]).removeprefix("::ffff:"), int(peer[1])
        try:
            threading.Thread(
                target=self._run, args=(serve, connection, address, port), name=f"connection {address}", daemon=True
            ).start()
        except RuntimeError as error:  # no thread to be had: its place must be free again
            _LOG.warning("%s", error)
            self._leave(connection)

    def _run(self, serve: Serve, connection: Connection, address: str, port: int) -> None:
        def entered(probe: str) -> bool:
            with self._lock:
                return self._limiter.authenticate(connection, probe)

        try:
            serve(connection.socket, address, port, self._stopped, entered)
        except OSError as error:
            _LOG.info("%s: %s", address, error)
        except Exception:  # noqa: BLE001  (logged with its trace: one connection's fault must not end the others)
            _LOG.exception("%s: a fault of the endpoint", address)
        finally:
            self._leave(connection)

    def _leave(self, connection: Connection) -> None:
        with self._lock:
            self._limiter.left(connection)
            connection.socket.close()
            self._lock.notify_all()
