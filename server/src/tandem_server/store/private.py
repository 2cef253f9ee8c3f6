"""A private InfluxDB: the plain ``influxd`` binary as a child process, on loopback only, with its own folder and accounts."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from tandem_server.durable import write_whole
from tandem_server.store.influx import Influx, literal, quoted
from tandem_server.store.kinds import QueryError, StoreDown
from tandem_server.store.preparing import (
    READER,
    Kept,
    forget_continuous_queries,
    give_password,
    prepare,
    prepare_reader,
)

LEAST_FREE_BYTES = 64 * 1024 * 1024
"""Below this the database is not started: it would fail within minutes, in the middle of a campaign."""

USER = "tandem"
"""The account of gateway, endpoint and report: all rights on its own database, none on others."""


class StoreStartError(RuntimeError):
    """The private database cannot be started; the message is one line with the hint."""


class PortTakenError(StoreStartError):
    """Another program took a port of its own between the look and the start."""


def find_influxd() -> Path:
    """The ``influxd`` binary: ``TANDEM_INFLUXD``, else the working tree's ``build/influxdb``, else PATH; StoreStartError."""
    named = os.environ.get("TANDEM_INFLUXD")
    if named:
        if not Path(named).is_file():
            raise StoreStartError(f"TANDEM_INFLUXD names {named}, which is no file; hint: correct or unset it")
        return Path(named)
    built = Path(__file__).resolve().parents[4] / "build/influxdb/usr/bin/influxd"
    if built.is_file():
        return built
    found = shutil.which("influxd")
    if found:
        return Path(found)
    raise StoreStartError(
        f"no influxd at {built} or on PATH; hint: run ./kit setup, or take the binary out of Debian's package influxdb"
    )


def account_password(folder: Path, user: str = USER) -> str:
    """The password that ``PrivateInflux`` made for ``user`` (``tandem``, ``admin`` or ``reader``) in ``folder``; FileNotFoundError before.

    A service that may not read the folder has it as a credential of systemd (LoadCredential=).
    """
    given = os.environ.get("CREDENTIALS_DIRECTORY")
    handed_over = None if given is None else Path(given) / f"{user}.password"
    file = handed_over if handed_over is not None and handed_over.is_file() else folder / f"{user}.password"
    return file.read_text().strip()


_CONFIGURATION = """\
# Written at each start; changes here are lost. For influxd 1.6 to 1.8.
reporting-enabled = false
bind-address = "127.0.0.1:{backup_port}"

[meta]
  dir = {meta}
[data]
  dir = {data}
  wal-dir = {wal}
  # Each write is synced before it is acknowledged: the gateway's promise to the probes rests on it.
  wal-fsync-delay = "0s"
  index-version = "tsi1"
  query-log-enabled = false
  # More than the default 25m: fewer and larger files, less CPU a line under the load of a thousand probes.
  cache-snapshot-memory-size = "64m"
  # A run's id is a tag, so values only ever grow; a limit would refuse good points one day.
  max-series-per-database = 0
  max-values-per-tag = 0
[monitor]
  store-enabled = false
[subscriber]
  enabled = false
[continuous_queries]
  # Whoever may read may make one, and it would run with the right to write: roll-ups are the worker's (derived/rollups.py).
  enabled = false
[http]
  bind-address = "127.0.0.1:{port}"
  auth-enabled = true
  log-enabled = false
  pprof-enabled = false
[logging]
  level = "warn"
  suppress-logo = true
"""
"""Loopback only, accounts on, nothing reported. ``backup_port`` is the one other listener that ``influxd`` cannot do without."""

_TRIES = 3
"""A free port is another's as soon as it asks for one: the database is started again with others."""


class PrivateInflux:
    """``start()`` and ``stop()`` one ``influxd``. ``port`` 0 takes a free one, ``backup_port`` None another at each start. Start it from a
    thread that outlives it.

    In ``folder``: data, ``influxd.log``, and with mode 0600, made at the first start, ``admin.password``, ``tandem.password`` and
    ``reader.password``. Retention policies are made as ``preparing.py`` has them.
    """

    def __init__(
        self,
        binary: Path,
        folder: Path,
        port: int,
        database: str = "tandem",
        kept: Kept | None = None,
        backup_port: int | None = None,
    ) -> None:
        self.binary, self.folder, self.database, self.kept = binary, folder, database, kept or Kept()
        self.port, self._backup_port, self._any_port = port or _free_port(), backup_port, port == 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens, loopback only."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        """The process id of ``influxd`` while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def client(self, user: str = USER) -> Influx:
        """A client with the account ``tandem``, or another one."""
        return Influx(self.url, self.database, user, account_password(self.folder, user))

    def start(self, timeout_s: float = 30.0) -> Influx:
        """Start, wait until it answers, make accounts and database where missing. StoreStartError says what is wrong."""
        for left in reversed(range(_TRIES)):
            if self._any_port and left < _TRIES - 1:
                self.port = _free_port()
            self._check_ground()
            try:
                self._begin()
                self._await_answer(time.monotonic() + timeout_s)
                self._make_accounts()
                break
            except BaseException as error:
                self.stop()
                if not left or not isinstance(error, PortTakenError):
                    raise
        return self.client()

    def _begin(self) -> None:
        config = self.folder / "influxd.conf"
        place, port = self.folder.resolve(), self._backup_port or _free_port()
        folders = {name: quoted(str(place / name)) for name in ("meta", "data", "wal")}  # TOML quotes as InfluxQL does
        config.write_text(_CONFIGURATION.format(port=self.port, backup_port=port, **folders))
        command = [str(self.binary), "-config", str(config)]
        setpriv = shutil.which("setpriv")
        # So that not even a kill -9 of this process leaves a database behind that holds the port. systemd ends a service's processes
        # together by itself, and its sandbox refuses capset, which newer setpriv calls whatever its arguments.
        if setpriv and not _of_systemd():
            command = [setpriv, "--pdeathsig", "TERM", *command]
        with (self.folder / "influxd.log").open("ab") as log:
            environment = {k: v for k, v in os.environ.items() if not k.startswith("INFLUXDB_")}
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )

    def stop(self, timeout_s: float = 15.0) -> None:
        """End it cleanly; by force when it has not ended after ``timeout_s``."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Its exit status once it ended, None when it still runs after ``timeout_s``."""
        if self._process is None:
            return 0
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout_s)
        return None

    def why_ended(self) -> str:
        """The last words of its log, in one line."""
        text = (self.folder / "influxd.log").read_bytes()[-4000:].decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        for words in _KNOWN_ENDS:
            if any(words in line for line in lines[-20:]):
                return self._known_end(words)
        return lines[-1] if lines else "it wrote no log"

    def __enter__(self) -> PrivateInflux:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _check_ground(self) -> None:
        if not (self.binary.is_file() and os.access(self.binary, os.X_OK)):
            raise StoreStartError(f"{self.binary} is no program; hint: name the influxd binary in [store] binary")
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.folder.chmod(0o700)
            free = shutil.disk_usage(self.folder).free
        except OSError as error:
            raise StoreStartError(
                f"{self.folder}: {error.strerror}; hint: name a folder that can be written"
            ) from error
        if free < LEAST_FREE_BYTES:
            raise StoreStartError(f"{self.folder}: disk full ({free // 2**20} MiB free); hint: free 64 MiB or more")
        _check_port(self.port, "port")
        if self._backup_port is not None:
            _check_port(self._backup_port, "backup_port")

    def _await_answer(self, deadline_s: float) -> None:
        pause_s = 0.01
        with Influx(self.url, self.database, "", "", timeout_s=2.0) as probe:
            while (status := self.wait(0)) is None:
                try:
                    probe.ping()
                except StoreDown:
                    if time.monotonic() > deadline_s:
                        words = self.why_ended()
                        raise StoreStartError(f"influxd did not answer in time; its last words: {words}") from None
                    time.sleep(pause_s)
                    pause_s = min(pause_s * 1.5, 0.2)
                else:
                    return
        why = self.why_ended()
        kind = PortTakenError if why == self._known_end(_PORT_TAKEN) else StoreStartError
        raise kind(f"influxd ended at its start (status {status}): {why}")

    def _known_end(self, words: str) -> str:
        return _KNOWN_ENDS[words].format(port=self.port, folder=self.folder)

    def _make_accounts(self) -> None:
        try:
            # Without any account the database takes this one statement without a login, and nothing else.
            with Influx(self.url, self.database, "", "") as first:
                self._account(
                    "admin",
                    lambda password: first.query(
                        f"CREATE USER admin WITH PASSWORD {literal(password)} WITH ALL PRIVILEGES"
                    ),
                )
            with Influx(self.url, self.database, "admin", account_password(self.folder, "admin")) as admin:
                prepare(admin, self.kept)
                forget_continuous_queries(admin)
                self._account(USER, lambda password: give_password(admin, USER, password))
                admin.query(f"GRANT ALL ON {quoted(self.database)} TO {USER}")
                self._account(READER, lambda password: prepare_reader(admin, password))
        except (StoreDown, QueryError) as error:
            raise StoreStartError(
                f"{self.folder}: the database's accounts cannot be set up ({error}); "
                "hint: put its password files back, or start with an empty folder"
            ) from error

    def _account(self, user: str, make: Callable[[str], object]) -> None:
        """``make`` the account with a password, unless there is one: random, 192 bits, URL-safe characters only. Its file has the password
        (mode 0600) before the database has it, and its name only then."""
        file = self.folder / f"{user}.password"
        if not file.exists():
            password, fresh = secrets.token_urlsafe(24), file.with_name(f"{file.name}.new")
            write_whole(fresh, f"{password}\n".encode(), 0o600)
            make(password)
            fresh.rename(file)


_PORT_TAKEN = "address already in use"
_KNOWN_ENDS = {
    "no space left on device": "{folder}: disk full; hint: free 64 MiB or more",
    _PORT_TAKEN: "port {port} on loopback is in use; hint: end what listens there, or set another [store] port",
    "permission denied": "{folder}: no permission to write; hint: give the folder to the account that runs this",
}


def _of_systemd() -> bool:
    """Whether the system's manager started this process as a service."""
    return "INVOCATION_ID" in os.environ and os.getppid() == 1


def _check_port(port: int, key: str) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise StoreStartError(f"port {port}: {error.strerror}; hint: choose another") from error
            raise StoreStartError(
                f"port {port} on loopback is in use; hint: end what listens there, or set another [store] {key}"
            ) from error


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
